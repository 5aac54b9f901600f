/* sequence_conv: y[t] = act(sum over j of x[t + start + j] w_j + b) inside each sequence. */
#include "elementwise.cuh"
#include "sort.cuh"

namespace {
/* x [T, d], w [size*d, m], y [T, m] */
struct conv {
    const int64_t *offsets;
    const float *x, *w, *b, *y; /* b: may be NULL; y: dy backwards */
    float *out;
    int64_t sequences, tokens, d, m, size, start;
    int add, activation;
};

struct forward_each {
    conv c;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t t = e / c.m, column = e % c.m,
                      s = pk_sequence_of(c.offsets, c.sequences, t);
        float sum = 0.0f;
        for (int64_t j = 0; j < c.size; j++) {
            const int64_t from = t + c.start + j;
            if (from < c.offsets[s] || from >= c.offsets[s + 1]) continue;
            const float *x = c.x + from * c.d, *w = c.w + j * c.d * c.m + column;
            for (int64_t i = 0; i < c.d; i++) sum = fmaf(x[i], w[i * c.m], sum);
        }
        if (c.b) sum += c.b[column];
        pk_put(c.out + e, pk_activate(c.activation, sum), c.add);
    }
};
struct backward_each {
    conv c;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t t = e / c.d, column = e % c.d,
                      s = pk_sequence_of(c.offsets, c.sequences, t);
        float sum = 0.0f;
        for (int64_t j = 0; j < c.size; j++) {
            const int64_t from = t - c.start - j;
            if (from < c.offsets[s] || from >= c.offsets[s + 1]) continue;
            const float *dy = c.y + from * c.m, *w = c.w + (j * c.d + column) * c.m;
            for (int64_t i = 0; i < c.m; i++) sum = fmaf(dy[i], w[i], sum);
        }
        pk_put(c.out + e, sum, c.add);
    }
};
struct weight_each {
    conv c;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t column = e % c.m, j = e / c.m / c.d, channel = e / c.m % c.d;
        float sum = 0.0f;
        for (int64_t s = 0; s < c.sequences; s++) {
            const int64_t begin = c.offsets[s], end = c.offsets[s + 1], shift = c.start + j;
            const int64_t from = shift < 0 ? begin - shift : begin,
                          to = shift > 0 ? end - shift : end;
            for (int64_t t = from; t < to; t++)
                sum = fmaf(c.x[(t + shift) * c.d + channel], c.y[t * c.m + column], sum);
        }
        pk_put(c.out + e, sum, c.add);
    }
};

pk_status find(const pk_call *call, const pk_view *x, const pk_view *w, const pk_view *y, conv *c) {
    if (!x->offsets) return pk_fail(call, PK_BAD_SHAPE, -1, "the tokens come without offsets");
    c->offsets = x->offsets, c->sequences = x->sequences, c->tokens = x->dim[0];
    c->d = pk_inner(x, 1), c->m = pk_inner(y, 1);
    c->size = call->attr[0].i, c->start = call->attr[1].i;
    c->out = pk_f32(&call->out[0]), c->add = pk_adds(call, 0);
    if (c->size < 1 || c->size > INT32_MAX || c->start < -INT32_MAX || c->start > INT32_MAX)
        return pk_fail(call, PK_BAD_CALL, -1, "size %lld, start %lld", (long long)c->size,
                       (long long)c->start);
    if (w->ndim != 2 || w->dim[0] != c->size * c->d || w->dim[1] != c->m)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "w is [%lld, %lld], %lld tokens of width %lld give width %lld",
                       (long long)w->dim[0], (long long)pk_inner(w, 1), (long long)c->size,
                       (long long)c->d, (long long)c->m);
    if (x->dim[0] != y->dim[0])
        return pk_fail(call, PK_BAD_SHAPE, -1, "x has %lld tokens, y %lld", (long long)x->dim[0],
                       (long long)y->dim[0]);
    return PK_OK;
}

pk_status sequence_conv_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *w = &call->in[1], *b = &call->in[2];
    conv c = {};
    c.x = pk_f32(x), c.w = pk_f32(w), c.b = pk_f32(b), c.activation = (int)call->attr[2].i;
    PK_TRY(find(call, x, w, &call->out[0], &c));
    if (b->data && pk_count(b) != c.m)
        return pk_fail(call, PK_BAD_SHAPE, -1, "b has %lld elements, w has %lld columns",
                       (long long)pk_count(b), (long long)c.m);
    return pk_each(call, c.tokens * c.m, forward_each{c});
}
pk_status sequence_conv_backward_x(const pk_call *call) {
    const pk_view *dy = &call->in[0], *w = &call->in[1];
    conv c = {};
    c.y = pk_f32(dy), c.w = pk_f32(w);
    PK_TRY(find(call, &call->out[0], w, dy, &c));
    return pk_each(call, c.tokens * c.d, backward_each{c});
}
pk_status sequence_conv_backward_w(const pk_call *call) {
    const pk_view *x = &call->in[0], *dy = &call->in[1];
    conv c = {};
    c.x = pk_f32(x), c.y = pk_f32(dy);
    PK_TRY(find(call, x, &call->out[0], dy, &c));
    return pk_each(call, c.size * c.d * c.m, weight_each{c});
}
} /* namespace */

PK_OP(sequence_conv,
      {"sequence_conv.forward(x: f32, w: f32, b?: f32; size: int, start: int, activation: int) -> "
       "(y: f32)",
       sequence_conv_forward},
      {"sequence_conv.backward_x(dy: f32, w: f32; size: int, start: int) -> (dx: f32)",
       sequence_conv_backward_x},
      {"sequence_conv.backward_w(x: f32, dy: f32; size: int, start: int) -> (dw: f32)",
       sequence_conv_backward_w});
