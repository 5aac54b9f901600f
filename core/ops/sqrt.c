/* sqrt, with its gradient from y: dx = dy/(2*y). */
#include "elementwise.h"

PK_INLINE pk_vec sqrt_of(pk_vec x, const pk_vec *a) {
    (void)a;
    return pk_sqrt(x);
}
PK_INLINE pk_vec dsqrt(pk_vec y, pk_vec dy, const pk_vec *a) {
    (void)a;
    return pk_div(dy, pk_add(y, y));
}
PK_MAP1(sqrt_forward, "", sqrt_of)
PK_MAP2(sqrt_backward, "", dsqrt)

PK_OP(sqrt, {"sqrt.forward(x: f32) -> (y: f32)", sqrt_forward},
      {"sqrt.backward(y: f32, dy: f32) -> (dx: f32)", sqrt_backward});
