/* abs: |x|; the gradient at 0 is 0. */
#include "elementwise.h"

PK_INLINE pk_vec abs_of(pk_vec x, const pk_vec *a) {
    (void)a;
    return pk_abs(x);
}
PK_INLINE pk_vec dabs(pk_vec x, pk_vec dy, const pk_vec *a) {
    (void)a;
    const pk_vec down = pk_select(pk_lt(x, pk_zero()), pk_neg(dy), pk_zero());
    return pk_select(pk_gt(x, pk_zero()), dy, down);
}
PK_MAP1(abs_forward, "", abs_of)
PK_MAP2(abs_backward, "", dabs)

PK_OP(abs, {"abs.forward(x: f32) -> (y: f32)", abs_forward},
      {"abs.backward(x: f32, dy: f32) -> (dx: f32)", abs_backward});
