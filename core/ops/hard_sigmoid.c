/* hard_sigmoid: slope*x + offset, cut to [0, 1]. */
#include "elementwise.h"

/* a: slope, offset */
PK_INLINE pk_vec hard_sigmoid(pk_vec x, const pk_vec *a) {
    return pk_min(pk_set1(1.0f), pk_max(pk_zero(), pk_fma(a[0], x, a[1])));
}
PK_INLINE pk_vec dhard_sigmoid(pk_vec x, pk_vec dy, const pk_vec *a) {
    const pk_vec line = pk_fma(a[0], x, a[1]);
    const pk_mask inside = pk_mask_and(pk_gt(line, pk_zero()), pk_lt(line, pk_set1(1.0f)));
    return pk_select(inside, pk_mul(dy, a[0]), pk_zero());
}
PK_MAP1(hard_sigmoid_forward, "ff", hard_sigmoid)
PK_MAP2(hard_sigmoid_backward, "ff", dhard_sigmoid)

PK_OP(hard_sigmoid,
      {"hard_sigmoid.forward(x: f32; slope: float, offset: float) -> (y: f32)",
       hard_sigmoid_forward},
      {"hard_sigmoid.backward(x: f32, dy: f32; slope: float, offset: float) -> (dx: f32)",
       hard_sigmoid_backward});
