/* stanh: scale_b*tanh(scale_a*x), with its gradient from y. */
#include "elementwise.h"

/* a: scale_a, scale_b */
PK_INLINE pk_vec stanh(pk_vec x, const pk_vec *a) { return pk_mul(a[1], pk_tanh(pk_mul(a[0], x))); }
/* t = y/b; dx = dy*a*b*(1 - t*t) */
PK_INLINE pk_vec dstanh(pk_vec y, pk_vec dy, const pk_vec *a) {
    const pk_vec t = pk_div(y, a[1]);
    return pk_mul(pk_mul(dy, pk_mul(a[0], a[1])), pk_fnma(t, t, pk_set1(1.0f)));
}
PK_MAP1(stanh_forward, "ff", stanh)
PK_MAP2(stanh_backward, "ff", dstanh)

PK_OP(stanh, {"stanh.forward(x: f32; scale_a: float, scale_b: float) -> (y: f32)", stanh_forward},
      {"stanh.backward(y: f32, dy: f32; scale_a: float, scale_b: float) -> (dx: f32)",
       stanh_backward});
