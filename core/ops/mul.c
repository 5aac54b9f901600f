/* mul: x*y with broadcasting. */
#include "elementwise.h"

PK_INLINE pk_vec mul(pk_vec x, pk_vec y, const pk_vec *a) {
    (void)a;
    return pk_mul(x, y);
}
PK_BROADCAST2(mul_forward, "i", mul)

PK_OP(mul, {"mul.forward(x: f32, y: f32; axis: int) -> (z: f32)", mul_forward});
