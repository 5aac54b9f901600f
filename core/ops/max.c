/* max: the larger of x and y, with broadcasting; a NaN wins.  Where they are equal the gradient
 * goes to y. */
#include "elementwise.h"

PK_INLINE pk_vec max(pk_vec x, pk_vec y, const pk_vec *a) {
    (void)a;
    return pk_select(pk_mask_or(pk_gt(x, y), pk_is_nan(x)), x, y);
}
/* The gradient of x, of y, before any sum over spread dimensions. */
PK_INLINE pk_vec dx_of(pk_vec x, pk_vec y, pk_vec dz, const pk_vec *a) {
    (void)a;
    return pk_select(pk_gt(x, y), dz, pk_zero());
}
PK_INLINE pk_vec dy_of(pk_vec x, pk_vec y, pk_vec dz, const pk_vec *a) {
    (void)a;
    return pk_select(pk_ge(y, x), dz, pk_zero());
}
PK_BROADCAST2(max_forward, "i", max)
PK_BROADCAST3(max_backward_x, "i", dx_of)
PK_BROADCAST3(max_backward_y, "i", dy_of)

PK_OP(max, {"max.forward(x: f32, y: f32; axis: int) -> (z: f32)", max_forward},
      {"max.backward_x(x: f32, y: f32, dz: f32; axis: int) -> (d: f32)", max_backward_x},
      {"max.backward_y(x: f32, y: f32, dz: f32; axis: int) -> (d: f32)", max_backward_y});
