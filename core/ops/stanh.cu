/* stanh: scale_b*tanh(scale_a*x), with its gradient from y. */
#include "elementwise.cuh"

namespace {
struct stanh {
    float a;
    float b;
    PK_DEVICE float operator()(float x) const { return b * tanhf(a * x); }
};
struct dstanh {
    float a;
    float b;
    PK_DEVICE float operator()(float y, float dy) const {
        const float t = y / b;
        return dy * (a * b) * fmaf(-t, t, 1.0f);
    }
};
pk_status stanh_forward(const pk_call *call) {
    return pk_map<1>(call, stanh{(float)call->attr[0].f, (float)call->attr[1].f});
}
pk_status stanh_backward(const pk_call *call) {
    return pk_map<2>(call, dstanh{(float)call->attr[0].f, (float)call->attr[1].f});
}
} /* namespace */

PK_OP(stanh, {"stanh.forward(x: f32; scale_a: float, scale_b: float) -> (y: f32)", stanh_forward},
      {"stanh.backward(y: f32, dy: f32; scale_a: float, scale_b: float) -> (dx: f32)",
       stanh_backward});
