/* sequence_mask: ones where a padded row holds a token. */
#include "pk_kernel.h"

/* x: sequences, or lengths [n]; y [n, size] */
static pk_status sequence_mask_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *y = &call->out[0];
    const int64_t n = x->offsets ? x->sequences : pk_count(x), size = pk_inner(y, 1);
    if (y->dim[0] != n || (!x->offsets && x->dtype != PK_I64))
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld lengths, %lld rows", (long long)n,
                       (long long)y->dim[0]);
    float *mask = pk_f32(y);
    for (int64_t s = 0; s < n; s++) {
        const int64_t length =
            x->offsets ? x->offsets[s + 1] - x->offsets[s] : pk_i64(x)[s];
        if (length < 0)
            return pk_fail(call, PK_BAD_DATA, s, "a length of %lld", (long long)length);
        for (int64_t t = 0; t < size; t++, mask++)
            *mask = (pk_adds(call, 0) ? *mask : 0.0f) + (t < length ? 1.0f : 0.0f);
    }
    return PK_OK;
}

PK_OP(sequence_mask,
      {"sequence_mask.forward(like: any; size: int) -> (y: f32)", sequence_mask_forward});
