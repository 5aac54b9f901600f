/* sequence_pad: packed sequences as rows of one length, and back. */
#include "packed.h"

/* packed [offsets[sequences], width], padded [sequences, steps, width] */
typedef struct pad {
    const int64_t *offsets;
    int64_t steps;
} pad;

static pk_piece padded(const void *context, int64_t s) {
    const pad *p = context;
    const int64_t rows = p->offsets[s + 1] - p->offsets[s];
    return (pk_piece){s * p->steps, p->steps, p->offsets[s], pk_min_i64(rows, p->steps), 1};
}
static pk_piece packed(const void *context, int64_t s) {
    const pad *p = context;
    const int64_t rows = p->offsets[s + 1] - p->offsets[s];
    return (pk_piece){p->offsets[s], rows, s * p->steps, pk_min_i64(rows, p->steps), 1};
}

static pk_status run(const pk_call *call, const pk_view *rows, const pk_view *wide, float fill,
                     pk_piece_of of) {
    const pad p = {rows->offsets, wide->ndim > 1 ? wide->dim[1] : 0};
    const pk_status bad = pk_check_packed(call, "x", rows);
    if (bad) return bad;
    if (wide->ndim < 2 || wide->dim[0] != rows->sequences || pk_inner(wide, 2) != pk_inner(rows, 1))
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "%lld sequences of width %lld, padded %lld of width %lld",
                       (long long)rows->sequences, (long long)pk_inner(rows, 1),
                       (long long)wide->dim[0], (long long)pk_inner(wide, 2));
    const pk_pieces pieces = {pk_f32(&call->out[0]), pk_f32(&call->in[0]), pk_inner(rows, 1), fill,
                              pk_adds(call, 0), of, &p};
    pk_move_pieces(call, rows->sequences, &pieces);
    return PK_OK;
}

static pk_status sequence_pad_forward(const pk_call *call) {
    return run(call, &call->in[0], &call->out[0], (float)call->attr[1].f, padded);
}
/* Rows that were cut off get zeros. */
static pk_status sequence_pad_backward(const pk_call *call) {
    return run(call, &call->out[0], &call->in[0], 0.0f, packed);
}

PK_OP(sequence_pad,
      {"sequence_pad.forward(x: f32; size: int, value: float) -> (y: f32)", sequence_pad_forward},
      {"sequence_pad.backward(dy: f32) -> (dx: f32)", sequence_pad_backward});
