/* kl_div: x holds log-probabilities, label probabilities; loss = label*(log(label) - x), 0 where
 * the label is not above 0. */
#include "elementwise.cuh"

namespace {
struct loss {
    PK_DEVICE float operator()(float x, float t) const {
        return t > 0.0f ? t * (logf(t) - x) : 0.0f;
    }
};
struct slope {
    PK_DEVICE float operator()(float t, float dloss) const {
        return t > 0.0f ? -(t * dloss) : 0.0f;
    }
};

pk_status forward(const pk_call *call) { return pk_map<2>(call, loss{}); }
pk_status backward_x(const pk_call *call) { return pk_map<2>(call, slope{}); }
} /* namespace */

PK_OP(kl_div, {"kl_div.forward(x: f32, label: f32) -> (loss: f32)", forward},
      {"kl_div.backward_x(label: f32, dloss: f32) -> (dx: f32)", backward_x});
