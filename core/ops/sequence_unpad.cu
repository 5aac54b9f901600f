/* sequence_unpad: rows of one length packed as another tensor's sequences are, and back. */
#include "packed.cuh"

namespace {
/* packed [T, width], padded [sequences, steps, width] */
struct pack_each {
    float *y;
    const float *x;
    const int64_t *offsets;
    int64_t sequences, steps, width;
    int add;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t row = e / width, s = pk_sequence_of(offsets, sequences, row);
        pk_put(y + e, x[(s * steps + row - offsets[s]) * width + e % width], add);
    }
};
struct pad_each {
    float *x;
    const float *y;
    const int64_t *offsets;
    int64_t steps, width;
    int add;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t row = e / width, s = row / steps, t = offsets[s] + row % steps;
        pk_put(x + e, t < offsets[s + 1] ? y[t * width + e % width] : 0.0f, add);
    }
};
struct check_length {
    pk_gate gate;
    const int64_t *offsets;
    int64_t steps;
    PK_DEVICE void operator()(int64_t s) const {
        if (offsets[s + 1] - offsets[s] > steps)
            pk_fault_at(gate, "a sequence of %lld rows, x has %lld of each", s,
                        offsets[s + 1] - offsets[s], steps);
    }
};

/* like: whose offsets count; rows: the packed tensor */
pk_status check(const pk_call *call, const pk_view *like, const pk_view *rows,
                const pk_view *wide) {
    PK_TRY(pk_check_packed(call, "like", like));
    if (wide->ndim < 2 || wide->dim[0] != like->sequences || rows->dim[0] != like->dim[0] ||
        pk_inner(wide, 2) != pk_inner(rows, 1))
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "%lld sequences of width %lld, padded %lld of width %lld",
                       (long long)like->sequences, (long long)pk_inner(rows, 1),
                       (long long)wide->dim[0], (long long)pk_inner(wide, 2));
    const pk_gate gate = pk_gate_of(call);
    return pk_each_behind(call, gate, like->sequences,
                          check_length{gate, like->offsets, wide->dim[1]});
}

pk_status sequence_unpad_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *like = &call->in[1], *y = &call->out[0];
    PK_TRY(check(call, like, y, x));
    return pk_each(call, pk_count(y),
                   pack_each{pk_f32(y), pk_f32(x), like->offsets, like->sequences, x->dim[1],
                             pk_inner(y, 1), pk_adds(call, 0)});
}
pk_status sequence_unpad_backward(const pk_call *call) {
    const pk_view *dy = &call->in[0], *dx = &call->out[0];
    PK_TRY(check(call, dy, dy, dx));
    return pk_each(call, pk_count(dx),
                   pad_each{pk_f32(dx), pk_f32(dy), dy->offsets, dx->dim[1], pk_inner(dy, 1),
                            pk_adds(call, 0)});
}
} /* namespace */

PK_OP(sequence_unpad,
      {"sequence_unpad.forward(x: f32, like: any) -> (y: f32)", sequence_unpad_forward},
      {"sequence_unpad.backward(dy: f32) -> (dx: f32)", sequence_unpad_backward});
