/* div: x/y with broadcasting. */
#include "elementwise.h"

PK_INLINE pk_vec quotient(pk_vec x, pk_vec y, const pk_vec *a) {
    (void)a;
    return pk_div(x, y);
}
PK_BROADCAST2(div_forward, "i", quotient)

PK_OP(div, {"div.forward(x: f32, y: f32; axis: int) -> (z: f32)", div_forward});
