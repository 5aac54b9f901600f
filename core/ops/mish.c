/* mish: x*tanh(log(1 + e)) with e = exp(x).  With n = e*(e + 2) the tanh is n/(n + 2): no
 * logarithm.  Above 20 the tanh is 1 in float, and e is kept from overflowing. */
#include "elementwise.h"

PK_INLINE pk_vec exp_capped(pk_vec x) { return pk_exp(pk_min(pk_set1(20.0f), x)); }

PK_INLINE pk_vec mish(pk_vec x, const pk_vec *a) {
    (void)a;
    const pk_vec e = exp_capped(x), two = pk_set1(2.0f), n = pk_mul(e, pk_add(e, two));
    return pk_mul(x, pk_div(n, pk_add(n, two)));
}
/* dx = dy*(t + x*(1 - t*t)*sigmoid(x)), where (1 - t*t)*sigmoid(x) = 4*e*(e + 1)/(n + 2)^2 */
PK_INLINE pk_vec dmish(pk_vec x, pk_vec dy, const pk_vec *a) {
    (void)a;
    const pk_vec e = exp_capped(x), two = pk_set1(2.0f), n = pk_mul(e, pk_add(e, two));
    const pk_vec m = pk_div(pk_set1(1.0f), pk_add(n, two)), e4 = pk_mul(pk_set1(4.0f), e);
    const pk_vec slope = pk_mul(pk_mul(pk_mul(e4, m), pk_add(e, pk_set1(1.0f))), m);
    return pk_mul(dy, pk_fma(x, slope, pk_mul(n, m)));
}
PK_MAP1(mish_forward, "", mish)
PK_MAP2(mish_backward, "", dmish)

PK_OP(mish, {"mish.forward(x: f32) -> (y: f32)", mish_forward},
      {"mish.backward(x: f32, dy: f32) -> (dx: f32)", mish_backward});
