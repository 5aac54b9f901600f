/* batch_norm: y = act((x - mean)/sqrt(variance + epsilon)*w + b per channel, + z), of x and z [rows,
 * channels, inner].
 *
 * In training mean and (biased) variance are those of the batch, elsewhere given.  A channel is one
 * piece of work.  With inner > 1 each plane gives its own mean and squared distance, which are
 * merged in the order of the rows in double; with inner = 1 sixteen channels go together, one a
 * lane, over chunks of CHUNK rows. */
#include "elementwise.cuh"
#include "reductions.cuh"

namespace {
const int THREADS = 256;

/* x, dy, dx, y [rows, channels, inner]; the rest [channels].  A block has a channel. */
struct norm {
    float *out; /* y or dx; NULL when dx is not wanted */
    float *first, *second; /* mean, rstd; or dw, db; NULL when not wanted */
    const float *x, *dy, *y; /* y: only where what was added hides from x what a fused relu let pass */
    const float *z; /* added before the relu; or NULL */
    const float *w, *b, *mean; /* mean NULL when the batch's statistics are taken; behind the loss b
                                  only where a relu was fused, NULL otherwise */
    const float *rstd, *variance; /* one of them goes with mean */
    int64_t rows, channels, inner;
    float epsilon;
    int relu, global, add, add_first, add_second;

    /* Element e of the channel's rows * inner. */
    PK_DEVICE int64_t place(int64_t e) const {
        return (e / inner * channels + blockIdx.x) * inner + e % inner;
    }
    PK_DEVICE int64_t size() const { return rows * inner; }
    PK_DEVICE float inverse(float v) const { return 1.0f / sqrtf(v + epsilon); }
    PK_DEVICE float rstd_of(int64_t c) const { return rstd ? rstd[c] : inverse(variance[c]); }
    /* dy where the fused relu let it pass: where y is positive, which gap = x - mean says too */
    PK_DEVICE float upstream(int64_t at, float gap, float scale) const {
        if (!y && !b) return dy[at];
        return (y ? y[at] : fmaf(gap, scale, b[blockIdx.x])) > 0.0f ? dy[at] : 0.0f;
    }
};

struct normalise {
    norm k;
    PK_DEVICE void operator()() const {
        const int64_t c = blockIdx.x, n = k.size();
        float mean, rstd;
        if (k.mean) {
            mean = k.mean[c], rstd = k.rstd_of(c);
        } else {
            const double count = n > 0 ? (double)n : 1.0;
            double sum = 0.0, squares = 0.0;
            for (int64_t e = threadIdx.x; e < n; e += THREADS) sum += k.x[k.place(e)];
            const double m = pk_block_sum(sum) / count;
            for (int64_t e = threadIdx.x; e < n; e += THREADS) {
                const double d = (double)k.x[k.place(e)] - m;
                squares += d * d;
            }
            mean = (float)m;
            rstd = k.inverse((float)(pk_block_sum(squares) / count));
        }
        const float a = k.w[c] * rstd, b = k.b[c];
        for (int64_t e = threadIdx.x; e < n; e += THREADS) {
            const int64_t at = k.place(e);
            const float v = fmaf(k.x[at] - mean, a, b) + (k.z ? k.z[at] : 0.0f);
            pk_put(k.out + at, k.relu ? pk_relu(v) : v, k.add);
        }
        if (threadIdx.x != 0 || k.mean) return;
        pk_put(k.first + c, mean, k.add_first);
        pk_put(k.second + c, rstd, k.add_second);
    }
};

/* db = sum(dy), dw = rstd*sum(dy*(x - mean)); with the batch's statistics
 * dx = w*rstd*(dy - sum(dy)/count - (x - mean)*rstd^2*sum(dy*(x - mean))/count), with given ones
 * w*rstd*dy */
struct back {
    norm k;
    PK_DEVICE void operator()() const {
        const int64_t c = blockIdx.x, n = k.size();
        const double count = n > 0 ? (double)n : 1.0;
        const float rstd = k.rstd_of(c), mean = k.mean[c], a = k.w[c] * rstd;
        double sum = 0.0, dot = 0.0;
        for (int64_t e = threadIdx.x; e < n; e += THREADS) {
            const int64_t at = k.place(e);
            const float gap = k.x[at] - mean, d = k.upstream(at, gap, a);
            sum += d, dot += (double)d * (double)gap;
        }
        sum = pk_block_sum(sum), dot = pk_block_sum(dot);
        if (threadIdx.x == 0 && k.first) pk_put(k.first + c, (float)(dot * rstd), k.add_first);
        if (threadIdx.x == 0 && k.second) pk_put(k.second + c, (float)sum, k.add_second);
        if (!k.out) return;
        const float level = k.global ? 0.0f : (float)(sum / count);
        const float tilt = k.global ? 0.0f : (float)(dot * rstd * rstd / count);
        for (int64_t e = threadIdx.x; e < n; e += THREADS) {
            const int64_t at = k.place(e);
            const float gap = k.x[at] - mean;
            pk_put(k.out + at, fmaf(-gap, tilt, k.upstream(at, gap, a) - level) * a, k.add);
        }
    }
};

/* ---- adapters ---- */
pk_status shape_of(const pk_call *call, norm *k) {
    const pk_view *x = &call->in[0];
    if (x->ndim < 2) return pk_fail(call, PK_BAD_SHAPE, -1, "x has no channel axis");
    *k = norm{};
    k->x = pk_f32(x), k->rows = x->dim[0], k->channels = x->dim[1], k->inner = pk_inner(x, 2);
    k->epsilon = (float)call->attr[0].f;
    return PK_OK;
}

/* Inputs first .. last - 1 have one value a channel. */
pk_status per_channel(const pk_call *call, const norm *k, int32_t first, int32_t last) {
    for (int32_t i = first; i < last; i++)
        if (pk_count(&call->in[i]) != k->channels)
            return pk_fail(call, PK_BAD_SHAPE, -1,
                           "input %d has %lld elements, x has %lld channels", (int)i,
                           (long long)pk_count(&call->in[i]), (long long)k->channels);
    return PK_OK;
}

pk_status forward_with(const pk_call *call, norm *k) {
    const pk_view *z = &call->in[call->n_in - 1];
    PK_TRY(per_channel(call, k, 1, call->n_in - 1));
    if (z->data != NULL && pk_count(z) != pk_count(&call->in[0]))
        return pk_fail(call, PK_BAD_SHAPE, -1, "z has %lld elements, x has %lld",
                       (long long)pk_count(z), (long long)pk_count(&call->in[0]));
    k->z = pk_f32(z);
    if (call->attr[1].i < 0 || call->attr[1].i > 1)
        return pk_fail(call, PK_BAD_SHAPE, -1, "no activation %lld", (long long)call->attr[1].i);
    k->w = pk_f32(&call->in[1]), k->b = pk_f32(&call->in[2]);
    k->relu = call->attr[1].i == 1;
    k->out = pk_f32(&call->out[0]), k->add = pk_adds(call, 0);
    return PK_LAUNCH(call, pk_dim((unsigned)k->channels), pk_dim(THREADS), normalise{*k});
}

/* x, w, b, z or none -> y, mean, rstd; attributes epsilon, activation */
pk_status forward(const pk_call *call) {
    norm k;
    PK_TRY(shape_of(call, &k));
    k.first = pk_f32(&call->out[1]), k.second = pk_f32(&call->out[2]);
    k.add_first = pk_adds(call, 1), k.add_second = pk_adds(call, 2);
    return forward_with(call, &k);
}

/* x, w, b, mean, rstd, z or none -> y: the forward pass once more, with the statistics it found */
pk_status again(const pk_call *call) {
    norm k;
    PK_TRY(shape_of(call, &k));
    k.mean = pk_f32(&call->in[3]), k.rstd = pk_f32(&call->in[4]);
    return forward_with(call, &k);
}

/* x, w, b, mean, variance, z or none -> y */
pk_status inference(const pk_call *call) {
    norm k;
    PK_TRY(shape_of(call, &k));
    k.mean = pk_f32(&call->in[3]), k.variance = pk_f32(&call->in[4]);
    return forward_with(call, &k);
}

/* x, w, mean, rstd or variance, dy, y or none, b or none -> dx, dw, db, each or none */
pk_status backward_with(const pk_call *call, norm *k) {
    const pk_view *dy = &call->in[4], *y = &call->in[5];
    PK_TRY(per_channel(call, k, 1, 4));
    if (call->in[6].data != NULL) PK_TRY(per_channel(call, k, 6, 7));
    if (pk_count(dy) != pk_count(&call->in[0]) || (y->data != NULL && pk_count(y) != pk_count(dy)))
        return pk_fail(call, PK_BAD_SHAPE, -1, "dy has %lld elements, x has %lld",
                       (long long)pk_count(dy), (long long)pk_count(&call->in[0]));
    k->w = pk_f32(&call->in[1]), k->mean = pk_f32(&call->in[2]);
    k->dy = pk_f32(dy), k->y = pk_f32(y), k->b = pk_f32(&call->in[6]);
    k->out = pk_f32(&call->out[0]), k->first = pk_f32(&call->out[1]),
    k->second = pk_f32(&call->out[2]);
    k->add = pk_adds(call, 0), k->add_first = pk_adds(call, 1), k->add_second = pk_adds(call, 2);
    return PK_LAUNCH(call, pk_dim((unsigned)k->channels), pk_dim(THREADS), back{*k});
}
pk_status backward(const pk_call *call) {
    norm k;
    PK_TRY(shape_of(call, &k));
    k.rstd = pk_f32(&call->in[3]);
    return backward_with(call, &k);
}
pk_status backward_inference(const pk_call *call) {
    norm k;
    PK_TRY(shape_of(call, &k));
    k.variance = pk_f32(&call->in[3]), k.global = 1;
    return backward_with(call, &k);
}

struct follow {
    float *mean_out, *variance_out;
    const float *mean, *variance, *batch_mean, *batch_rstd;
    double momentum, epsilon;
    PK_DEVICE void operator()(int64_t c) const {
        const double rstd = batch_rstd[c], batch = 1.0 / (rstd * rstd) - epsilon;
        mean_out[c] = (float)(momentum * mean[c] + (1.0 - momentum) * batch_mean[c]);
        variance_out[c] = (float)(momentum * variance[c] +
                                  (1.0 - momentum) * (batch > 0 ? batch : 0));
    }
};

/* running = momentum*running + (1 - momentum)*batch for mean and variance [channels], in place; the
 * batch's variance comes out of its rstd.  Attributes momentum, epsilon. */
pk_status update_running(const pk_call *call) {
    const int64_t n = pk_count(&call->out[0]);
    for (int i = 0; i < 4; i++)
        if (pk_count(&call->in[i]) != n)
            return pk_fail(call, PK_BAD_SHAPE, -1,
                           "input %d has %lld elements, there are %lld channels", i,
                           (long long)pk_count(&call->in[i]), (long long)n);
    return pk_each(call, n,
                   follow{pk_f32(&call->out[0]), pk_f32(&call->out[1]), pk_f32(&call->in[0]),
                          pk_f32(&call->in[1]), pk_f32(&call->in[2]), pk_f32(&call->in[3]),
                          call->attr[0].f, call->attr[1].f});
}
/* w, b, mean, variance, bias or none [channels] -> scale = w*rstd, shift = b + (bias - mean)*scale;
 * attribute epsilon */
struct folded {
    float *scale, *shift;
    const float *w, *b, *mean, *variance, *bias;
    float epsilon;
    int add_scale, add_shift;
    PK_DEVICE void operator()(int64_t c) const {
        const float a = w[c] / sqrtf(variance[c] + epsilon);
        pk_put(scale + c, a, add_scale);
        pk_put(shift + c, b[c] + ((bias ? bias[c] : 0.0f) - mean[c]) * a, add_shift);
    }
};
pk_status fold(const pk_call *call) {
    const int64_t n = pk_count(&call->out[0]);
    for (int i = 0; i < 5; i++)
        if (call->in[i].data != NULL && pk_count(&call->in[i]) != n)
            return pk_fail(call, PK_BAD_SHAPE, -1,
                           "input %d has %lld elements, there are %lld channels", i,
                           (long long)pk_count(&call->in[i]), (long long)n);
    return pk_each(call, n,
                   folded{pk_f32(&call->out[0]), pk_f32(&call->out[1]), pk_f32(&call->in[0]),
                          pk_f32(&call->in[1]), pk_f32(&call->in[2]), pk_f32(&call->in[3]),
                          pk_f32(&call->in[4]), (float)call->attr[0].f, pk_adds(call, 0),
                          pk_adds(call, 1)});
}
} /* namespace */

PK_OP(
    batch_norm,
    {"batch_norm.forward(x: f32, w: f32, b: f32, z?: f32; epsilon: float, activation: int) -> "
     "(y: f32, mean: f32, rstd: f32)",
     forward},
    {"batch_norm.again(x: f32, w: f32, b: f32, mean: f32, rstd: f32, z?: f32; epsilon: float, activation: int) -> "
     "(y: f32)",
     again},
    {"batch_norm.inference(x: f32, w: f32, b: f32, mean: f32, variance: f32, z?: f32; epsilon: float, activation: int) -> "
     "(y: f32)",
     inference},
    {"batch_norm.backward(x: f32, w: f32, mean: f32, rstd: f32, dy: f32, y?: f32, b?: f32; epsilon: float) -> "
     "(dx?: f32, dw?: f32, db?: f32)",
     backward},
    {"batch_norm.backward_inference(x: f32, w: f32, mean: f32, variance: f32, dy: f32, y?: f32, b?: f32; epsilon: float) -> "
     "(dx?: f32, dw?: f32, db?: f32)",
     backward_inference},
    {"batch_norm.update_running(mean: f32, variance: f32, batch_mean: f32, batch_rstd: f32; momentum: float, "
     "epsilon: float) -> (mean_out: f32, variance_out: f32)",
     update_running},
    {"batch_norm.fold(w: f32, b: f32, mean: f32, variance: f32, bias?: f32; epsilon: float) -> "
     "(scale: f32, shift: f32)",
     fold});
