/* mean: the mean of all elements; 0 of nothing. */
#include "dims.h"

static float share(int64_t n) { return n > 0 ? (float)(1.0 / (double)n) : 0.0f; }

static pk_status one(const pk_call *call, const pk_view *v) {
    if (pk_count(v) == 1) return PK_OK;
    return pk_fail(call, PK_BAD_SHAPE, -1, "the mean is one element, not %lld",
                   (long long)pk_count(v));
}

static pk_status mean_forward(const pk_call *call) {
    const pk_view *x = &call->in[0];
    const int64_t n = pk_count(x);
    const pk_status bad = one(call, &call->out[0]);
    if (bad) return bad;
    pk_sum_dims(call, pk_f32(&call->out[0]), pk_f32(x), 1, &n, 1u, share(n), pk_adds(call, 0));
    return PK_OK;
}

static pk_status mean_backward(const pk_call *call) {
    const pk_view *dx = &call->out[0];
    const int64_t n = pk_count(dx);
    const pk_status bad = one(call, &call->in[0]);
    if (bad) return bad;
    pk_repeat_dims(call, pk_f32(dx), pk_f32(&call->in[0]), 1, &n, 1u, share(n), pk_adds(call, 0));
    return PK_OK;
}

PK_OP(mean, {"mean.forward(x: f32) -> (y: f32)", mean_forward},
      {"mean.backward(dy: f32) -> (dx: f32)", mean_backward});
