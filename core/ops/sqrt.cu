/* sqrt, with its gradient from y: dx = dy/(2*y). */
#include "elementwise.cuh"

namespace {
struct sqrt_of {
    PK_DEVICE float operator()(float x) const { return sqrtf(x); }
};
struct dsqrt_of {
    PK_DEVICE float operator()(float y, float dy) const { return dy / (y + y); }
};
pk_status sqrt_forward(const pk_call *call) { return pk_map<1>(call, sqrt_of{}); }
pk_status sqrt_backward(const pk_call *call) { return pk_map<2>(call, dsqrt_of{}); }
} /* namespace */

PK_OP(sqrt, {"sqrt.forward(x: f32) -> (y: f32)", sqrt_forward},
      {"sqrt.backward(y: f32, dy: f32) -> (dx: f32)", sqrt_backward});
