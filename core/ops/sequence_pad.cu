/* sequence_pad: packed sequences as rows of one length, and back. */
#include "packed.cuh"

namespace {
/* packed [T, width], padded [sequences, steps, width] */
struct pad_each {
    float *y;
    const float *x;
    const int64_t *offsets;
    int64_t steps, width;
    float value;
    int add;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t row = e / width, s = row / steps, t = offsets[s] + row % steps;
        pk_put(y + e, t < offsets[s + 1] ? x[t * width + e % width] : value, add);
    }
};
struct pack_each {
    float *x;
    const float *y;
    const int64_t *offsets;
    int64_t sequences, steps, width;
    int add;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t row = e / width, s = pk_sequence_of(offsets, sequences, row),
                      t = row - offsets[s];
        pk_put(x + e, t < steps ? y[(s * steps + t) * width + e % width] : 0.0f, add);
    }
};

pk_status check(const pk_call *call, const pk_view *rows, const pk_view *wide) {
    PK_TRY(pk_check_packed(call, "x", rows));
    if (wide->ndim < 2 || wide->dim[0] != rows->sequences || pk_inner(wide, 2) != pk_inner(rows, 1))
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "%lld sequences of width %lld, padded %lld of width %lld",
                       (long long)rows->sequences, (long long)pk_inner(rows, 1),
                       (long long)wide->dim[0], (long long)pk_inner(wide, 2));
    return PK_OK;
}

pk_status sequence_pad_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *y = &call->out[0];
    PK_TRY(check(call, x, y));
    return pk_each(call, pk_count(y),
                   pad_each{pk_f32(y), pk_f32(x), x->offsets, y->dim[1], pk_inner(x, 1),
                            (float)call->attr[1].f, pk_adds(call, 0)});
}
/* Rows that were cut off get zeros. */
pk_status sequence_pad_backward(const pk_call *call) {
    const pk_view *dy = &call->in[0], *dx = &call->out[0];
    PK_TRY(check(call, dx, dy));
    return pk_each(call, pk_count(dx),
                   pack_each{pk_f32(dx), pk_f32(dy), dx->offsets, dx->sequences, dy->dim[1],
                             pk_inner(dx, 1), pk_adds(call, 0)});
}
} /* namespace */

PK_OP(sequence_pad,
      {"sequence_pad.forward(x: f32; size: int, value: float) -> (y: f32)", sequence_pad_forward},
      {"sequence_pad.backward(dy: f32) -> (dx: f32)", sequence_pad_backward});
