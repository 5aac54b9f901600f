/* clip_scale: the factor limit / max(limit, norm) that brings a norm down to the limit. */
#include "elementwise.cuh"

namespace {
struct bring_down {
    float limit;
    PK_DEVICE float operator()(float norm) const { return norm <= limit ? 1.0f : limit / norm; }
};

/* norm [n] -> factor [n]: exactly 1 below the limit; a NaN stays one, infinity gives 0. */
pk_status forward(const pk_call *call) {
    return pk_map<1>(call, bring_down{(float)call->attr[0].f});
}
} /* namespace */

PK_OP(clip_scale, {"clip_scale.forward(norm: f32; limit: float) -> (factor: f32)", forward});
