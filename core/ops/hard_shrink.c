/* hard_shrink: x where |x| > threshold, else 0; a NaN stays one. */
#include "elementwise.h"

/* a: threshold */
PK_INLINE pk_vec hard_shrink(pk_vec x, const pk_vec *a) {
    return pk_select(pk_le(pk_abs(x), a[0]), pk_zero(), x);
}
PK_INLINE pk_vec dhard_shrink(pk_vec x, pk_vec dy, const pk_vec *a) {
    return pk_select(pk_le(pk_abs(x), a[0]), pk_zero(), dy);
}
PK_MAP1(hard_shrink_forward, "f", hard_shrink)
PK_MAP2(hard_shrink_backward, "f", dhard_shrink)

PK_OP(hard_shrink,
      {"hard_shrink.forward(x: f32; threshold: float) -> (y: f32)", hard_shrink_forward},
      {"hard_shrink.backward(x: f32, dy: f32; threshold: float) -> (dx: f32)",
       hard_shrink_backward});
