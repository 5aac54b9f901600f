/* square: x*x. */
#include "elementwise.h"

PK_INLINE pk_vec square(pk_vec x, const pk_vec *a) {
    (void)a;
    return pk_mul(x, x);
}
PK_INLINE pk_vec dsquare(pk_vec x, pk_vec dy, const pk_vec *a) {
    (void)a;
    return pk_mul(dy, pk_add(x, x));
}
PK_MAP1(square_forward, "", square)
PK_MAP2(square_backward, "", dsquare)

PK_OP(square, {"square.forward(x: f32) -> (y: f32)", square_forward},
      {"square.backward(x: f32, dy: f32) -> (dx: f32)", square_backward});
