/* relu: max(x, 0), a NaN stays one; the gradient passes where y is above 0. */
#include "elementwise.cuh"

namespace {
struct relu {
    PK_DEVICE float operator()(float x) const { return pk_relu(x); }
};
struct drelu {
    PK_DEVICE float operator()(float y, float dy) const { return y > 0.0f ? dy : 0.0f; }
};
pk_status relu_forward(const pk_call *call) { return pk_map<1>(call, relu{}); }
pk_status relu_backward(const pk_call *call) { return pk_map<2>(call, drelu{}); }
} /* namespace */

PK_OP(relu, {"relu.forward(x: f32) -> (y: f32)", relu_forward},
      {"relu.backward(y: f32, dy: f32) -> (dx: f32)", relu_backward});
