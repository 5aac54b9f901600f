/* sub: x - y with broadcasting. */
#include "elementwise.h"

PK_INLINE pk_vec sub(pk_vec x, pk_vec y, const pk_vec *a) {
    (void)a;
    return pk_sub(x, y);
}
PK_BROADCAST2(sub_forward, "i", sub)

PK_OP(sub, {"sub.forward(x: f32, y: f32; axis: int) -> (z: f32)", sub_forward});
