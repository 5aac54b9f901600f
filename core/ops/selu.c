/* selu: scale*x above 0, scale*alpha*(exp(x) - 1) elsewhere. */
#include "elementwise.h"

/* a: scale, alpha */
PK_INLINE pk_vec selu(pk_vec x, const pk_vec *a) {
    return pk_mul(a[0], pk_select(pk_gt(x, pk_zero()), x, pk_mul(a[1], pk_expm1_below(x))));
}
PK_INLINE pk_vec dselu(pk_vec x, pk_vec dy, const pk_vec *a) {
    const pk_vec slope = pk_select(pk_gt(x, pk_zero()), pk_set1(1.0f), pk_mul(a[1], pk_exp(x)));
    return pk_mul(dy, pk_mul(a[0], slope));
}
PK_MAP1(selu_forward, "ff", selu)
PK_MAP2(selu_backward, "ff", dselu)

PK_OP(selu, {"selu.forward(x: f32; scale: float, alpha: float) -> (y: f32)", selu_forward},
      {"selu.backward(x: f32, dy: f32; scale: float, alpha: float) -> (dx: f32)", selu_backward});
