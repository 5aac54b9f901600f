/* softsign: x/(1 + |x|). */
#include "elementwise.h"

PK_INLINE pk_vec softsign(pk_vec x, const pk_vec *a) {
    (void)a;
    return pk_div(x, pk_add(pk_set1(1.0f), pk_abs(x)));
}
PK_INLINE pk_vec dsoftsign(pk_vec x, pk_vec dy, const pk_vec *a) {
    (void)a;
    const pk_vec w = pk_add(pk_set1(1.0f), pk_abs(x));
    return pk_div(dy, pk_mul(w, w));
}
PK_MAP1(softsign_forward, "", softsign)
PK_MAP2(softsign_backward, "", dsoftsign)

PK_OP(softsign, {"softsign.forward(x: f32) -> (y: f32)", softsign_forward},
      {"softsign.backward(x: f32, dy: f32) -> (dx: f32)", softsign_backward});
