/* sequence_reverse: the rows of each sequence in the opposite order. */
#include "packed.h"

static pk_piece reversed(const void *context, int64_t s) {
    const int64_t *offsets = context, rows = offsets[s + 1] - offsets[s];
    return (pk_piece){offsets[s], rows, offsets[s + 1] - 1, rows, -1};
}

/* x, y [T, ...] */
static pk_status sequence_reverse_forward(const pk_call *call) {
    const pk_view *x = &call->in[0];
    pk_status bad = pk_check_packed(call, "x", x);
    if (!bad) bad = pk_check_size(call, "y", &call->out[0], pk_count(x));
    if (bad) return bad;
    const pk_pieces p = {pk_f32(&call->out[0]), pk_f32(x), pk_inner(x, 1), 0.0f, pk_adds(call, 0),
                         reversed, x->offsets};
    pk_move_pieces(call, x->sequences, &p);
    return PK_OK;
}

PK_OP(sequence_reverse,
      {"sequence_reverse.forward(x: f32) -> (y: f32)", sequence_reverse_forward});
