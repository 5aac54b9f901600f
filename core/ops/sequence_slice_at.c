/* sequence_slice_at: some rows of each sequence, moved to its start, and back. */
#include "packed.h"

/* edges: offsets of the sequences; start, length [sequences] */
typedef struct cut {
    const int64_t *edges, *start, *length;
    int64_t *count;
} cut;

static int64_t rows_of(const cut *c, int64_t s) { return c->edges[s + 1] - c->edges[s]; }
static int64_t first_of(const cut *c, int64_t s) {
    const int64_t rows = rows_of(c, s), start = c->start[s];
    /* rows + start cannot overflow: start is below 0 */
    return start < 0 ? pk_max_i64(rows + start, 0) : pk_min_i64(start, rows);
}
static int64_t taken_of(const cut *c, int64_t s) {
    return pk_min_i64(c->length[s], rows_of(c, s) - first_of(c, s));
}
static pk_piece slice_of(const void *context, int64_t s) {
    const cut *c = context;
    return (pk_piece){c->edges[s], rows_of(c, s), c->edges[s] + first_of(c, s), taken_of(c, s), 1};
}
/* Zeros before the slice, then it and zeros behind it. */
static pk_piece before_of(const void *context, int64_t s) {
    const cut *c = context;
    return (pk_piece){c->edges[s], first_of(c, s), 0, 0, 1};
}
static pk_piece rest_of(const void *context, int64_t s) {
    const cut *c = context;
    const int64_t first = c->edges[s] + first_of(c, s);
    return (pk_piece){first, c->edges[s + 1] - first, c->edges[s], taken_of(c, s), 1};
}

static pk_status find(const pk_call *call, cut *c) {
    const pk_view *x = &call->in[0], *start = &call->in[1], *length = &call->in[2];
    *c = (cut){x->offsets, pk_i64(start), pk_i64(length), NULL};
    pk_status bad = pk_check_packed(call, "x", x);
    if (!bad) bad = pk_check_size(call, "offset", start, x->sequences);
    if (!bad) bad = pk_check_size(call, "length", length, x->sequences);
    if (!bad) bad = pk_check_size(call, "output", &call->out[0], pk_count(x));
    for (int64_t s = 0; !bad && s < x->sequences; s++)
        if (c->length[s] < 0)
            bad = pk_fail(call, PK_BAD_DATA, s, "the length of the slice of sequence %lld is %lld",
                          (long long)s, (long long)c->length[s]);
    return bad;
}

static void move(const pk_call *call, const cut *c, pk_piece_of of) {
    const pk_view *x = &call->in[0];
    const pk_pieces p = {pk_f32(&call->out[0]), pk_f32(x), pk_inner(x, 1), 0.0f, pk_adds(call, 0),
                         of, c};
    pk_move_pieces(call, x->sequences, &p);
}

/* x, offset, length -> y, count */
static pk_status sequence_slice_at_forward(const pk_call *call) {
    cut c;
    pk_status bad = find(call, &c);
    if (!bad) bad = pk_check_size(call, "count", &call->out[1], call->in[0].sequences);
    if (!bad && pk_adds(call, 1)) bad = pk_fail(call, PK_BAD_CALL, -1, "a count cannot be added to");
    if (bad) return bad;
    c.count = pk_i64(&call->out[1]);
    move(call, &c, slice_of);
    for (int64_t s = 0; s < call->in[0].sequences; s++) c.count[s] = taken_of(&c, s);
    return PK_OK;
}
/* dy, offset, length -> dx */
static pk_status sequence_slice_at_backward(const pk_call *call) {
    cut c;
    const pk_status bad = find(call, &c);
    if (bad) return bad;
    move(call, &c, before_of);
    move(call, &c, rest_of);
    return PK_OK;
}

PK_OP(sequence_slice_at,
      {"sequence_slice_at.forward(x: f32, offset: i64, length: i64) -> (y: f32, count: i64)",
       sequence_slice_at_forward},
      {"sequence_slice_at.backward(dy: f32, offset: i64, length: i64) -> (dx: f32)",
       sequence_slice_at_backward});
