/* sequence_slice: some rows of each sequence, and back. */
#include "packed.cuh"

namespace {
/* whole: offsets of the whole sequences; some: of the slices */
struct cut_each {
    float *out;
    const float *in;
    const int64_t *whole, *some;
    int64_t sequences, width, start;
    int backwards, add;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t row = e / width, s = pk_sequence_of(backwards ? whole : some, sequences, row);
        const int64_t rows = whole[s + 1] - whole[s];
        int64_t first = start < rows ? start : rows;
        if (start < 0) first = rows + start > 0 ? rows + start : 0;
        if (!backwards) {
            const int64_t from = whole[s] + first + row - some[s];
            pk_put(out + e, in[from * width + e % width], add);
            return;
        }
        const int64_t t = row - whole[s] - first;
        const int there = t >= 0 && t < some[s + 1] - some[s];
        pk_put(out + e, there ? in[(some[s] + t) * width + e % width] : 0.0f, add);
    }
};

pk_status run(const pk_call *call, const pk_view *whole, const pk_view *some, int backwards) {
    PK_TRY(pk_check_packed(call, "x", whole));
    PK_TRY(pk_check_packed(call, "y", some));
    if (whole->sequences != some->sequences || pk_inner(whole, 1) != pk_inner(some, 1))
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld sequences of width %lld, %lld of width %lld",
                       (long long)whole->sequences, (long long)pk_inner(whole, 1),
                       (long long)some->sequences, (long long)pk_inner(some, 1));
    return pk_each(call, pk_count(&call->out[0]),
                   cut_each{pk_f32(&call->out[0]), pk_f32(&call->in[0]), whole->offsets,
                            some->offsets, whole->sequences, pk_inner(whole, 1), call->attr[0].i,
                            backwards, pk_adds(call, 0)});
}
pk_status sequence_slice_forward(const pk_call *call) {
    return run(call, &call->in[0], &call->out[0], 0);
}
pk_status sequence_slice_backward(const pk_call *call) {
    return run(call, &call->out[0], &call->in[0], 1);
}
} /* namespace */

PK_OP(sequence_slice,
      {"sequence_slice.forward(x: f32; start: int, size: int) -> (y: f32)", sequence_slice_forward},
      {"sequence_slice.backward(dy: f32; start: int) -> (dx: f32)", sequence_slice_backward});
