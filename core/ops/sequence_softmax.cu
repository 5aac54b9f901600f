/* sequence_softmax: over the tokens of each sequence, each column by itself. */
#include "elementwise.cuh"
#include "rows.cuh"

namespace {
/* x, y, dy [offsets[sequences], width]; a thread is a column of a sequence */
struct forward_each {
    const int64_t *offsets;
    const float *x;
    float *y;
    int64_t width;
    int add;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t s = e / width, j = e % width;
        float m = -INFINITY, sum = 0.0f;
        for (int64_t t = offsets[s]; t < offsets[s + 1]; t++) m = fmaxf(m, x[t * width + j]);
        for (int64_t t = offsets[s]; t < offsets[s + 1]; t++) sum += expf(x[t * width + j] - m);
        for (int64_t t = offsets[s]; t < offsets[s + 1]; t++)
            pk_put(y + t * width + j, expf(x[t * width + j] - m) / sum, add);
    }
};
struct backward_each {
    const int64_t *offsets;
    const float *y, *dy;
    float *dx;
    int64_t width;
    int add;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t s = e / width, j = e % width;
        float dot = 0.0f;
        for (int64_t t = offsets[s]; t < offsets[s + 1]; t++)
            dot = fmaf(y[t * width + j], dy[t * width + j], dot);
        for (int64_t t = offsets[s]; t < offsets[s + 1]; t++)
            pk_put(dx + t * width + j, y[t * width + j] * (dy[t * width + j] - dot), add);
    }
};

pk_status check(const pk_call *call, const pk_view *x) {
    if (!x->offsets) return pk_fail(call, PK_BAD_SHAPE, -1, "the tokens come without offsets");
    for (int32_t i = 0; i < call->n_in; i++)
        if (pk_count(&call->in[i]) != pk_count(&call->out[0]))
            return pk_fail(call, PK_BAD_SHAPE, -1, "the output has %lld elements, the input %lld",
                           (long long)pk_count(&call->out[0]), (long long)pk_count(&call->in[i]));
    return PK_OK;
}
pk_status sequence_softmax_forward(const pk_call *call) {
    const pk_view *x = &call->in[0];
    PK_TRY(check(call, x));
    const int64_t width = pk_inner(x, 1);
    return pk_each(call, x->sequences * width,
                   forward_each{x->offsets, pk_f32(x), pk_f32(&call->out[0]), width,
                                pk_adds(call, 0)});
}
pk_status sequence_softmax_backward(const pk_call *call) {
    const pk_view *y = &call->in[0];
    PK_TRY(check(call, y));
    const int64_t width = pk_inner(y, 1);
    return pk_each(call, y->sequences * width,
                   backward_each{y->offsets, pk_f32(y), pk_f32(&call->in[1]),
                                 pk_f32(&call->out[0]), width, pk_adds(call, 0)});
}
} /* namespace */

PK_OP(sequence_softmax,
      {"sequence_softmax.forward(x: f32) -> (y: f32)", sequence_softmax_forward},
      {"sequence_softmax.backward(y: f32, dy: f32) -> (dx: f32)", sequence_softmax_backward});
