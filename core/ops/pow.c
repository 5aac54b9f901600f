/* pow: x to the power y, with broadcasting. */
#include "elementwise.h"

/* exp(y*log|x|) with the sign of a negative x where y is odd, NaN where y is no whole number; x**0
 * is 1. */
PK_INLINE pk_vec power(pk_vec x, pk_vec y) {
    const pk_vec one = pk_set1(1.0f), half = pk_mul(y, pk_set1(0.5f));
    const pk_vec size = pk_exp(pk_mul(y, pk_log(pk_abs(x))));
    const pk_mask odd = pk_ne(pk_floor(half), half), whole = pk_eq(pk_floor(y), y);
    const pk_vec below =
        pk_select(whole, pk_select(odd, pk_neg(size), size), pk_set1(__builtin_nanf("")));
    const pk_vec r = pk_select(pk_lt(x, pk_zero()), below, size);
    return pk_select(pk_eq(y, pk_zero()), one, r);
}
PK_INLINE pk_vec pow_of(pk_vec x, pk_vec y, const pk_vec *a) {
    (void)a;
    return power(x, y);
}
/* dz*y*x^(y - 1) */
PK_INLINE pk_vec dx_of(pk_vec x, pk_vec y, pk_vec dz, const pk_vec *a) {
    (void)a;
    const pk_vec slope = pk_mul(y, power(x, pk_sub(y, pk_set1(1.0f))));
    return pk_mul(dz, pk_select(pk_eq(y, pk_zero()), pk_zero(), slope));
}
/* dz*z*log(x); 0 where z is 0 */
PK_INLINE pk_vec dy_of(pk_vec x, pk_vec y, pk_vec dz, const pk_vec *a) {
    (void)a;
    const pk_vec z = power(x, y);
    return pk_mul(dz, pk_select(pk_eq(z, pk_zero()), pk_zero(), pk_mul(z, pk_log(x))));
}
PK_BROADCAST2(pow_forward, "i", pow_of)
PK_BROADCAST3(pow_backward_x, "i", dx_of)
PK_BROADCAST3(pow_backward_y, "i", dy_of)

PK_OP(pow, {"pow.forward(x: f32, y: f32; axis: int) -> (z: f32)", pow_forward},
      {"pow.backward_x(x: f32, y: f32, dz: f32; axis: int) -> (d: f32)", pow_backward_x},
      {"pow.backward_y(x: f32, y: f32, dz: f32; axis: int) -> (d: f32)", pow_backward_y});
