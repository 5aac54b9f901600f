/* relu: max(x, 0), a NaN stays one; the gradient passes where y is above 0. */
#include "elementwise.h"

PK_INLINE pk_vec relu(pk_vec x, const pk_vec *a) {
    (void)a;
    return pk_relu(x);
}
PK_INLINE pk_vec drelu(pk_vec y, pk_vec dy, const pk_vec *a) {
    (void)a;
    return pk_select(pk_gt(y, pk_zero()), dy, pk_zero());
}
PK_MAP1(relu_forward, "", relu)
PK_MAP2(relu_backward, "", drelu)

PK_OP(relu, {"relu.forward(x: f32) -> (y: f32)", relu_forward},
      {"relu.backward(y: f32, dy: f32) -> (dx: f32)", relu_backward});
