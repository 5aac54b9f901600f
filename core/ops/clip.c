/* clip: x cut to [low, high], a NaN stays one; the gradient passes strictly inside. */
#include "elementwise.h"

/* a: low, high */
PK_INLINE pk_vec clip(pk_vec x, const pk_vec *a) { return pk_min(a[1], pk_max(a[0], x)); }
PK_INLINE pk_vec dclip(pk_vec x, pk_vec dy, const pk_vec *a) {
    return pk_select(pk_mask_and(pk_gt(x, a[0]), pk_lt(x, a[1])), dy, pk_zero());
}
PK_MAP1(clip_forward, "ff", clip)
PK_MAP2(clip_backward, "ff", dclip)

PK_OP(clip, {"clip.forward(x: f32; low: float, high: float) -> (y: f32)", clip_forward},
      {"clip.backward(x: f32, dy: f32; low: float, high: float) -> (dx: f32)", clip_backward});
