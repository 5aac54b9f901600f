/* softsign: x/(1 + |x|). */
#include "elementwise.cuh"

namespace {
struct softsign {
    PK_DEVICE float operator()(float x) const { return x / (1.0f + fabsf(x)); }
};
struct dsoftsign {
    PK_DEVICE float operator()(float x, float dy) const {
        const float w = 1.0f + fabsf(x);
        return dy / (w * w);
    }
};
pk_status softsign_forward(const pk_call *call) { return pk_map<1>(call, softsign{}); }
pk_status softsign_backward(const pk_call *call) { return pk_map<2>(call, dsoftsign{}); }
} /* namespace */

PK_OP(softsign, {"softsign.forward(x: f32) -> (y: f32)", softsign_forward},
      {"softsign.backward(x: f32, dy: f32) -> (dx: f32)", softsign_backward});
