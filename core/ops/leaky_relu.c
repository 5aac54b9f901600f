/* leaky_relu: x above 0, alpha*x elsewhere.  alpha >= 0 (the shape rule says so), so y tells the
 * sign of x. */
#include "elementwise.h"

/* a: alpha */
PK_INLINE pk_vec leaky(pk_vec x, const pk_vec *a) {
    return pk_select(pk_gt(x, pk_zero()), x, pk_mul(x, a[0]));
}
PK_INLINE pk_vec dleaky(pk_vec y, pk_vec dy, const pk_vec *a) {
    return pk_select(pk_gt(y, pk_zero()), dy, pk_mul(dy, a[0]));
}
PK_MAP1(leaky_relu_forward, "f", leaky)
PK_MAP2(leaky_relu_backward, "f", dleaky)

PK_OP(leaky_relu, {"leaky_relu.forward(x: f32; alpha: float) -> (y: f32)", leaky_relu_forward},
      {"leaky_relu.backward(y: f32, dy: f32; alpha: float) -> (dx: f32)", leaky_relu_backward});
