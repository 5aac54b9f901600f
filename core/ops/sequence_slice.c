/* sequence_slice: some rows of each sequence, and back. */
#include "packed.h"

/* whole: offsets of the whole sequences; some: of the slices */
typedef struct cut {
    const int64_t *whole, *some;
    int64_t start;
} cut;

static int64_t first_of(const cut *c, int64_t s) {
    const int64_t rows = c->whole[s + 1] - c->whole[s];
    return c->start < 0 ? pk_max_i64(rows + c->start, 0) : pk_min_i64(c->start, rows);
}
static pk_piece slice_of(const void *context, int64_t s) {
    const cut *c = context;
    const int64_t rows = c->some[s + 1] - c->some[s];
    return (pk_piece){c->some[s], rows, c->whole[s] + first_of(c, s), rows, 1};
}
/* Zeros before the slice, then it and zeros behind it. */
static pk_piece before_of(const void *context, int64_t s) {
    const cut *c = context;
    return (pk_piece){c->whole[s], first_of(c, s), 0, 0, 1};
}
static pk_piece rest_of(const void *context, int64_t s) {
    const cut *c = context;
    const int64_t first = c->whole[s] + first_of(c, s);
    const int64_t rows = c->some[s + 1] - c->some[s];
    return (pk_piece){first, c->whole[s + 1] - first, c->some[s], rows, 1};
}

static pk_status check(const pk_call *call, const pk_view *whole, const pk_view *some, cut *c) {
    *c = (cut){whole->offsets, some->offsets, call->attr[0].i};
    pk_status bad = pk_check_packed(call, "x", whole);
    if (!bad) bad = pk_check_packed(call, "y", some);
    if (bad) return bad;
    if (whole->sequences != some->sequences || pk_inner(whole, 1) != pk_inner(some, 1))
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld sequences of width %lld, %lld of width %lld",
                       (long long)whole->sequences, (long long)pk_inner(whole, 1),
                       (long long)some->sequences, (long long)pk_inner(some, 1));
    for (int64_t s = 0; s < some->sequences; s++) {
        const int64_t left = c->whole[s + 1] - c->whole[s] - first_of(c, s);
        if (c->some[s + 1] - c->some[s] > left)
            return pk_fail(call, PK_BAD_SHAPE, s, "%lld rows of sequence %lld, it has %lld there",
                           (long long)(c->some[s + 1] - c->some[s]), (long long)s, (long long)left);
    }
    return PK_OK;
}

static void move(const pk_call *call, const pk_view *rows, const cut *c, pk_piece_of of) {
    const pk_pieces p = {pk_f32(&call->out[0]), pk_f32(&call->in[0]), pk_inner(rows, 1), 0.0f,
                         pk_adds(call, 0), of, c};
    pk_move_pieces(call, rows->sequences, &p);
}

static pk_status sequence_slice_forward(const pk_call *call) {
    cut c;
    const pk_status bad = check(call, &call->in[0], &call->out[0], &c);
    if (bad) return bad;
    move(call, &call->in[0], &c, slice_of);
    return PK_OK;
}
static pk_status sequence_slice_backward(const pk_call *call) {
    cut c;
    const pk_status bad = check(call, &call->out[0], &call->in[0], &c);
    if (bad) return bad;
    move(call, &call->in[0], &c, before_of);
    move(call, &call->in[0], &c, rest_of);
    return PK_OK;
}

PK_OP(sequence_slice,
      {"sequence_slice.forward(x: f32; start: int, size: int) -> (y: f32)", sequence_slice_forward},
      {"sequence_slice.backward(dy: f32; start: int) -> (dx: f32)", sequence_slice_backward});
