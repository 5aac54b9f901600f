/* check_finite: flags for guards.  ok is 1 when every element of every x is finite, bad is 1 when
 * one is not. */
#include "pk_kernel.h"
#include "pk_simd.h"

typedef struct task_data {
    const float *x;
    int32_t *found;   /* set, never cleared, by the tasks: their order does not matter */
} task_data;

static void scan(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const task_data k = *(const task_data *)context;
    const pk_vec most = pk_set1(3.40282347e+38f);
    pk_mask fine = pk_first_lanes(16);
    for (int64_t i = begin; i < end; i += 16)
        fine = pk_mask_and(fine, pk_le(pk_abs(pk_load_n(k.x + i, pk_min_i64(16, end - i))), most));
    if (pk_any(pk_mask_not(fine))) __atomic_store_n(k.found, 1, __ATOMIC_RELAXED);
}

/* x [any] each, ok [1], bad [1] */
static pk_status forward(const pk_call *call) {
    int32_t found = 0;
    for (int32_t i = 0; i < call->n_in; i++) {
        task_data k = {pk_f32(&call->in[i]), &found};
        pk_parallel(call, pk_count(&call->in[i]), 65536, scan, &k);
    }
    int32_t *ok = pk_i32(&call->out[0]), *bad = pk_i32(&call->out[1]);
    *ok = (pk_adds(call, 0) ? *ok : 0) + !found;
    *bad = (pk_adds(call, 1) ? *bad : 0) + found;
    return PK_OK;
}

PK_OP(check_finite, {"check_finite.forward(x*: f32) -> (ok: i32, bad: i32)", forward});
