/* rank_loss: o = left - right; loss = log(1 + e^o) - label*o. */
#include "elementwise.cuh"

namespace {
struct loss {
    PK_DEVICE float operator()(float label, float left, float right) const {
        return pk_softplus(left - right) - label * (left - right);
    }
};
/* sign: 1 for left, -1 for right */
struct slope {
    float sign;
    PK_DEVICE float operator()(float label, float left, float right, float dloss) const {
        return (pk_sigmoid(left - right) - label) * sign * dloss;
    }
};

pk_status forward(const pk_call *call) { return pk_map<3>(call, loss{}); }
pk_status backward_left(const pk_call *call) { return pk_map<4>(call, slope{1.0f}); }
pk_status backward_right(const pk_call *call) { return pk_map<4>(call, slope{-1.0f}); }
} /* namespace */

PK_OP(rank_loss, {"rank_loss.forward(label: f32, left: f32, right: f32) -> (loss: f32)", forward},
      {"rank_loss.backward_left(label: f32, left: f32, right: f32, dloss: f32) -> (dleft: f32)",
       backward_left},
      {"rank_loss.backward_right(label: f32, left: f32, right: f32, dloss: f32) -> (dright: f32)",
       backward_right});
