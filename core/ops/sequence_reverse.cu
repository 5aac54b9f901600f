/* sequence_reverse: the rows of each sequence in the opposite order. */
#include "packed.cuh"

namespace {
struct reverse_each {
    float *y;
    const float *x;
    const int64_t *offsets;
    int64_t sequences, width;
    int add;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t t = e / width, s = pk_sequence_of(offsets, sequences, t);
        pk_put(y + e, x[(offsets[s] + offsets[s + 1] - 1 - t) * width + e % width], add);
    }
};

pk_status sequence_reverse_forward(const pk_call *call) {
    const pk_view *x = &call->in[0];
    PK_TRY(pk_check_packed(call, "x", x));
    PK_TRY(pk_check_size(call, "y", &call->out[0], pk_count(x)));
    return pk_each(call, pk_count(x),
                   reverse_each{pk_f32(&call->out[0]), pk_f32(x), x->offsets, x->sequences,
                                pk_inner(x, 1), pk_adds(call, 0)});
}
} /* namespace */

PK_OP(sequence_reverse,
      {"sequence_reverse.forward(x: f32) -> (y: f32)", sequence_reverse_forward});
