/* elu: x above 0, alpha*(exp(x) - 1) elsewhere. */
#include "elementwise.h"

/* a: alpha */
PK_INLINE pk_vec elu(pk_vec x, const pk_vec *a) {
    return pk_select(pk_gt(x, pk_zero()), x, pk_mul(a[0], pk_expm1_below(x)));
}
PK_INLINE pk_vec delu(pk_vec x, pk_vec dy, const pk_vec *a) {
    return pk_select(pk_gt(x, pk_zero()), dy, pk_mul(dy, pk_mul(a[0], pk_exp(x))));
}
PK_MAP1(elu_forward, "f", elu)
PK_MAP2(elu_backward, "f", delu)

PK_OP(elu, {"elu.forward(x: f32; alpha: float) -> (y: f32)", elu_forward},
      {"elu.backward(x: f32, dy: f32; alpha: float) -> (dx: f32)", elu_backward});
