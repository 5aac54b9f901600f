/* sequence_conv_pool: sequence_conv and sequence_pool in one: a thread for each sequence and
 * filter. */
#include "elementwise.cuh"
#include "sort.cuh"

namespace {
/* In the order of MODES in paddlecli/ops/sequence_pool.py. */
enum { SUM, AVERAGE, SQRT, MAX, MODES };

/* x [T, d], w [size*d, m], b [m] or NULL, out [sequences, m] */
struct pooled_each {
    const int64_t *offsets;
    const float *x, *w, *b;
    float *out;
    int64_t d, m, size, start;
    int activation, mode, add;
    float pad;

    PK_DEVICE float token(int64_t s, int64_t t, int64_t column) const {
        float sum = 0.0f;
        for (int64_t j = 0; j < size; j++) {
            const int64_t from = t + start + j;
            if (from < offsets[s] || from >= offsets[s + 1]) continue;
            const float *row = x + from * d, *to = w + j * d * m + column;
            for (int64_t i = 0; i < d; i++) sum = fmaf(row[i], to[i * m], sum);
        }
        return pk_activate(activation, b ? sum + b[column] : sum);
    }
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t s = e / m, column = e % m, begin = offsets[s], end = offsets[s + 1];
        float v = begin < end ? token(s, begin, column) : pad;
        for (int64_t t = begin + 1; t < end; t++) {
            const float next = token(s, t, column);
            /* what is not a number stays */
            v = mode != MAX ? v + next : v != v || v > next ? v : next;
        }
        if (begin < end && mode == AVERAGE) v *= (float)(1.0 / (double)(end - begin));
        if (begin < end && mode == SQRT) v *= (float)(1.0 / sqrt((double)(end - begin)));
        pk_put(out + e, v, add);
    }
};

pk_status sequence_conv_pool_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *w = &call->in[1], *b = &call->in[2], *y = &call->out[0];
    const int64_t size = call->attr[0].i, start = call->attr[1].i, mode = call->attr[3].i;
    if (!x->offsets) return pk_fail(call, PK_BAD_SHAPE, -1, "the tokens come without offsets");
    pooled_each p = {};
    p.offsets = x->offsets, p.x = pk_f32(x), p.w = pk_f32(w), p.b = pk_f32(b), p.out = pk_f32(y);
    p.d = pk_inner(x, 1), p.m = pk_inner(y, 1), p.size = size, p.start = start;
    p.activation = (int)call->attr[2].i, p.mode = (int)mode, p.pad = (float)call->attr[4].f;
    p.add = pk_adds(call, 0);
    if (size < 1 || size > INT32_MAX || start < -INT32_MAX || start > INT32_MAX || mode < 0 ||
        mode >= MODES)
        return pk_fail(call, PK_BAD_CALL, -1, "size %lld, start %lld, mode %lld", (long long)size,
                       (long long)start, (long long)mode);
    if (w->ndim != 2 || w->dim[0] != size * p.d || w->dim[1] != p.m ||
        (b->data && pk_count(b) != p.m) || y->dim[0] != x->sequences)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "w is [%lld, %lld], b has %lld elements, %lld tokens of width %lld, "
                       "%lld sequences, y has %lld rows of %lld",
                       (long long)w->dim[0], (long long)pk_inner(w, 1), (long long)pk_count(b),
                       (long long)size, (long long)p.d, (long long)x->sequences,
                       (long long)y->dim[0], (long long)p.m);
    return pk_each(call, x->sequences * p.m, p);
}
} /* namespace */

PK_OP(sequence_conv_pool,
      {"sequence_conv_pool.forward(x: f32, w: f32, b?: f32; size: int, start: int, "
       "activation: int, mode: int, pad_value: float) -> (y: f32)",
       sequence_conv_pool_forward});
