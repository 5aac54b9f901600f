/* sequence_reshape: the numbers of each sequence in rows of another width. */
#include "packed.cuh"

namespace {
/* x [T, d], y [T d / width, width] or the other way round: sequences have the same numbers in
 * both. */
pk_status move(const pk_call *call) {
    const pk_view *x = &call->in[0], *y = &call->out[0];
    PK_TRY(pk_check_packed(call, "x", x));
    PK_TRY(pk_check_packed(call, "y", y));
    PK_TRY(pk_check_size(call, "y", y, pk_count(x)));
    if (x->sequences != y->sequences)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld sequences, %lld before",
                       (long long)y->sequences, (long long)x->sequences);
    return pk_move_view(call, y, x, pk_adds(call, 0));
}
} /* namespace */

PK_OP(sequence_reshape, {"sequence_reshape.forward(x: f32; width: int) -> (y: f32)", move},
      {"sequence_reshape.backward(dy: f32) -> (dx: f32)", move});
