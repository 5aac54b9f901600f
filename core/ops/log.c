/* log: the natural logarithm; -inf at 0, NaN below. */
#include "elementwise.h"

PK_INLINE pk_vec log_of(pk_vec x, const pk_vec *a) {
    (void)a;
    return pk_log(x);
}
PK_INLINE pk_vec dlog(pk_vec x, pk_vec dy, const pk_vec *a) {
    (void)a;
    return pk_div(dy, x);
}
PK_MAP1(log_forward, "", log_of)
PK_MAP2(log_backward, "", dlog)

PK_OP(log, {"log.forward(x: f32) -> (y: f32)", log_forward},
      {"log.backward(x: f32, dy: f32) -> (dx: f32)", log_backward});
