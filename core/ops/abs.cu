/* abs: |x|; the gradient at 0 is 0. */
#include "elementwise.cuh"

namespace {
struct abs_of {
    PK_DEVICE float operator()(float x) const { return fabsf(x); }
};
struct dabs_of {
    PK_DEVICE float operator()(float x, float dy) const {
        return x > 0.0f ? dy : x < 0.0f ? -dy : 0.0f;
    }
};
pk_status abs_forward(const pk_call *call) { return pk_map<1>(call, abs_of{}); }
pk_status abs_backward(const pk_call *call) { return pk_map<2>(call, dabs_of{}); }
} /* namespace */

PK_OP(abs, {"abs.forward(x: f32) -> (y: f32)", abs_forward},
      {"abs.backward(x: f32, dy: f32) -> (dx: f32)", abs_backward});
