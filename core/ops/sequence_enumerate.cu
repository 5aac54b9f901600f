/* sequence_enumerate: the window of ids that starts at each token. */
#include "packed.cuh"

namespace {
struct window_each {
    int64_t *y; /* [tokens, size] */
    const int64_t *x, *offsets;
    int64_t sequences, size, pad;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t t = e / size, from = t + e % size;
        y[e] = from < offsets[pk_sequence_of(offsets, sequences, t) + 1] ? x[from] : pad;
    }
};

pk_status sequence_enumerate_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *y = &call->out[0];
    const int64_t size = call->attr[0].i;
    PK_TRY(pk_check_packed(call, "x", x));
    PK_TRY(pk_check_size(call, "x", x, x->dim[0]));
    if (y->ndim != 2 || y->dim[0] != x->dim[0] || y->dim[1] != size)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld windows of %lld ids for %lld tokens",
                       (long long)y->dim[0], (long long)pk_inner(y, 1), (long long)x->dim[0]);
    if (pk_adds(call, 0)) return pk_fail(call, PK_BAD_CALL, -1, "an id cannot be added to");
    return pk_each(call, pk_count(y),
                   window_each{pk_i64(y), pk_i64(x), x->offsets, x->sequences, size,
                               call->attr[1].i});
}
} /* namespace */

PK_OP(sequence_enumerate, {"sequence_enumerate.forward(x: i64; size: int, pad: int) -> (y: i64)",
                           sequence_enumerate_forward});
