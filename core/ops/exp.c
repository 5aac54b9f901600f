/* exp, with its gradient from y: dx = dy*y. */
#include "elementwise.h"

PK_INLINE pk_vec exp_of(pk_vec x, const pk_vec *a) {
    (void)a;
    return pk_exp(x);
}
PK_INLINE pk_vec dexp(pk_vec y, pk_vec dy, const pk_vec *a) {
    (void)a;
    return pk_mul(dy, y);
}
PK_MAP1(exp_forward, "", exp_of)
PK_MAP2(exp_backward, "", dexp)

PK_OP(exp, {"exp.forward(x: f32) -> (y: f32)", exp_forward},
      {"exp.backward(y: f32, dy: f32) -> (dx: f32)", exp_backward});
