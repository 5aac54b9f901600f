/* sequence_concat: the sequences of several tensors one behind the other, and apart again. */
#include "packed.h"

/* The parts stand among the inputs (forwards) or the outputs; y: all together. */
typedef struct joint {
    const pk_view *parts, *y;
    int32_t count, part;
    int backwards;
} joint;

static pk_piece piece_of(const void *context, int64_t s) {
    const joint *j = context;
    const int64_t *own = j->parts[j->part].offsets, rows = own[s + 1] - own[s];
    int64_t at = j->y->offsets[s];
    for (int32_t i = 0; i < j->part; i++)
        at += j->parts[i].offsets[s + 1] - j->parts[i].offsets[s];
    if (j->backwards) return (pk_piece){own[s], rows, at, rows, 1};
    return (pk_piece){at, rows, own[s], rows, 1};
}

static pk_status check(const pk_call *call, const joint *j) {
    pk_status bad = pk_check_packed(call, "y", j->y);
    for (int32_t i = 0; !bad && i < j->count; i++) {
        bad = pk_check_packed(call, "a part", &j->parts[i]);
        if (!bad && (j->parts[i].sequences != j->y->sequences ||
                     pk_inner(&j->parts[i], 1) != pk_inner(j->y, 1)))
            bad = pk_fail(call, PK_BAD_SHAPE, -1,
                          "part %d has %lld sequences of width %lld, y %lld of width %lld", (int)i,
                          (long long)j->parts[i].sequences, (long long)pk_inner(&j->parts[i], 1),
                          (long long)j->y->sequences, (long long)pk_inner(j->y, 1));
    }
    for (int64_t s = 0; !bad && s < j->y->sequences; s++) {
        int64_t rows = 0;
        for (int32_t i = 0; i < j->count; i++)
            rows += j->parts[i].offsets[s + 1] - j->parts[i].offsets[s];
        if (rows != j->y->offsets[s + 1] - j->y->offsets[s])
            bad = pk_fail(call, PK_BAD_SHAPE, s, "sequence %lld has %lld rows, its parts %lld",
                          (long long)s, (long long)(j->y->offsets[s + 1] - j->y->offsets[s]),
                          (long long)rows);
    }
    return bad;
}

static pk_status run(const pk_call *call, joint *j) {
    const pk_status bad = check(call, j);
    if (bad) return bad;
    for (j->part = 0; j->part < j->count; j->part++) {
        const pk_view *part = &j->parts[j->part];
        const pk_pieces p = {pk_f32(j->backwards ? part : j->y), pk_f32(j->backwards ? j->y : part),
                             pk_inner(j->y, 1), 0.0f, pk_adds(call, j->backwards ? j->part : 0),
                             piece_of, j};
        pk_move_pieces(call, j->y->sequences, &p);
    }
    return PK_OK;
}

static pk_status sequence_concat_forward(const pk_call *call) {
    joint j = {call->in, &call->out[0], call->n_in, 0, 0};
    return run(call, &j);
}
static pk_status sequence_concat_backward(const pk_call *call) {
    joint j = {call->out, &call->in[0], call->n_out, 0, 1};
    return run(call, &j);
}

PK_OP(sequence_concat, {"sequence_concat.forward(xs*: f32) -> (y: f32)", sequence_concat_forward},
      {"sequence_concat.backward(dy: f32) -> (dxs*: f32)", sequence_concat_backward});
