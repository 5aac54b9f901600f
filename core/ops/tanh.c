/* tanh, with its gradient from y: dx = dy*(1 - y*y). */
#include "elementwise.h"

PK_INLINE pk_vec tanh_of(pk_vec x, const pk_vec *a) {
    (void)a;
    return pk_tanh(x);
}
PK_INLINE pk_vec dtanh(pk_vec y, pk_vec dy, const pk_vec *a) {
    (void)a;
    return pk_mul(dy, pk_fnma(y, y, pk_set1(1.0f)));
}
PK_MAP1(tanh_forward, "", tanh_of)
PK_MAP2(tanh_backward, "", dtanh)

PK_OP(tanh, {"tanh.forward(x: f32) -> (y: f32)", tanh_forward},
      {"tanh.backward(y: f32, dy: f32) -> (dx: f32)", tanh_backward});
