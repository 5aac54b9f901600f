/* exp, with its gradient from y: dx = dy*y. */
#include "elementwise.cuh"

namespace {
struct exp_of {
    PK_DEVICE float operator()(float x) const { return expf(x); }
};
struct dexp_of {
    PK_DEVICE float operator()(float y, float dy) const { return dy * y; }
};
pk_status exp_forward(const pk_call *call) { return pk_map<1>(call, exp_of{}); }
pk_status exp_backward(const pk_call *call) { return pk_map<2>(call, dexp_of{}); }
} /* namespace */

PK_OP(exp, {"exp.forward(x: f32) -> (y: f32)", exp_forward},
      {"exp.backward(y: f32, dy: f32) -> (dx: f32)", exp_backward});
