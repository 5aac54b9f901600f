/* hard_swish: x*line/scale, line = x + offset cut to [0, threshold]. */
#include "elementwise.h"

/* a: threshold, scale, offset */
PK_INLINE pk_vec hard_swish(pk_vec x, const pk_vec *a) {
    const pk_vec line = pk_min(a[0], pk_max(pk_zero(), pk_add(x, a[2])));
    return pk_div(pk_mul(x, line), a[1]);
}
/* dx = dy*(line + x inside of the cut)/scale */
PK_INLINE pk_vec dhard_swish(pk_vec x, pk_vec dy, const pk_vec *a) {
    const pk_vec line = pk_add(x, a[2]), cut = pk_min(a[0], pk_max(pk_zero(), line));
    const pk_mask inside = pk_mask_and(pk_gt(line, pk_zero()), pk_lt(line, a[0]));
    return pk_div(pk_mul(dy, pk_add(cut, pk_select(inside, x, pk_zero()))), a[1]);
}
PK_MAP1(hard_swish_forward, "fff", hard_swish)
PK_MAP2(hard_swish_backward, "fff", dhard_swish)

PK_OP(hard_swish,
      {"hard_swish.forward(x: f32; threshold: float, scale: float, offset: float) -> (y: f32)",
       hard_swish_forward},
      {"hard_swish.backward(x: f32, dy: f32; threshold: float, scale: float, offset: float) -> "
       "(dx: f32)",
       hard_swish_backward});
