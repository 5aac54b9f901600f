/* label_mask: which labels count. */
#include "pk_cuda.cuh"

namespace {
struct mark {
    int32_t *mask;
    const int64_t *label;
    int64_t ignored;
    PK_DEVICE void operator()(int64_t i) const { mask[i] = label[i] != ignored; }
};

pk_status label_mask_forward(const pk_call *call) {
    const pk_view *label = &call->in[0], *mask = &call->out[0];
    if (pk_count(mask) != pk_count(label))
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld labels, %lld places",
                       (long long)pk_count(label), (long long)pk_count(mask));
    if (pk_adds(call, 0)) return pk_fail(call, PK_BAD_CALL, -1, "a mask cannot be added to");
    return pk_each(call, pk_count(label), mark{pk_i32(mask), pk_i64(label), call->attr[0].i});
}
} /* namespace */

PK_OP(label_mask,
      {"label_mask.forward(label: i64; ignore_index: int) -> (mask: i32)", label_mask_forward});
