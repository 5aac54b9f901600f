/* bias: a vector added along one dimension, and the sum that is its gradient. */
#include "reductions.cuh"

namespace {
/* x [outer, n, inner], b [n] */
struct add_bias {
    float *y;
    const float *x, *b;
    int64_t n, inner;
    int add;
    PK_DEVICE void operator()(int64_t i) const { pk_put(y + i, x[i] + b[i / inner % n], add); }
};

pk_status check(const pk_call *call, const pk_view *x, const pk_view *b, int32_t *axis) {
    const int64_t a = call->attr[0].i < 0 ? call->attr[0].i + x->ndim : call->attr[0].i;
    if (a < 1 || a >= x->ndim || pk_count(b) != x->dim[a])
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "b has %lld elements, dimension %lld of %d does not fit it",
                       (long long)pk_count(b), (long long)call->attr[0].i, (int)x->ndim);
    *axis = (int32_t)a;
    return PK_OK;
}

pk_status bias_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *b = &call->in[1];
    int32_t axis;
    PK_TRY(check(call, x, b, &axis));
    if (pk_count(x) != pk_count(&call->out[0]))
        return pk_fail(call, PK_BAD_SHAPE, -1, "x has %lld elements, y %lld",
                       (long long)pk_count(x), (long long)pk_count(&call->out[0]));
    return pk_each(call, pk_count(x),
                   add_bias{pk_f32(&call->out[0]), pk_f32(x), pk_f32(b), x->dim[axis],
                            pk_inner(x, axis + 1), pk_adds(call, 0)});
}

/* db = sum of dy over all dimensions but one */
pk_status bias_backward(const pk_call *call) {
    const pk_view *dy = &call->in[0], *db = &call->out[0];
    int32_t axis;
    PK_TRY(check(call, dy, db, &axis));
    const uint32_t others = ((1u << dy->ndim) - 1u) & ~(1u << axis);
    return pk_sum_dims(call, pk_f32(db), pk_f32(dy), dy->ndim, dy->dim, others, 1.0f,
                       pk_adds(call, 0));
}
} /* namespace */

PK_OP(bias, {"bias.forward(x: f32, b: f32; axis: int) -> (y: f32)", bias_forward},
      {"bias.backward(dy: f32; axis: int) -> (db: f32)", bias_backward});
