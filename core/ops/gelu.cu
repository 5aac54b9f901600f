/* gelu: x*P(Z < x) for a standard normal Z, by erf, or by the tanh formula when `approximate` is
 * set. */
#include "elementwise.cuh"

namespace {
PK_DEVICE float cubic() { return 0.044715f; }
PK_DEVICE float root() { return 0.79788456f; } /* sqrt(2/pi) */
PK_DEVICE float share(float x) { return erff(x * 0.70710678f); }
/* u = sqrt(2/pi)*(x + 0.044715 x^3) */
PK_DEVICE float inner(float x) { return root() * x * fmaf(x * x, cubic(), 1.0f); }

struct exact {
    PK_DEVICE float operator()(float x) const { return fmaf(0.5f * x, share(x), 0.5f * x); }
};
/* dx = dy*(P + x*density) */
struct dexact {
    PK_DEVICE float operator()(float x, float dy) const {
        const float p = fmaf(0.5f, share(x), 0.5f), density = 0.39894228f * expf(x * (x * -0.5f));
        return dy * fmaf(x, density, p);
    }
};
struct approximate {
    PK_DEVICE float operator()(float x) const { return fmaf(0.5f * x, tanhf(inner(x)), 0.5f * x); }
};
/* dx = dy*((1 + t)/2 + x/2*(1 - t*t)*du/dx) */
struct dapproximate {
    PK_DEVICE float operator()(float x, float dy) const {
        const float t = tanhf(inner(x)), du = root() * fmaf(x * x, 3.0f * cubic(), 1.0f);
        return dy * fmaf(0.5f * x * fmaf(-t, t, 1.0f), du, 0.5f * (t + 1.0f));
    }
};
pk_status gelu_forward(const pk_call *call) {
    return call->attr[0].i ? pk_map<1>(call, approximate{}) : pk_map<1>(call, exact{});
}
pk_status gelu_backward(const pk_call *call) {
    return call->attr[0].i ? pk_map<2>(call, dapproximate{}) : pk_map<2>(call, dexact{});
}
} /* namespace */

PK_OP(gelu, {"gelu.forward(x: f32; approximate: bool) -> (y: f32)", gelu_forward},
      {"gelu.backward(x: f32, dy: f32; approximate: bool) -> (dx: f32)", gelu_backward});
