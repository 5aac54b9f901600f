/* gelu: x*P(Z < x) for a standard normal Z, by erf, or by the tanh formula when `approximate` is
 * set. */
#include "elementwise.h"

#define SQRT_HALF 0.70710678f      /* 1/sqrt(2) */
#define SQRT_2_PI 0.79788456f      /* sqrt(2/pi) */
#define DENSITY_0 0.39894228f      /* 1/sqrt(2*pi) */
#define CUBIC 0.044715f

PK_INLINE pk_vec half(pk_vec x) { return pk_mul(x, pk_set1(0.5f)); }

PK_INLINE pk_vec gelu_exact(pk_vec x, const pk_vec *a) {
    (void)a;
    const pk_vec e = pk_erf(pk_mul(x, pk_set1(SQRT_HALF)));
    return pk_fma(half(x), e, half(x));
}
/* dx = dy*(P + x*density) */
PK_INLINE pk_vec dgelu_exact(pk_vec x, pk_vec dy, const pk_vec *a) {
    (void)a;
    const pk_vec p = pk_fma(pk_set1(0.5f), pk_erf(pk_mul(x, pk_set1(SQRT_HALF))), pk_set1(0.5f));
    const pk_vec density = pk_mul(pk_set1(DENSITY_0), pk_exp(pk_mul(x, pk_mul(x, pk_set1(-0.5f)))));
    return pk_mul(dy, pk_fma(x, density, p));
}

/* u = sqrt(2/pi)*(x + 0.044715 x^3) */
PK_INLINE pk_vec inner(pk_vec x) {
    return pk_mul(pk_mul(pk_set1(SQRT_2_PI), x),
                  pk_fma(pk_mul(x, x), pk_set1(CUBIC), pk_set1(1.0f)));
}
PK_INLINE pk_vec gelu_tanh(pk_vec x, const pk_vec *a) {
    (void)a;
    return pk_fma(half(x), pk_tanh(inner(x)), half(x));
}
/* dx = dy*((1 + t)/2 + x/2*(1 - t*t)*du/dx) */
PK_INLINE pk_vec dgelu_tanh(pk_vec x, pk_vec dy, const pk_vec *a) {
    (void)a;
    const pk_vec t = pk_tanh(inner(x)), one = pk_set1(1.0f);
    const pk_vec du = pk_mul(pk_set1(SQRT_2_PI), pk_fma(pk_mul(x, x), pk_set1(3.0f * CUBIC), one));
    return pk_mul(dy, pk_fma(pk_mul(half(x), pk_fnma(t, t, one)), du, half(pk_add(t, one))));
}
PK_MAP1(gelu_exact_forward, "", gelu_exact)
PK_MAP2(gelu_exact_backward, "", dgelu_exact)
PK_MAP1(gelu_tanh_forward, "", gelu_tanh)
PK_MAP2(gelu_tanh_backward, "", dgelu_tanh)

static pk_status gelu_forward(const pk_call *call) {
    return call->attr[0].i ? gelu_tanh_forward(call) : gelu_exact_forward(call);
}
static pk_status gelu_backward(const pk_call *call) {
    return call->attr[0].i ? gelu_tanh_backward(call) : gelu_exact_backward(call);
}

PK_OP(gelu, {"gelu.forward(x: f32; approximate: bool) -> (y: f32)", gelu_forward},
      {"gelu.backward(x: f32, dy: f32; approximate: bool) -> (dx: f32)", gelu_backward});
