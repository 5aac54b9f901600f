/* soft_relu: softplus of x cut to [-threshold, threshold]. */
#include "elementwise.cuh"

namespace {
struct soft_relu {
    float threshold;
    PK_DEVICE float operator()(float x) const {
        return pk_softplus(pk_cut(x, -threshold, threshold));
    }
};
struct dsoft_relu {
    float threshold;
    PK_DEVICE float operator()(float x, float dy) const {
        return fabsf(x) < threshold ? dy * pk_sigmoid(x) : 0.0f;
    }
};
pk_status soft_relu_forward(const pk_call *call) {
    return pk_map<1>(call, soft_relu{(float)call->attr[0].f});
}
pk_status soft_relu_backward(const pk_call *call) {
    return pk_map<2>(call, dsoft_relu{(float)call->attr[0].f});
}
} /* namespace */

PK_OP(soft_relu, {"soft_relu.forward(x: f32; threshold: float) -> (y: f32)", soft_relu_forward},
      {"soft_relu.backward(x: f32, dy: f32; threshold: float) -> (dx: f32)", soft_relu_backward});
