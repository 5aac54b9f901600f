/* thresholded_relu: x above the threshold, else 0; a NaN stays one. */
#include "elementwise.cuh"

namespace {
struct thresholded_relu {
    float threshold;
    PK_DEVICE float operator()(float x) const { return x <= threshold ? 0.0f : x; }
};
struct dthresholded_relu {
    float threshold;
    PK_DEVICE float operator()(float x, float dy) const { return x <= threshold ? 0.0f : dy; }
};
pk_status thresholded_relu_forward(const pk_call *call) {
    return pk_map<1>(call, thresholded_relu{(float)call->attr[0].f});
}
pk_status thresholded_relu_backward(const pk_call *call) {
    return pk_map<2>(call, dthresholded_relu{(float)call->attr[0].f});
}
} /* namespace */

PK_OP(thresholded_relu,
      {"thresholded_relu.forward(x: f32; threshold: float) -> (y: f32)", thresholded_relu_forward},
      {"thresholded_relu.backward(x: f32, dy: f32; threshold: float) -> (dx: f32)",
       thresholded_relu_backward});
