/* scale: a*x + b. */
#include "elementwise.h"

/* a: a, b */
PK_INLINE pk_vec scale(pk_vec x, const pk_vec *a) { return pk_fma(a[0], x, a[1]); }
PK_MAP1(scale_forward, "ff", scale)

PK_OP(scale, {"scale.forward(x: f32; a: float, b: float) -> (y: f32)", scale_forward});
