/* log_loss: x is a probability; loss = -label*log(x + epsilon) - (1 - label)*log(1 - x + epsilon).
 */
#include "elementwise.cuh"

namespace {
struct loss {
    float e;
    PK_DEVICE float operator()(float x, float t) const {
        return -(t * logf(x + e) + (1.0f - t) * logf(1.0f - x + e));
    }
};
struct slope {
    float e;
    PK_DEVICE float operator()(float x, float t, float dloss) const {
        return ((1.0f - t) / (1.0f - x + e) - t / (x + e)) * dloss;
    }
};

pk_status forward(const pk_call *call) { return pk_map<2>(call, loss{(float)call->attr[0].f}); }
pk_status backward_x(const pk_call *call) { return pk_map<3>(call, slope{(float)call->attr[0].f}); }
} /* namespace */

PK_OP(log_loss, {"log_loss.forward(x: f32, label: f32; epsilon: float) -> (loss: f32)", forward},
      {"log_loss.backward_x(x: f32, label: f32, dloss: f32; epsilon: float) -> (dx: f32)",
       backward_x});
