/* square: x*x. */
#include "elementwise.cuh"

namespace {
struct square {
    PK_DEVICE float operator()(float x) const { return x * x; }
};
struct dsquare {
    PK_DEVICE float operator()(float x, float dy) const { return dy * (x + x); }
};
pk_status square_forward(const pk_call *call) { return pk_map<1>(call, square{}); }
pk_status square_backward(const pk_call *call) { return pk_map<2>(call, dsquare{}); }
} /* namespace */

PK_OP(square, {"square.forward(x: f32) -> (y: f32)", square_forward},
      {"square.backward(x: f32, dy: f32) -> (dx: f32)", square_backward});
