/* softshrink: x moved towards 0 by the threshold, 0 between; a NaN stays one. */
#include "elementwise.h"

/* a: threshold */
PK_INLINE pk_vec softshrink(pk_vec x, const pk_vec *a) {
    const pk_vec moved = pk_sub(x, pk_copysign(a[0], x));
    return pk_select(pk_le(pk_abs(x), a[0]), pk_zero(), moved);
}
PK_INLINE pk_vec dsoftshrink(pk_vec x, pk_vec dy, const pk_vec *a) {
    return pk_select(pk_le(pk_abs(x), a[0]), pk_zero(), dy);
}
PK_MAP1(softshrink_forward, "f", softshrink)
PK_MAP2(softshrink_backward, "f", dsoftshrink)

PK_OP(softshrink, {"softshrink.forward(x: f32; threshold: float) -> (y: f32)", softshrink_forward},
      {"softshrink.backward(x: f32, dy: f32; threshold: float) -> (dx: f32)", softshrink_backward});
