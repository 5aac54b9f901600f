/* softplus: log(1 + exp(x)), never overflowing. */
#include "elementwise.cuh"

namespace {
struct softplus {
    PK_DEVICE float operator()(float x) const { return pk_softplus(x); }
};
struct dsoftplus {
    PK_DEVICE float operator()(float x, float dy) const { return dy * pk_sigmoid(x); }
};
pk_status softplus_forward(const pk_call *call) { return pk_map<1>(call, softplus{}); }
pk_status softplus_backward(const pk_call *call) { return pk_map<2>(call, dsoftplus{}); }
} /* namespace */

PK_OP(softplus, {"softplus.forward(x: f32) -> (y: f32)", softplus_forward},
      {"softplus.backward(x: f32, dy: f32) -> (dx: f32)", softplus_backward});
