/* row_conv: y[t] = sum over j of x[t + j] w[j] inside each sequence, column by column. */
#include "packed.cuh"

namespace {
/* x, y [T, d], w [size, d]; direction 1 reads ahead, -1 (backwards) behind */
struct conv {
    const int64_t *offsets;
    const float *x, *w, *dy;
    float *out;
    int64_t sequences, d, size, direction;
    int add;
};

struct row_each {
    conv c;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t t = e / c.d, column = e % c.d,
                      s = pk_sequence_of(c.offsets, c.sequences, t);
        float sum = 0.0f;
        for (int64_t j = 0; j < c.size; j++) {
            const int64_t from = t + j * c.direction;
            if (from < c.offsets[s] || from >= c.offsets[s + 1]) break;
            sum = fmaf(c.x[from * c.d + column], c.w[j * c.d + column], sum);
        }
        pk_put(c.out + e, sum, c.add);
    }
};
struct weight_each {
    conv c;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t j = e / c.d, column = e % c.d;
        float sum = 0.0f;
        for (int64_t s = 0; s < c.sequences; s++)
            for (int64_t t = c.offsets[s]; t + j < c.offsets[s + 1]; t++)
                sum = fmaf(c.x[(t + j) * c.d + column], c.dy[t * c.d + column], sum);
        pk_put(c.out + e, sum, c.add);
    }
};

pk_status find(const pk_call *call, const pk_view *tokens, const pk_view *other, const pk_view *w,
               conv *c) {
    c->offsets = tokens->offsets, c->sequences = tokens->sequences;
    c->d = pk_inner(tokens, 1), c->size = w->dim[0];
    c->out = pk_f32(&call->out[0]), c->add = pk_adds(call, 0);
    if (w->ndim != 2 || w->dim[1] != c->d)
        return pk_fail(call, PK_BAD_SHAPE, -1, "w has %lld columns, the tokens %lld",
                       (long long)pk_inner(w, 1), (long long)c->d);
    PK_TRY(pk_check_packed(call, "the tokens", tokens));
    return pk_check_size(call, "y", other, pk_count(tokens));
}

pk_status rows(const pk_call *call, int64_t direction) {
    const pk_view *x = &call->in[0], *w = &call->in[1];
    conv c = {};
    c.x = pk_f32(x), c.w = pk_f32(w), c.direction = direction;
    PK_TRY(find(call, x, &call->out[0], w, &c));
    return pk_each(call, pk_count(x), row_each{c});
}
pk_status row_conv_forward(const pk_call *call) { return rows(call, 1); }
pk_status row_conv_backward_x(const pk_call *call) { return rows(call, -1); }
pk_status row_conv_backward_w(const pk_call *call) {
    const pk_view *x = &call->in[0], *dy = &call->in[1];
    conv c = {};
    c.x = pk_f32(x), c.dy = pk_f32(dy);
    PK_TRY(find(call, x, dy, &call->out[0], &c));
    return pk_each(call, c.size * c.d, weight_each{c});
}
} /* namespace */

PK_OP(row_conv, {"row_conv.forward(x: f32, w: f32) -> (y: f32)", row_conv_forward},
      {"row_conv.backward_x(dy: f32, w: f32) -> (dx: f32)", row_conv_backward_x},
      {"row_conv.backward_w(x: f32, dy: f32) -> (dw: f32)", row_conv_backward_w});
