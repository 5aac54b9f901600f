/* check_finite: flags for guards.  ok is 1 when every element of every x is finite, bad is 1 when
 * one is not. */
#include "pk_kernel.h"
#include "pk_simd.h"

typedef struct task_data {
    const float *x;
    int32_t *found;   /* set, never cleared, by the tasks: their order does not matter */
} task_data;

/* 0 times x is 0 or -0 for every finite x and NaN for the others, and a sum with a NaN stays one. */
static void scan(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const task_data k = *(const task_data *)context;
    pk_vec s[4] = {pk_zero(), pk_zero(), pk_zero(), pk_zero()};
    int64_t i = begin;
    for (; i + 64 <= end; i += 64)
        for (int j = 0; j < 4; j++) s[j] = pk_fma(pk_load(k.x + i + 16 * j), pk_zero(), s[j]);
    for (; i < end; i += 16) s[0] = pk_fma(pk_load_n(k.x + i, end - i), pk_zero(), s[0]);
    const pk_vec all = pk_add(pk_add(s[0], s[1]), pk_add(s[2], s[3]));
    if (pk_any(pk_is_nan(all))) __atomic_store_n(k.found, 1, __ATOMIC_RELAXED);
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
