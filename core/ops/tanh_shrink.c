/* tanh_shrink: x - tanh(x). */
#include "elementwise.h"

PK_INLINE pk_vec tanh_shrink(pk_vec x, const pk_vec *a) {
    (void)a;
    return pk_sub(x, pk_tanh(x));
}
PK_INLINE pk_vec dtanh_shrink(pk_vec x, pk_vec dy, const pk_vec *a) {
    (void)a;
    const pk_vec t = pk_tanh(x);
    return pk_mul(dy, pk_mul(t, t));
}
PK_MAP1(tanh_shrink_forward, "", tanh_shrink)
PK_MAP2(tanh_shrink_backward, "", dtanh_shrink)

PK_OP(tanh_shrink, {"tanh_shrink.forward(x: f32) -> (y: f32)", tanh_shrink_forward},
      {"tanh_shrink.backward(x: f32, dy: f32) -> (dx: f32)", tanh_shrink_backward});
