/* sequence_concat: the sequences of several tensors one behind the other, and apart again. */
#include "packed.cuh"

namespace {
/* Rows of one part; first [sequences] is where a sequence's rows of this part begin in y. */
struct move_each {
    float *out;
    const float *in;
    const int64_t *own, *first;
    int64_t sequences, width;
    int backwards, add;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t t = e / width, s = pk_sequence_of(own, sequences, t);
        const int64_t other = (first[s] + t - own[s]) * width + e % width;
        if (backwards) pk_put(out + e, in[other], add);
        else pk_put(out + other, in[e], add);
    }
};
struct start_each {
    int64_t *first;
    const int64_t *offsets;
    PK_DEVICE void operator()(int64_t s) const { first[s] = offsets[s]; }
};
struct behind_each {
    int64_t *first;
    const int64_t *own;
    PK_DEVICE void operator()(int64_t s) const { first[s] += own[s + 1] - own[s]; }
};

/* The parts stand among the inputs (forwards) or the outputs; y: all together. */
pk_status run(const pk_call *call, const pk_view *parts, int32_t count, const pk_view *y,
              int backwards) {
    const int64_t n = y->sequences;
    PK_TRY(pk_check_packed(call, "y", y));
    if (n * 8 > PK_SCRATCH_ROOM)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld sequences", (long long)n);
    int64_t *first = pk_device_scratch<int64_t>(call), rows = 0;
    for (int32_t i = 0; i < count; i++) rows += parts[i].dim[0];
    if (rows != y->dim[0])
        return pk_fail(call, PK_BAD_SHAPE, -1, "y has %lld rows, its parts %lld",
                       (long long)y->dim[0], (long long)rows);
    PK_TRY(pk_each(call, n, start_each{first, y->offsets}));
    for (int32_t i = 0; i < count; i++) {
        const pk_view *part = &parts[i];
        PK_TRY(pk_check_packed(call, "a part", part));
        if (part->sequences != n || pk_inner(part, 1) != pk_inner(y, 1))
            return pk_fail(call, PK_BAD_SHAPE, -1,
                           "part %d has %lld sequences of width %lld, y %lld of width %lld", (int)i,
                           (long long)part->sequences, (long long)pk_inner(part, 1), (long long)n,
                           (long long)pk_inner(y, 1));
        PK_TRY(pk_each(call, pk_count(part),
                       move_each{pk_f32(backwards ? part : y), pk_f32(backwards ? y : part),
                                 part->offsets, first, n, pk_inner(y, 1), backwards,
                                 pk_adds(call, backwards ? i : 0)}));
        PK_TRY(pk_each(call, n, behind_each{first, part->offsets}));
    }
    return PK_OK;
}

pk_status sequence_concat_forward(const pk_call *call) {
    return run(call, call->in, call->n_in, &call->out[0], 0);
}
pk_status sequence_concat_backward(const pk_call *call) {
    return run(call, call->out, call->n_out, &call->in[0], 1);
}
} /* namespace */

PK_OP(sequence_concat, {"sequence_concat.forward(xs*: f32) -> (y: f32)", sequence_concat_forward},
      {"sequence_concat.backward(dy: f32) -> (dxs*: f32)", sequence_concat_backward});
