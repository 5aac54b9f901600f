/* sum: several tensors of one shape, added in their order. */
#include "elementwise.h"

typedef struct addends {
    float *out;
    const pk_view *in;
    int32_t count;
    int add;
} addends;

static void sum_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const addends *s = context;
    (void)thread, (void)scratch;
    PK_FOR16(i, c, end - begin) {
        const int64_t at = begin + i;
        pk_vec v = pk_load_n(pk_f32(&s->in[0]) + at, c);
        for (int32_t j = 1; j < s->count; j++) v = pk_add(v, pk_load_n(pk_f32(&s->in[j]) + at, c));
        pk_put(s->out + at, v, c, s->add);
    }
}

static pk_status sum_forward(const pk_call *call) {
    if (call->n_in < 1) return pk_fail(call, PK_BAD_SHAPE, -1, "needs at least one tensor");
    const pk_status bad = pk_map_check(call);
    if (bad) return bad;
    addends s = {pk_f32(&call->out[0]), call->in, call->n_in, pk_adds(call, 0)};
    pk_parallel(call, pk_count(&call->out[0]), PK_MAP_GRAIN, sum_task, &s);
    return PK_OK;
}

PK_OP(sum, {"sum.forward(xs*: f32) -> (y: f32)", sum_forward});
