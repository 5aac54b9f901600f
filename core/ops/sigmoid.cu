/* sigmoid: 1/(1 + exp(-x)), with its gradient from y: dx = dy*y*(1 - y). */
#include "elementwise.cuh"

namespace {
struct logistic {
    PK_DEVICE float operator()(float x) const { return pk_sigmoid(x); }
};
struct dlogistic {
    PK_DEVICE float operator()(float y, float dy) const { return dy * fmaf(-y, y, y); }
};
pk_status sigmoid_forward(const pk_call *call) { return pk_map<1>(call, logistic{}); }
pk_status sigmoid_backward(const pk_call *call) { return pk_map<2>(call, dlogistic{}); }
} /* namespace */

PK_OP(sigmoid, {"sigmoid.forward(x: f32) -> (y: f32)", sigmoid_forward},
      {"sigmoid.backward(y: f32, dy: f32) -> (dx: f32)", sigmoid_backward});
