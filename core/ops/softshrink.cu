/* softshrink: x moved towards 0 by the threshold, 0 between; a NaN stays one. */
#include "elementwise.cuh"

namespace {
struct softshrink {
    float threshold;
    PK_DEVICE float operator()(float x) const {
        return fabsf(x) <= threshold ? 0.0f : x - copysignf(threshold, x);
    }
};
struct dsoftshrink {
    float threshold;
    PK_DEVICE float operator()(float x, float dy) const {
        return fabsf(x) <= threshold ? 0.0f : dy;
    }
};
pk_status softshrink_forward(const pk_call *call) {
    return pk_map<1>(call, softshrink{(float)call->attr[0].f});
}
pk_status softshrink_backward(const pk_call *call) {
    return pk_map<2>(call, dsoftshrink{(float)call->attr[0].f});
}
} /* namespace */

PK_OP(softshrink, {"softshrink.forward(x: f32; threshold: float) -> (y: f32)", softshrink_forward},
      {"softshrink.backward(x: f32, dy: f32; threshold: float) -> (dx: f32)", softshrink_backward});
