/* logsigmoid: -log(1 + exp(-x)), never overflowing. */
#include "elementwise.h"

PK_INLINE pk_vec logsigmoid(pk_vec x, const pk_vec *a) {
    (void)a;
    return pk_neg(pk_softplus(pk_neg(x)));
}
PK_INLINE pk_vec dlogsigmoid(pk_vec x, pk_vec dy, const pk_vec *a) {
    (void)a;
    return pk_mul(dy, pk_sigmoid(pk_neg(x)));
}
PK_MAP1(logsigmoid_forward, "", logsigmoid)
PK_MAP2(logsigmoid_backward, "", dlogsigmoid)

PK_OP(logsigmoid, {"logsigmoid.forward(x: f32) -> (y: f32)", logsigmoid_forward},
      {"logsigmoid.backward(x: f32, dy: f32) -> (dx: f32)", logsigmoid_backward});
