/* selu: scale*x above 0, scale*alpha*(exp(x) - 1) elsewhere. */
#include "elementwise.cuh"

namespace {
struct selu {
    float scale;
    float alpha;
    PK_DEVICE float operator()(float x) const { return scale * (x > 0.0f ? x : alpha * expm1f(x)); }
};
struct dselu {
    float scale;
    float alpha;
    PK_DEVICE float operator()(float x, float dy) const {
        return dy * (scale * (x > 0.0f ? 1.0f : alpha * expf(x)));
    }
};
pk_status selu_forward(const pk_call *call) {
    return pk_map<1>(call, selu{(float)call->attr[0].f, (float)call->attr[1].f});
}
pk_status selu_backward(const pk_call *call) {
    return pk_map<2>(call, dselu{(float)call->attr[0].f, (float)call->attr[1].f});
}
} /* namespace */

PK_OP(selu, {"selu.forward(x: f32; scale: float, alpha: float) -> (y: f32)", selu_forward},
      {"selu.backward(x: f32, dy: f32; scale: float, alpha: float) -> (dx: f32)", selu_backward});
