/* swish: x*s with s = sigmoid(beta*x). */
#include "elementwise.h"

/* a: beta */
PK_INLINE pk_vec swish(pk_vec x, const pk_vec *a) { return pk_mul(x, pk_sigmoid(pk_mul(a[0], x))); }
/* dx = dy*(s + beta*x*s*(1 - s)) */
PK_INLINE pk_vec dswish(pk_vec x, pk_vec dy, const pk_vec *a) {
    const pk_vec bx = pk_mul(a[0], x), s = pk_sigmoid(bx);
    return pk_mul(dy, pk_fma(bx, pk_fnma(s, s, s), s));
}
PK_MAP1(swish_forward, "f", swish)
PK_MAP2(swish_backward, "f", dswish)

PK_OP(swish, {"swish.forward(x: f32; beta: float) -> (y: f32)", swish_forward},
      {"swish.backward(x: f32, dy: f32; beta: float) -> (dx: f32)", swish_backward});
