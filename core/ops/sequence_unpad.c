/* sequence_unpad: rows of one length packed as another tensor's sequences are, and back. */
#include "packed.h"

/* packed [offsets[sequences], width], padded [sequences, steps, width] */
typedef struct pad {
    const int64_t *offsets;
    int64_t steps;
} pad;

static pk_piece packed(const void *context, int64_t s) {
    const pad *p = context;
    const int64_t rows = p->offsets[s + 1] - p->offsets[s];
    return (pk_piece){p->offsets[s], rows, s * p->steps, rows, 1};
}
static pk_piece padded(const void *context, int64_t s) {
    const pad *p = context;
    return (pk_piece){s * p->steps, p->steps, p->offsets[s], p->offsets[s + 1] - p->offsets[s], 1};
}

/* like: whose offsets count; rows: the packed tensor */
static pk_status run(const pk_call *call, const pk_view *like, const pk_view *rows,
                     const pk_view *wide, pk_piece_of of) {
    const pad p = {like->offsets, wide->ndim > 1 ? wide->dim[1] : 0};
    pk_status bad = pk_check_packed(call, "like", like);
    if (bad) return bad;
    if (wide->ndim < 2 || wide->dim[0] != like->sequences || rows->dim[0] != like->dim[0] ||
        pk_inner(wide, 2) != pk_inner(rows, 1))
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "%lld sequences of width %lld, padded %lld of width %lld",
                       (long long)like->sequences, (long long)pk_inner(rows, 1),
                       (long long)wide->dim[0], (long long)pk_inner(wide, 2));
    for (int64_t s = 0; s < like->sequences; s++)
        if (p.offsets[s + 1] - p.offsets[s] > p.steps)
            return pk_fail(call, PK_BAD_DATA, s, "a sequence of %lld rows, x has %lld of each",
                           (long long)(p.offsets[s + 1] - p.offsets[s]), (long long)p.steps);
    const pk_pieces pieces = {pk_f32(&call->out[0]), pk_f32(&call->in[0]), pk_inner(rows, 1), 0.0f,
                              pk_adds(call, 0), of, &p};
    pk_move_pieces(call, like->sequences, &pieces);
    return PK_OK;
}

static pk_status sequence_unpad_forward(const pk_call *call) {
    return run(call, &call->in[1], &call->out[0], &call->in[0], packed);
}
static pk_status sequence_unpad_backward(const pk_call *call) {
    return run(call, &call->in[0], &call->in[0], &call->out[0], padded);
}

PK_OP(sequence_unpad,
      {"sequence_unpad.forward(x: f32, like: any) -> (y: f32)", sequence_unpad_forward},
      {"sequence_unpad.backward(dy: f32) -> (dx: f32)", sequence_unpad_backward});
