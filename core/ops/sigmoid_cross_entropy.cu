/* sigmoid_cross_entropy: loss = max(x, 0) - x*label + log(1 + e^-|x|), 0 where the label is
 * `ignore_index`.
 *
 * With `count` [1] the losses are divided by it: the number of labels of the whole batch that are
 * not ignored.  It is an input because a micro-batch does not know it. */
#include "elementwise.cuh"

namespace {
/* count: [1] or NULL; a count of 0 gives zeros */
PK_DEVICE float share(const float *count) {
    return !count ? 1.0f : *count > 0.0f ? 1.0f / *count : 0.0f;
}

struct loss {
    float ignore;
    const float *count;
    PK_DEVICE float operator()(float x, float t) const {
        return t == ignore ? 0.0f
                           : (fmaf(-x, t, fmaxf(x, 0.0f)) + log1pf(expf(-fabsf(x)))) * share(count);
    }
};
struct slope {
    float ignore;
    const float *count;
    PK_DEVICE float operator()(float x, float t, float dloss) const {
        if (t == ignore) return 0.0f;
        /* sigmoid(x) - 1 for large x would lose all digits: p - t = p*(1 - t) - q*t with q = 1 - p.
         */
        const float e = expf(-fabsf(x)), w = 1.0f + e;
        const float p = (x > 0.0f ? 1.0f : e) / w, q = (x > 0.0f ? e : 1.0f) / w;
        return (p * (1.0f - t) - q * t) * share(count) * dloss;
    }
};

/* x, label, loss: any equal shape */
pk_status forward(const pk_call *call) {
    return pk_map<2>(call, loss{(float)call->attr[0].i, pk_f32(&call->in[2])});
}
pk_status backward_x(const pk_call *call) {
    return pk_map<3>(call, slope{(float)call->attr[0].i, pk_f32(&call->in[3])});
}
} /* namespace */

PK_OP(
    sigmoid_cross_entropy,
    {"sigmoid_cross_entropy.forward(x: f32, label: f32, count?: f32; ignore_index: int) -> (loss: f32)",
     forward},
    {"sigmoid_cross_entropy.backward_x(x: f32, label: f32, dloss: f32, count?: f32; ignore_index: int) -> (dx: f32)",
     backward_x});
