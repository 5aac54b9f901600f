/* elu: x above 0, alpha*(exp(x) - 1) elsewhere. */
#include "elementwise.cuh"

namespace {
struct elu {
    float alpha;
    PK_DEVICE float operator()(float x) const { return x > 0.0f ? x : alpha * expm1f(x); }
};
struct delu {
    float alpha;
    PK_DEVICE float operator()(float x, float dy) const {
        return x > 0.0f ? dy : dy * (alpha * expf(x));
    }
};
pk_status elu_forward(const pk_call *call) { return pk_map<1>(call, elu{(float)call->attr[0].f}); }
pk_status elu_backward(const pk_call *call) {
    return pk_map<2>(call, delu{(float)call->attr[0].f});
}
} /* namespace */

PK_OP(elu, {"elu.forward(x: f32; alpha: float) -> (y: f32)", elu_forward},
      {"elu.backward(x: f32, dy: f32; alpha: float) -> (dx: f32)", elu_backward});
