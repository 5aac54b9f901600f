/* margin_rank_loss: loss = max(0, margin - label*(left - right)), label +1 or -1. */
#include "elementwise.cuh"

namespace {
struct loss {
    float margin;
    PK_DEVICE float operator()(float label, float left, float right) const {
        return pk_relu(fmaf(-label, left - right, margin));
    }
};
/* sign: -1 for left, 1 for right */
struct slope {
    float margin, sign;
    PK_DEVICE float operator()(float label, float left, float right, float dloss) const {
        return fmaf(-label, left - right, margin) > 0.0f ? label * sign * dloss : 0.0f;
    }
};

pk_status forward(const pk_call *call) { return pk_map<3>(call, loss{(float)call->attr[0].f}); }
pk_status backward_left(const pk_call *call) {
    return pk_map<4>(call, slope{(float)call->attr[0].f, -1.0f});
}
pk_status backward_right(const pk_call *call) {
    return pk_map<4>(call, slope{(float)call->attr[0].f, 1.0f});
}
} /* namespace */

PK_OP(
    margin_rank_loss,
    {"margin_rank_loss.forward(label: f32, left: f32, right: f32; margin: float) -> (loss: f32)",
     forward},
    {"margin_rank_loss.backward_left(label: f32, left: f32, right: f32, dloss: f32; margin: float) -> (dleft: f32)",
     backward_left},
    {"margin_rank_loss.backward_right(label: f32, left: f32, right: f32, dloss: f32; margin: float) -> (dright: f32)",
     backward_right});
