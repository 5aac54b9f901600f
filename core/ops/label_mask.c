/* label_mask: which labels count. */
#include "pk_kernel.h"

/* label, mask: n elements. A loop over bytes that are in the cache: not worth threads. */
static pk_status label_mask_forward(const pk_call *call) {
    const pk_view *label = &call->in[0], *mask = &call->out[0];
    const int64_t n = pk_count(label), ignored = call->attr[0].i;
    if (pk_count(mask) != n)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld labels, %lld places", (long long)n,
                       (long long)pk_count(mask));
    if (pk_adds(call, 0)) return pk_fail(call, PK_BAD_CALL, -1, "a mask cannot be added to");
    for (int64_t i = 0; i < n; i++) pk_i32(mask)[i] = pk_i64(label)[i] != ignored;
    return PK_OK;
}

PK_OP(label_mask, {"label_mask.forward(label: i64; ignore_index: int) -> (mask: i32)", label_mask_forward});
