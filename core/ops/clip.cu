/* clip: x cut to [low, high], a NaN stays one; the gradient passes strictly inside. */
#include "elementwise.cuh"

namespace {
struct clip {
    float low;
    float high;
    PK_DEVICE float operator()(float x) const { return pk_cut(x, low, high); }
};
struct dclip {
    float low;
    float high;
    PK_DEVICE float operator()(float x, float dy) const { return x > low && x < high ? dy : 0.0f; }
};
pk_status clip_forward(const pk_call *call) {
    return pk_map<1>(call, clip{(float)call->attr[0].f, (float)call->attr[1].f});
}
pk_status clip_backward(const pk_call *call) {
    return pk_map<2>(call, dclip{(float)call->attr[0].f, (float)call->attr[1].f});
}
} /* namespace */

PK_OP(clip, {"clip.forward(x: f32; low: float, high: float) -> (y: f32)", clip_forward},
      {"clip.backward(x: f32, dy: f32; low: float, high: float) -> (dx: f32)", clip_backward});
