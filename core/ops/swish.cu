/* swish: x*s with s = sigmoid(beta*x). */
#include "elementwise.cuh"

namespace {
struct swish {
    float beta;
    PK_DEVICE float operator()(float x) const { return x * pk_sigmoid(beta * x); }
};
struct dswish {
    float beta;
    PK_DEVICE float operator()(float x, float dy) const {
        const float s = pk_sigmoid(beta * x);
        return dy * fmaf(beta * x, fmaf(-s, s, s), s);
    }
};
pk_status swish_forward(const pk_call *call) {
    return pk_map<1>(call, swish{(float)call->attr[0].f});
}
pk_status swish_backward(const pk_call *call) {
    return pk_map<2>(call, dswish{(float)call->attr[0].f});
}
} /* namespace */

PK_OP(swish, {"swish.forward(x: f32; beta: float) -> (y: f32)", swish_forward},
      {"swish.backward(x: f32, dy: f32; beta: float) -> (dx: f32)", swish_backward});
