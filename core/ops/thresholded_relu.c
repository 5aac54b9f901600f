/* thresholded_relu: x above the threshold, else 0; a NaN stays one. */
#include "elementwise.h"

/* a: threshold */
PK_INLINE pk_vec above(pk_vec x, const pk_vec *a) {
    return pk_select(pk_le(x, a[0]), pk_zero(), x);
}
PK_INLINE pk_vec dabove(pk_vec x, pk_vec dy, const pk_vec *a) {
    return pk_select(pk_le(x, a[0]), pk_zero(), dy);
}
PK_MAP1(thresholded_relu_forward, "f", above)
PK_MAP2(thresholded_relu_backward, "f", dabove)

PK_OP(thresholded_relu,
      {"thresholded_relu.forward(x: f32; threshold: float) -> (y: f32)", thresholded_relu_forward},
      {"thresholded_relu.backward(x: f32, dy: f32; threshold: float) -> (dx: f32)",
       thresholded_relu_backward});
