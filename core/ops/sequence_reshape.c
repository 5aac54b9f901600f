/* sequence_reshape: the numbers of each sequence in rows of another width. */
#include "packed.h"
#include "rows.h"

/* x [T, d], y [T d / width, width] or the other way round: sequences have the same numbers in
 * both. */
static pk_status move(const pk_call *call) {
    const pk_view *x = &call->in[0], *y = &call->out[0];
    pk_status bad = pk_check_packed(call, "x", x);
    if (!bad) bad = pk_check_packed(call, "y", y);
    if (!bad) bad = pk_check_size(call, "y", y, pk_count(x));
    if (!bad && x->sequences != y->sequences)
        bad = pk_fail(call, PK_BAD_SHAPE, -1, "%lld sequences, %lld before",
                      (long long)y->sequences, (long long)x->sequences);
    for (int64_t s = 0; !bad && s < x->sequences; s++)
        if (x->offsets[s] * pk_inner(x, 1) != y->offsets[s] * pk_inner(y, 1))
            bad = pk_fail(call, PK_BAD_SHAPE, s, "sequence %lld begins elsewhere", (long long)s);
    if (bad) return bad;
    const int64_t bytes = pk_count(x) * 4;
    if (x->data != y->data || pk_adds(call, 0))
        pk_move_rows(call, y->data, bytes, x->data, bytes, 1, bytes, pk_adds(call, 0));
    return PK_OK;
}

PK_OP(sequence_reshape, {"sequence_reshape.forward(x: f32; width: int) -> (y: f32)", move},
      {"sequence_reshape.backward(dy: f32) -> (dx: f32)", move});
