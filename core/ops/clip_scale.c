/* clip_scale: the factor limit / max(limit, norm) that brings a norm down to the limit. */
#include "pk_kernel.h"

/* norm [n] -> factor [n]: exactly 1 below the limit; a NaN stays one, infinity gives 0. */
static pk_status forward(const pk_call *call) {
    const int64_t n = pk_count(&call->in[0]);
    if (pk_count(&call->out[0]) != n)
        return pk_fail(call, PK_BAD_SHAPE, -1, "norm has %lld elements, factor %lld", (long long)n,
                       (long long)pk_count(&call->out[0]));
    const float *norm = pk_f32(&call->in[0]), limit = (float)call->attr[0].f;
    float *factor = pk_f32(&call->out[0]);
    for (int64_t i = 0; i < n; i++) {
        const float value = norm[i] <= limit ? 1.0f : limit / norm[i];
        factor[i] = pk_adds(call, 0) ? factor[i] + value : value;
    }
    return PK_OK;
}

PK_OP(clip_scale, {"clip_scale.forward(norm: f32; limit: float) -> (factor: f32)", forward});
