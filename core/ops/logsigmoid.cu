/* logsigmoid: -log(1 + exp(-x)), never overflowing. */
#include "elementwise.cuh"

namespace {
struct logsigmoid {
    PK_DEVICE float operator()(float x) const { return -pk_softplus(-x); }
};
struct dlogsigmoid {
    PK_DEVICE float operator()(float x, float dy) const { return dy * pk_sigmoid(-x); }
};
pk_status logsigmoid_forward(const pk_call *call) { return pk_map<1>(call, logsigmoid{}); }
pk_status logsigmoid_backward(const pk_call *call) { return pk_map<2>(call, dlogsigmoid{}); }
} /* namespace */

PK_OP(logsigmoid, {"logsigmoid.forward(x: f32) -> (y: f32)", logsigmoid_forward},
      {"logsigmoid.backward(x: f32, dy: f32) -> (dx: f32)", logsigmoid_backward});
