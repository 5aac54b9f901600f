/* sequence_pool: one row for each sequence. */
#include "sort.cuh"

namespace {
/* In the order of MODES in paddlecli/ops/sequence_pool.py. */
enum { SUM, AVERAGE, SQRT, MAX, FIRST, LAST, MODES };

/* tokens [offsets[sequences], width], pooled [sequences, width] */
struct pool {
    const int64_t *offsets;
    const float *in, *x, *y; /* in: tokens forwards, dy backwards */
    float *out;
    int64_t width, sequences, mode;
    float pad;
    int add;
    /* What a token counts in its sequence's row. */
    PK_DEVICE float share(int64_t length) const {
        if (mode == AVERAGE) return (float)(1.0 / (double)length);
        return mode == SQRT ? (float)(1.0 / sqrt((double)length)) : 1.0f;
    }
};

struct forward_each {
    pool p;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t s = e / p.width, column = e % p.width,
                      length = p.offsets[s + 1] - p.offsets[s];
        const int64_t start = p.mode == LAST ? length - 1 : 0, stop = p.mode == FIRST ? 1 : length;
        const float *x = p.in + p.offsets[s] * p.width + column;
        float v = p.pad;
        if (length > 0) {
            v = x[start * p.width];
            for (int64_t t = start + 1; t < stop; t++) {
                const float w = x[t * p.width];
                if (p.mode != MAX) v += w;
                else if (v == v && !(w <= v)) v = w; /* a NaN is taken and stays */
            }
            if (p.mode == AVERAGE || p.mode == SQRT) v *= p.share(length);
        }
        pk_put(p.out + e, v, p.add);
    }
};
struct backward_each {
    pool p;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t row = e / p.width, s = pk_sequence_of(p.offsets, p.sequences, row);
        const int64_t t = row - p.offsets[s], length = p.offsets[s + 1] - p.offsets[s];
        const int no = (p.mode == FIRST && t > 0) || (p.mode == LAST && t < length - 1);
        pk_put(p.out + e, no ? 0.0f : p.in[s * p.width + e % p.width] * p.share(length), p.add);
    }
};
/* The first token that equals y takes dy. */
struct max_each {
    pool p;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t row = e / p.width, column = e % p.width,
                      s = pk_sequence_of(p.offsets, p.sequences, row);
        const float y = p.y[s * p.width + column];
        int mine = p.x[e] == y;
        for (int64_t t = p.offsets[s]; t < row && mine; t++) mine = p.x[t * p.width + column] != y;
        pk_put(p.out + e, mine ? p.in[s * p.width + column] : 0.0f, p.add);
    }
};

pk_status find(const pk_call *call, const pk_view *tokens, const pk_view *pooled, pool *p) {
    if (!tokens->offsets) return pk_fail(call, PK_BAD_SHAPE, -1, "the tokens come without offsets");
    p->offsets = tokens->offsets;
    p->sequences = tokens->sequences;
    p->width = pk_inner(tokens, 1);
    p->add = pk_adds(call, 0);
    p->out = pk_f32(&call->out[0]);
    if (pooled->dim[0] != p->sequences || pk_inner(pooled, 1) != p->width)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "%lld sequences of width %lld, pooled %lld of width %lld",
                       (long long)p->sequences, (long long)p->width, (long long)pooled->dim[0],
                       (long long)pk_inner(pooled, 1));
    return PK_OK;
}

pk_status sequence_pool_forward(const pk_call *call) {
    const pk_view *x = &call->in[0];
    pool p = {};
    p.in = pk_f32(x), p.mode = call->attr[0].i, p.pad = (float)call->attr[1].f;
    PK_TRY(find(call, x, &call->out[0], &p));
    if (p.mode < 0 || p.mode >= MODES)
        return pk_fail(call, PK_BAD_CALL, -1, "mode %lld", (long long)p.mode);
    return pk_each(call, p.sequences * p.width, forward_each{p});
}
pk_status sequence_pool_backward(const pk_call *call) {
    const pk_view *dy = &call->in[0];
    pool p = {};
    p.in = pk_f32(dy), p.mode = call->attr[0].i;
    PK_TRY(find(call, &call->out[0], dy, &p));
    if (p.mode < 0 || p.mode >= MODES || p.mode == MAX)
        return pk_fail(call, PK_BAD_CALL, -1, "mode %lld", (long long)p.mode);
    return pk_each(call, pk_count(&call->out[0]), backward_each{p});
}
pk_status sequence_pool_backward_max(const pk_call *call) {
    const pk_view *x = &call->in[0], *y = &call->in[1], *dy = &call->in[2];
    pool p = {};
    p.in = pk_f32(dy), p.x = pk_f32(x), p.y = pk_f32(y), p.mode = MAX;
    PK_TRY(find(call, &call->out[0], dy, &p));
    if (pk_count(x) != pk_count(&call->out[0]) || pk_count(y) != pk_count(dy))
        return pk_fail(call, PK_BAD_SHAPE, -1, "x has %lld elements, dx %lld",
                       (long long)pk_count(x), (long long)pk_count(&call->out[0]));
    return pk_each(call, pk_count(&call->out[0]), max_each{p});
}
} /* namespace */

PK_OP(sequence_pool,
      {"sequence_pool.forward(x: f32; mode: int, pad_value: float) -> (y: f32)",
       sequence_pool_forward},
      {"sequence_pool.backward(dy: f32; mode: int) -> (dx: f32)", sequence_pool_backward},
      {"sequence_pool.backward_max(x: f32, y: f32, dy: f32) -> (dx: f32)",
       sequence_pool_backward_max});
