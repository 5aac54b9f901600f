/* mean: the mean of all elements; 0 of nothing. */
#include "reductions.cuh"

namespace {
float share(int64_t n) { return n > 0 ? (float)(1.0 / (double)n) : 0.0f; }
pk_status one(const pk_call *call, const pk_view *v) {
    if (pk_count(v) == 1) return PK_OK;
    return pk_fail(call, PK_BAD_SHAPE, -1, "the mean is one element, not %lld",
                   (long long)pk_count(v));
}

pk_status mean_forward(const pk_call *call) {
    const int64_t n = pk_count(&call->in[0]);
    PK_TRY(one(call, &call->out[0]));
    return pk_sum_dims(call, pk_f32(&call->out[0]), pk_f32(&call->in[0]), 1, &n, 1u, share(n),
                       pk_adds(call, 0));
}
pk_status mean_backward(const pk_call *call) {
    const int64_t n = pk_count(&call->out[0]);
    PK_TRY(one(call, &call->in[0]));
    return pk_repeat_dims(call, pk_f32(&call->out[0]), pk_f32(&call->in[0]), 1, &n, 1u, share(n),
                          pk_adds(call, 0));
}
} /* namespace */

PK_OP(mean, {"mean.forward(x: f32) -> (y: f32)", mean_forward},
      {"mean.backward(dy: f32) -> (dx: f32)", mean_backward});
