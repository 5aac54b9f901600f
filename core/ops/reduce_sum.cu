/* reduce_sum: the sum over chosen dimensions. */
#include "reductions.cuh"

namespace {
/* Both ways the kept elements must be as many as the small tensor has. */
pk_status check(const pk_call *call, const pk_view *large, const pk_view *small, uint32_t *bits) {
    PK_TRY(pk_dims_bits(call, call->attr[0].list, large->ndim, bits));
    int64_t kept = 1;
    for (int32_t d = 0; d < large->ndim; d++)
        if (!(*bits >> d & 1u)) kept *= large->dim[d];
    if (kept != pk_count(small))
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld elements are kept, the result has %lld",
                       (long long)kept, (long long)pk_count(small));
    return PK_OK;
}

pk_status reduce_sum_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *y = &call->out[0];
    uint32_t bits;
    PK_TRY(check(call, x, y, &bits));
    return pk_sum_dims(call, pk_f32(y), pk_f32(x), x->ndim, x->dim, bits, 1.0f, pk_adds(call, 0));
}

pk_status reduce_sum_backward(const pk_call *call) {
    const pk_view *dy = &call->in[0], *dx = &call->out[0];
    uint32_t bits;
    PK_TRY(check(call, dx, dy, &bits));
    return pk_repeat_dims(call, pk_f32(dx), pk_f32(dy), dx->ndim, dx->dim, bits, 1.0f,
                          pk_adds(call, 0));
}
} /* namespace */

PK_OP(reduce_sum,
      {"reduce_sum.forward(x: f32; dims: list, keep_dim: bool) -> (y: f32)", reduce_sum_forward},
      {"reduce_sum.backward(dy: f32; dims: list) -> (dx: f32)", reduce_sum_backward});
