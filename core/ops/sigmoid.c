/* sigmoid: 1/(1 + exp(-x)), with its gradient from y: dx = dy*y*(1 - y). */
#include "elementwise.h"

PK_INLINE pk_vec sigmoid(pk_vec x, const pk_vec *a) {
    (void)a;
    return pk_sigmoid(x);
}
PK_INLINE pk_vec dsigmoid(pk_vec y, pk_vec dy, const pk_vec *a) {
    (void)a;
    return pk_mul(dy, pk_fnma(y, y, y));
}
PK_MAP1(sigmoid_forward, "", sigmoid)
PK_MAP2(sigmoid_backward, "", dsigmoid)

PK_OP(sigmoid, {"sigmoid.forward(x: f32) -> (y: f32)", sigmoid_forward},
      {"sigmoid.backward(y: f32, dy: f32) -> (dx: f32)", sigmoid_backward});
