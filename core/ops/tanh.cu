/* tanh, with its gradient from y: dx = dy*(1 - y*y). */
#include "elementwise.cuh"

namespace {
struct tanh_of {
    PK_DEVICE float operator()(float x) const { return tanhf(x); }
};
struct dtanh_of {
    PK_DEVICE float operator()(float y, float dy) const { return dy * fmaf(-y, y, 1.0f); }
};
pk_status tanh_forward(const pk_call *call) { return pk_map<1>(call, tanh_of{}); }
pk_status tanh_backward(const pk_call *call) { return pk_map<2>(call, dtanh_of{}); }
} /* namespace */

PK_OP(tanh, {"tanh.forward(x: f32) -> (y: f32)", tanh_forward},
      {"tanh.backward(y: f32, dy: f32) -> (dx: f32)", tanh_backward});
