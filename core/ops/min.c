/* min: the smaller of x and y, with broadcasting; a NaN wins.  Where they are equal the gradient
 * goes to y. */
#include "elementwise.h"

PK_INLINE pk_vec min(pk_vec x, pk_vec y, const pk_vec *a) {
    (void)a;
    return pk_select(pk_mask_or(pk_lt(x, y), pk_is_nan(x)), x, y);
}
/* The gradient of x, of y, before any sum over spread dimensions. */
PK_INLINE pk_vec dx_of(pk_vec x, pk_vec y, pk_vec dz, const pk_vec *a) {
    (void)a;
    return pk_select(pk_lt(x, y), dz, pk_zero());
}
PK_INLINE pk_vec dy_of(pk_vec x, pk_vec y, pk_vec dz, const pk_vec *a) {
    (void)a;
    return pk_select(pk_le(y, x), dz, pk_zero());
}
PK_BROADCAST2(min_forward, "i", min)
PK_BROADCAST3(min_backward_x, "i", dx_of)
PK_BROADCAST3(min_backward_y, "i", dy_of)

PK_OP(min, {"min.forward(x: f32, y: f32; axis: int) -> (z: f32)", min_forward},
      {"min.backward_x(x: f32, y: f32, dz: f32; axis: int) -> (d: f32)", min_backward_x},
      {"min.backward_y(x: f32, y: f32, dz: f32; axis: int) -> (d: f32)", min_backward_y});
