/* soft_relu: softplus of x cut to [-threshold, threshold]. */
#include "elementwise.h"

/* a: threshold */
PK_INLINE pk_vec soft_relu(pk_vec x, const pk_vec *a) {
    return pk_softplus(pk_min(a[0], pk_max(pk_neg(a[0]), x)));
}
PK_INLINE pk_vec dsoft_relu(pk_vec x, pk_vec dy, const pk_vec *a) {
    return pk_select(pk_lt(pk_abs(x), a[0]), pk_mul(dy, pk_sigmoid(x)), pk_zero());
}
PK_MAP1(soft_relu_forward, "f", soft_relu)
PK_MAP2(soft_relu_backward, "f", dsoft_relu)

PK_OP(soft_relu, {"soft_relu.forward(x: f32; threshold: float) -> (y: f32)", soft_relu_forward},
      {"soft_relu.backward(x: f32, dy: f32; threshold: float) -> (dx: f32)", soft_relu_backward});
