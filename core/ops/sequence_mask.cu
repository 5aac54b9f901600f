/* sequence_mask: ones where a padded row holds a token. */
#include "packed.cuh"

namespace {
struct mask_each {
    float *y;
    const int64_t *offsets, *lengths;
    int64_t size;
    int add;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t s = e / size, length = offsets ? offsets[s + 1] - offsets[s] : lengths[s];
        pk_put(y + e, e % size < length ? 1.0f : 0.0f, add);
    }
};
struct check_length {
    pk_gate gate;
    const int64_t *lengths;
    PK_DEVICE void operator()(int64_t s) const {
        if (lengths[s] < 0) pk_fault_at(gate, "a length of %lld", s, lengths[s], 0);
    }
};

/* x: sequences, or lengths [n]; y [n, size] */
pk_status sequence_mask_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *y = &call->out[0];
    const int64_t n = x->offsets ? x->sequences : pk_count(x);
    if (y->dim[0] != n || (!x->offsets && x->dtype != PK_I64))
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld lengths, %lld rows", (long long)n,
                       (long long)y->dim[0]);
    if (!x->offsets) {
        const pk_gate gate = pk_gate_of(call);
        PK_TRY(pk_each_behind(call, gate, n, check_length{gate, pk_i64(x)}));
    }
    return pk_each(call, pk_count(y),
                   mask_each{pk_f32(y), x->offsets, x->offsets ? NULL : pk_i64(x), pk_inner(y, 1),
                             pk_adds(call, 0)});
}
} /* namespace */

PK_OP(sequence_mask,
      {"sequence_mask.forward(like: any; size: int) -> (y: f32)", sequence_mask_forward});
