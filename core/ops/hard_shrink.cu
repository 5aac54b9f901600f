/* hard_shrink: x where |x| > threshold, else 0; a NaN stays one. */
#include "elementwise.cuh"

namespace {
struct hard_shrink {
    float threshold;
    PK_DEVICE float operator()(float x) const { return fabsf(x) <= threshold ? 0.0f : x; }
};
struct dhard_shrink {
    float threshold;
    PK_DEVICE float operator()(float x, float dy) const {
        return fabsf(x) <= threshold ? 0.0f : dy;
    }
};
pk_status hard_shrink_forward(const pk_call *call) {
    return pk_map<1>(call, hard_shrink{(float)call->attr[0].f});
}
pk_status hard_shrink_backward(const pk_call *call) {
    return pk_map<2>(call, dhard_shrink{(float)call->attr[0].f});
}
} /* namespace */

PK_OP(hard_shrink,
      {"hard_shrink.forward(x: f32; threshold: float) -> (y: f32)", hard_shrink_forward},
      {"hard_shrink.backward(x: f32, dy: f32; threshold: float) -> (dx: f32)",
       hard_shrink_backward});
