/* tanh_shrink: x - tanh(x). */
#include "elementwise.cuh"

namespace {
struct tanh_shrink {
    PK_DEVICE float operator()(float x) const { return x - tanhf(x); }
};
struct dtanh_shrink {
    PK_DEVICE float operator()(float x, float dy) const {
        const float t = tanhf(x);
        return dy * (t * t);
    }
};
pk_status tanh_shrink_forward(const pk_call *call) { return pk_map<1>(call, tanh_shrink{}); }
pk_status tanh_shrink_backward(const pk_call *call) { return pk_map<2>(call, dtanh_shrink{}); }
} /* namespace */

PK_OP(tanh_shrink, {"tanh_shrink.forward(x: f32) -> (y: f32)", tanh_shrink_forward},
      {"tanh_shrink.backward(x: f32, dy: f32) -> (dx: f32)", tanh_shrink_backward});
