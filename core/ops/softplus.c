/* softplus: log(1 + exp(x)), never overflowing. */
#include "elementwise.h"

PK_INLINE pk_vec softplus(pk_vec x, const pk_vec *a) {
    (void)a;
    return pk_softplus(x);
}
PK_INLINE pk_vec dsoftplus(pk_vec x, pk_vec dy, const pk_vec *a) {
    (void)a;
    return pk_mul(dy, pk_sigmoid(x));
}
PK_MAP1(softplus_forward, "", softplus)
PK_MAP2(softplus_backward, "", dsoftplus)

PK_OP(softplus, {"softplus.forward(x: f32) -> (y: f32)", softplus_forward},
      {"softplus.backward(x: f32, dy: f32) -> (dx: f32)", softplus_backward});
