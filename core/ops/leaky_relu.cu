/* leaky_relu: x above 0, alpha*x elsewhere.  alpha >= 0 (the shape rule says so), so y tells the
 * sign of x. */
#include "elementwise.cuh"

namespace {
struct leaky_relu {
    float alpha;
    PK_DEVICE float operator()(float x) const { return x > 0.0f ? x : x * alpha; }
};
struct dleaky_relu {
    float alpha;
    PK_DEVICE float operator()(float y, float dy) const { return y > 0.0f ? dy : dy * alpha; }
};
pk_status leaky_relu_forward(const pk_call *call) {
    return pk_map<1>(call, leaky_relu{(float)call->attr[0].f});
}
pk_status leaky_relu_backward(const pk_call *call) {
    return pk_map<2>(call, dleaky_relu{(float)call->attr[0].f});
}
} /* namespace */

PK_OP(leaky_relu, {"leaky_relu.forward(x: f32; alpha: float) -> (y: f32)", leaky_relu_forward},
      {"leaky_relu.backward(y: f32, dy: f32; alpha: float) -> (dx: f32)", leaky_relu_backward});
