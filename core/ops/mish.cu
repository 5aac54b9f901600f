/* mish: x*tanh(log(1 + e)) with e = exp(x).  With n = e*(e + 2) the tanh is n/(n + 2): no
 * logarithm.  Above 20 the tanh is 1 in float, and e is kept from overflowing. */
#include "elementwise.cuh"

namespace {
PK_DEVICE float exp_capped(float x) { return expf(x > 20.0f ? 20.0f : x); }

struct mish {
    PK_DEVICE float operator()(float x) const {
        const float e = exp_capped(x), n = e * (e + 2.0f);
        return x * (n / (n + 2.0f));
    }
};
struct dmish {
    PK_DEVICE float operator()(float x, float dy) const {
        const float e = exp_capped(x), n = e * (e + 2.0f), m = 1.0f / (n + 2.0f);
        return dy * fmaf(x, 4.0f * e * m * (e + 1.0f) * m, n * m);
    }
};
pk_status mish_forward(const pk_call *call) { return pk_map<1>(call, mish{}); }
pk_status mish_backward(const pk_call *call) { return pk_map<2>(call, dmish{}); }
} /* namespace */

PK_OP(mish, {"mish.forward(x: f32) -> (y: f32)", mish_forward},
      {"mish.backward(x: f32, dy: f32) -> (dx: f32)", mish_backward});
