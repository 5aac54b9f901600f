/* huber_loss: d = x - label; d^2/2 where |d| <= delta, else delta*(|d| - delta/2). */
#include "elementwise.cuh"

namespace {
struct huber {
    float delta;
    PK_DEVICE float operator()(float x, float label) const {
        const float a = fabsf(x - label);
        return a > delta ? delta * fmaf(-0.5f, delta, a) : 0.5f * (a * a);
    }
};
/* The slope is d itself, held within [-delta, delta]; sign: 1 for x, -1 for the label. */
struct slope {
    float delta, sign;
    PK_DEVICE float operator()(float x, float label, float dloss) const {
        return pk_cut(x - label, -delta, delta) * sign * dloss;
    }
};

pk_status forward(const pk_call *call) { return pk_map<2>(call, huber{(float)call->attr[0].f}); }
pk_status backward_x(const pk_call *call) {
    return pk_map<3>(call, slope{(float)call->attr[0].f, 1.0f});
}
pk_status backward_label(const pk_call *call) {
    return pk_map<3>(call, slope{(float)call->attr[0].f, -1.0f});
}
} /* namespace */

PK_OP(huber_loss, {"huber_loss.forward(x: f32, label: f32; delta: float) -> (loss: f32)", forward},
      {"huber_loss.backward_x(x: f32, label: f32, dloss: f32; delta: float) -> (dx: f32)",
       backward_x},
      {"huber_loss.backward_label(x: f32, label: f32, dloss: f32; delta: float) -> (dlabel: f32)",
       backward_label});
