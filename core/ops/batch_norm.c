/* batch_norm: y = act((x - mean)/sqrt(variance + epsilon)*w + b per channel, + z), of x and z [rows, channels, inner].
 *
 * In training mean and (biased) variance are those of the batch, elsewhere given.  A channel is one piece of work.  With
 * inner > 1 each plane gives its own mean and squared distance, which are merged in the order of the rows in double; with
 * inner = 1 sixteen channels go together, one a lane, over chunks of CHUNK rows. */
#include "elementwise.h"

#define CHUNK 64

typedef struct norm {
    float *out;                       /* y or dx [rows, channels, inner]; NULL when dx is not wanted */
    float *first, *second;            /* [channels]: mean, rstd; or dw, db; NULL when not wanted */
    const float *x, *dy, *y;          /* y: only where what was added hides from x what a fused relu let pass */
    const float *z;                   /* added before the relu; or NULL */
    const float *w, *b, *mean;        /* [channels]; mean NULL when the batch's statistics are taken; behind the loss
                                         b only where a relu was fused, NULL otherwise */
    const float *rstd, *variance;     /* [channels]: one of them goes with mean */
    int64_t rows, channels, inner;
    float epsilon;
    int relu, global, add, add_first, add_second;
} norm;

static void keep(float *out, float v, int add) { *out = add ? *out + v : v; }
static float inverse(float variance, float epsilon) { return 1.0f / __builtin_sqrtf(variance + epsilon); }
static pk_vec rstd_lanes(const norm *k, int64_t c, int64_t lanes) {
    if (k->rstd != NULL) return pk_load_n(k->rstd + c, lanes);
    return pk_div(pk_set1(1.0f), pk_sqrt(pk_add(pk_load_n(k->variance + c, lanes), pk_set1(k->epsilon))));
}
static float rstd_of(const norm *k, int64_t c) {
    return k->rstd != NULL ? k->rstd[c] : inverse(k->variance[c], k->epsilon);
}

/* ---- one channel with inner > 1 ---- */

/* Mean and sum of squared distances of channel c over the batch. */
static void plane_moments(const norm *k, int64_t c, double *mean, double *squares) {
    double m = 0, q = 0;
    for (int64_t r = 0; r < k->rows; r++) {
        const float *x = k->x + (r * k->channels + c) * k->inner;
        const float here = pk_row_sum(x, k->inner) / (float)k->inner;
        const pk_vec vm = pk_set1(here);
        pk_vec s = pk_zero();
        PK_FOR16(i, n, k->inner) {
            const pk_vec d = pk_sub(pk_load_or(x + i, n, here), vm);
            s = pk_fma(d, d, s);
        }
        /* Chan's rule for joining n and r*n values. */
        const double gap = (double)here - m, part = 1.0 / (double)(r + 1);
        m += gap * part;
        q += pk_sum16(s) + gap * gap * (double)k->inner * (double)r * part;
    }
    *mean = m, *squares = q;
}

static void plane_apply(const norm *k, int64_t c, float mean, float rstd) {
    const pk_vec m = pk_set1(mean), a = pk_set1(k->w[c] * rstd), b = pk_set1(k->b[c]);
    for (int64_t r = 0; r < k->rows; r++) {
        const int64_t at = (r * k->channels + c) * k->inner;
        PK_FOR16(i, n, k->inner) {
            pk_vec v = pk_fma(pk_sub(pk_load_n(k->x + at + i, n), m), a, b);
            if (k->z != NULL) v = pk_add(v, pk_load_n(k->z + at + i, n));
            if (k->relu) v = pk_relu(v);
            pk_put(k->out + at + i, v, n, k->add);
        }
    }
}

static void forward_planes(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const norm *k = context;
    const double count = (double)(k->rows * k->inner);
    for (int64_t c = begin; c < end; c++) {
        if (k->mean != NULL) {
            plane_apply(k, c, k->mean[c], rstd_of(k, c));
            continue;
        }
        double m, q;
        plane_moments(k, c, &m, &q);
        const float mean = (float)m, rstd = inverse(count > 0 ? (float)(q / count) : 0.0f, k->epsilon);
        plane_apply(k, c, mean, rstd);
        keep(k->first + c, mean, k->add_first);
        keep(k->second + c, rstd, k->add_second);
    }
}

/* ---- sixteen channels with inner = 1 ---- */

/* sum [16] of x - m, or of its square, over the rows; lane l is channel c + l. */
static void column_sums(const norm *k, int64_t c, int64_t lanes, pk_vec m, int squared, double *sum) {
    for (int l = 0; l < 16; l++) sum[l] = 0;
    for (int64_t first = 0; first < k->rows; first += CHUNK) {
        const int64_t last = pk_min_i64(first + CHUNK, k->rows);
        pk_vec s = pk_zero();
        for (int64_t r = first; r < last; r++) {
            const pk_vec d = pk_sub(pk_load_n(k->x + r * k->channels + c, lanes), m);
            s = squared ? pk_fma(d, d, s) : pk_add(s, d);
        }
        float part[16];
        pk_store(part, s);
        for (int l = 0; l < 16; l++) sum[l] += part[l];
    }
}

static void forward_columns(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const norm *k = context;
    for (int64_t block = begin; block < end; block++) {
        const int64_t c = block * 16, lanes = pk_min_i64(16, k->channels - c);
        pk_vec m = pk_zero(), rstd;
        if (k->mean != NULL) {
            m = pk_load_n(k->mean + c, lanes), rstd = rstd_lanes(k, c, lanes);
        } else {
            const double rows = (double)pk_max_i64(1, k->rows);
            double sum[16];
            float lane[16];
            column_sums(k, c, lanes, m, 0, sum);
            for (int l = 0; l < 16; l++) lane[l] = (float)(sum[l] / rows);
            m = pk_load(lane);
            column_sums(k, c, lanes, m, 1, sum);
            for (int l = 0; l < 16; l++) lane[l] = inverse((float)(sum[l] / rows), k->epsilon);
            rstd = pk_load(lane);
            pk_put(k->first + c, m, lanes, k->add_first);
            pk_put(k->second + c, rstd, lanes, k->add_second);
        }
        const pk_vec a = pk_mul(pk_load_n(k->w + c, lanes), rstd), b = pk_load_n(k->b + c, lanes);
        for (int64_t r = 0; r < k->rows; r++) {
            const int64_t at = r * k->channels + c;
            pk_vec y = pk_fma(pk_sub(pk_load_n(k->x + at, lanes), m), a, b);
            if (k->z != NULL) y = pk_add(y, pk_load_n(k->z + at, lanes));
            if (k->relu) y = pk_relu(y);
            pk_put(k->out + at, y, lanes, k->add);
        }
    }
}

/* ---- backward: db = sum(dy), dw = rstd*sum(dy*(x - mean)); with the batch's statistics
 * dx = w*rstd*(dy - sum(dy)/count - (x - mean)*rstd^2*sum(dy*(x - mean))/count), with given ones w*rstd*dy ---- */

/* dy where the fused relu let it pass: where y is positive, which x - mean says in the forward pass' own bits */
PK_INLINE pk_vec upstream(const norm *k, int64_t at, int64_t n, pk_vec gap, pk_vec a, pk_vec b) {
    const pk_vec d = pk_load_n(k->dy + at, n);
    if (k->y == NULL && k->b == NULL) return d;
    const pk_vec y = k->y != NULL ? pk_load_n(k->y + at, n) : pk_fma(gap, a, b);
    return pk_select(pk_gt(y, pk_zero()), d, pk_zero());
}

static void backward_planes(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const norm *k = context;
    const double count = (double)pk_max_i64(1, k->rows * k->inner);
    for (int64_t c = begin; c < end; c++) {
        const float rstd = rstd_of(k, c);
        const pk_vec m = pk_set1(k->mean[c]), a = pk_set1(k->w[c] * rstd), b = pk_set1(k->b ? k->b[c] : 0.0f);
        double sum = 0, dot = 0;
        for (int64_t r = 0; r < k->rows; r++) {
            const int64_t at = (r * k->channels + c) * k->inner;
            pk_vec s = pk_zero(), t = pk_zero();
            PK_FOR16(i, n, k->inner) {
                const pk_vec gap = pk_sub(pk_load_n(k->x + at + i, n), m), d = upstream(k, at + i, n, gap, a, b);
                s = pk_add(s, d);
                t = pk_fma(d, gap, t);
            }
            sum += pk_sum16(s), dot += pk_sum16(t);
        }
        if (k->first != NULL) keep(k->first + c, (float)(dot * rstd), k->add_first);
        if (k->second != NULL) keep(k->second + c, (float)sum, k->add_second);
        if (k->out == NULL) continue;
        const pk_vec level = pk_set1(k->global ? 0.0f : (float)(sum / count));
        const pk_vec tilt = pk_set1(k->global ? 0.0f : (float)(dot * rstd * rstd / count));
        for (int64_t r = 0; r < k->rows; r++) {
            const int64_t at = (r * k->channels + c) * k->inner;
            PK_FOR16(i, n, k->inner) {
                const pk_vec gap = pk_sub(pk_load_n(k->x + at + i, n), m);
                const pk_vec v = pk_fnma(gap, tilt, pk_sub(upstream(k, at + i, n, gap, a, b), level));
                pk_put(k->out + at + i, pk_mul(v, a), n, k->add);
            }
        }
    }
}

static void backward_columns(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const norm *k = context;
    for (int64_t block = begin; block < end; block++) {
        const int64_t c = block * 16, lanes = pk_min_i64(16, k->channels - c);
        const pk_vec m = pk_load_n(k->mean + c, lanes), rstd = rstd_lanes(k, c, lanes);
        const pk_vec a = pk_mul(pk_load_n(k->w + c, lanes), rstd), b = k->b ? pk_load_n(k->b + c, lanes) : pk_zero();
        double sum[16] = {0}, dot[16] = {0};
        float part[2][16], r_lane[16], level[16] = {0}, tilt[16] = {0};
        for (int64_t first = 0; first < k->rows; first += CHUNK) {
            const int64_t last = pk_min_i64(first + CHUNK, k->rows);
            pk_vec s = pk_zero(), t = pk_zero();
            for (int64_t r = first; r < last; r++) {
                const int64_t at = r * k->channels + c;
                const pk_vec gap = pk_sub(pk_load_n(k->x + at, lanes), m), d = upstream(k, at, lanes, gap, a, b);
                s = pk_add(s, d);
                t = pk_fma(d, gap, t);
            }
            pk_store(part[0], s), pk_store(part[1], t);
            for (int l = 0; l < 16; l++) sum[l] += part[0][l], dot[l] += part[1][l];
        }
        pk_store(r_lane, rstd);
        for (int l = 0; l < 16; l++) {
            part[0][l] = (float)(dot[l] * r_lane[l]), part[1][l] = (float)sum[l];
            if (k->global || k->rows == 0) continue;
            level[l] = (float)(sum[l] / (double)k->rows);
            tilt[l] = (float)(dot[l] * r_lane[l] * r_lane[l] / (double)k->rows);
        }
        if (k->first != NULL) pk_put(k->first + c, pk_load(part[0]), lanes, k->add_first);
        if (k->second != NULL) pk_put(k->second + c, pk_load(part[1]), lanes, k->add_second);
        if (k->out == NULL) continue;
        const pk_vec vl = pk_load(level), vt = pk_load(tilt);
        for (int64_t r = 0; r < k->rows; r++) {
            const int64_t at = r * k->channels + c;
            const pk_vec gap = pk_sub(pk_load_n(k->x + at, lanes), m);
            const pk_vec v = pk_fnma(gap, vt, pk_sub(upstream(k, at, lanes, gap, a, b), vl));
            pk_put(k->out + at, pk_mul(v, a), lanes, k->add);
        }
    }
}

/* ---- adapters ---- */

static pk_status shape_of(const pk_call *call, norm *k) {
    const pk_view *x = &call->in[0];
    if (x->ndim < 2) return pk_fail(call, PK_BAD_SHAPE, -1, "x has no channel axis");
    *k = (norm){.x = pk_f32(x), .rows = x->dim[0], .channels = x->dim[1], .inner = pk_inner(x, 2),
                .epsilon = (float)call->attr[0].f};
    return PK_OK;
}

/* Inputs first .. last - 1 have one value a channel. */
static pk_status per_channel(const pk_call *call, const norm *k, int32_t first, int32_t last) {
    for (int32_t i = first; i < last; i++)
        if (pk_count(&call->in[i]) != k->channels)
            return pk_fail(call, PK_BAD_SHAPE, -1, "input %d has %lld elements, x has %lld channels", (int)i,
                           (long long)pk_count(&call->in[i]), (long long)k->channels);
    return PK_OK;
}

/* A channel of the usual sizes is long enough to be a piece of work; tiny ones go together. */
static void run(const pk_call *call, norm *k, pk_task planes, pk_task columns) {
    const int64_t size = pk_max_i64(1, k->rows * k->inner);
    if (k->inner == 1)
        pk_parallel(call, pk_ceil_div(k->channels, 16), pk_max_i64(1, 512 / size), columns, k);
    else
        pk_parallel(call, k->channels, pk_max_i64(1, 8192 / size), planes, k);
}

static pk_status forward_with(const pk_call *call, norm *k) {
    const pk_view *z = &call->in[call->n_in - 1];
    const pk_status status = per_channel(call, k, 1, call->n_in - 1);
    if (status != PK_OK) return status;
    if (z->data != NULL && pk_count(z) != pk_count(&call->in[0]))
        return pk_fail(call, PK_BAD_SHAPE, -1, "z has %lld elements, x has %lld", (long long)pk_count(z),
                       (long long)pk_count(&call->in[0]));
    k->z = pk_f32(z);
    if (call->attr[1].i < 0 || call->attr[1].i > 1)
        return pk_fail(call, PK_BAD_SHAPE, -1, "no activation %lld", (long long)call->attr[1].i);
    k->w = pk_f32(&call->in[1]), k->b = pk_f32(&call->in[2]);
    k->relu = call->attr[1].i == 1;
    k->out = pk_f32(&call->out[0]), k->add = pk_adds(call, 0);
    run(call, k, forward_planes, forward_columns);
    return PK_OK;
}

/* x, w, b, z or none -> y, mean, rstd; attributes epsilon, activation */
static pk_status forward(const pk_call *call) {
    norm k;
    const pk_status status = shape_of(call, &k);
    if (status != PK_OK) return status;
    k.first = pk_f32(&call->out[1]), k.second = pk_f32(&call->out[2]);
    k.add_first = pk_adds(call, 1), k.add_second = pk_adds(call, 2);
    return forward_with(call, &k);
}

/* x, w, b, mean, rstd, z or none -> y: the forward pass once more, with the statistics that it found */
static pk_status again(const pk_call *call) {
    norm k;
    const pk_status status = shape_of(call, &k);
    if (status != PK_OK) return status;
    k.mean = pk_f32(&call->in[3]), k.rstd = pk_f32(&call->in[4]);
    return forward_with(call, &k);
}

/* x, w, b, mean, variance, z or none -> y */
static pk_status inference(const pk_call *call) {
    norm k;
    const pk_status status = shape_of(call, &k);
    if (status != PK_OK) return status;
    k.mean = pk_f32(&call->in[3]), k.variance = pk_f32(&call->in[4]);
    return forward_with(call, &k);
}

/* x, w, mean, rstd or variance, dy, y or none, b or none -> dx, dw, db, each or none */
static pk_status backward_with(const pk_call *call, norm *k) {
    const pk_view *dy = &call->in[4], *y = &call->in[5];
    pk_status status = per_channel(call, k, 1, 4);
    if (status == PK_OK && call->in[6].data != NULL) status = per_channel(call, k, 6, 7);
    if (status != PK_OK) return status;
    if (pk_count(dy) != pk_count(&call->in[0]) || (y->data != NULL && pk_count(y) != pk_count(dy)))
        return pk_fail(call, PK_BAD_SHAPE, -1, "dy has %lld elements, x has %lld", (long long)pk_count(dy),
                       (long long)pk_count(&call->in[0]));
    k->w = pk_f32(&call->in[1]), k->mean = pk_f32(&call->in[2]);
    k->dy = pk_f32(dy), k->y = pk_f32(y), k->b = pk_f32(&call->in[6]);
    k->out = pk_f32(&call->out[0]), k->first = pk_f32(&call->out[1]), k->second = pk_f32(&call->out[2]);
    k->add = pk_adds(call, 0), k->add_first = pk_adds(call, 1), k->add_second = pk_adds(call, 2);
    run(call, k, backward_planes, backward_columns);
    return PK_OK;
}
static pk_status backward(const pk_call *call) {
    norm k;
    const pk_status status = shape_of(call, &k);
    if (status != PK_OK) return status;
    k.rstd = pk_f32(&call->in[3]);
    return backward_with(call, &k);
}
static pk_status backward_inference(const pk_call *call) {
    norm k;
    const pk_status status = shape_of(call, &k);
    if (status != PK_OK) return status;
    k.variance = pk_f32(&call->in[3]), k.global = 1;
    return backward_with(call, &k);
}

/* running = momentum*running + (1 - momentum)*batch for mean and variance [channels], in place; the batch's variance
 * comes out of its rstd.  Attributes momentum, epsilon. */
static pk_status update_running(const pk_call *call) {
    const double momentum = call->attr[0].f, epsilon = call->attr[1].f;
    const int64_t n = pk_count(&call->out[0]);
    for (int i = 0; i < 4; i++)
        if (pk_count(&call->in[i]) != n)
            return pk_fail(call, PK_BAD_SHAPE, -1, "input %d has %lld elements, there are %lld channels", i,
                           (long long)pk_count(&call->in[i]), (long long)n);
    const float *mean = pk_f32(&call->in[0]), *variance = pk_f32(&call->in[1]);
    const float *batch_mean = pk_f32(&call->in[2]), *batch_rstd = pk_f32(&call->in[3]);
    float *mean_out = pk_f32(&call->out[0]), *variance_out = pk_f32(&call->out[1]);
    for (int64_t c = 0; c < n; c++) {
        const double rstd = batch_rstd[c], batch_variance = 1.0 / (rstd * rstd) - epsilon;
        mean_out[c] = (float)(momentum * mean[c] + (1.0 - momentum) * batch_mean[c]);
        variance_out[c] = (float)(momentum * variance[c] + (1.0 - momentum) * (batch_variance > 0 ? batch_variance : 0));
    }
    return PK_OK;
}

/* w, b, mean, variance, bias or none [channels] -> scale = w*rstd, shift = b + (bias - mean)*scale; attribute epsilon */
static pk_status fold(const pk_call *call) {
    const int64_t n = pk_count(&call->out[0]);
    for (int i = 0; i < 5; i++)
        if (call->in[i].data != NULL && pk_count(&call->in[i]) != n)
            return pk_fail(call, PK_BAD_SHAPE, -1, "input %d has %lld elements, there are %lld channels", i,
                           (long long)pk_count(&call->in[i]), (long long)n);
    const float *w = pk_f32(&call->in[0]), *b = pk_f32(&call->in[1]), *mean = pk_f32(&call->in[2]);
    const float *variance = pk_f32(&call->in[3]), *bias = pk_f32(&call->in[4]);
    float *scale = pk_f32(&call->out[0]), *shift = pk_f32(&call->out[1]);
    for (int64_t c = 0; c < n; c++) {
        const float a = w[c] * inverse(variance[c], (float)call->attr[0].f);
        const float t = b[c] + ((bias ? bias[c] : 0.0f) - mean[c]) * a;
        keep(scale + c, a, pk_adds(call, 0)), keep(shift + c, t, pk_adds(call, 1));
    }
    return PK_OK;
}

PK_OP(batch_norm,
      {"batch_norm.forward(x: f32, w: f32, b: f32, z?: f32; epsilon: float, activation: int) -> "
       "(y: f32, mean: f32, rstd: f32)",
       forward},
      {"batch_norm.again(x: f32, w: f32, b: f32, mean: f32, rstd: f32, z?: f32; epsilon: float, activation: int) -> "
       "(y: f32)", again},
      {"batch_norm.inference(x: f32, w: f32, b: f32, mean: f32, variance: f32, z?: f32; epsilon: float, activation: int) -> "
       "(y: f32)", inference},
      {"batch_norm.backward(x: f32, w: f32, mean: f32, rstd: f32, dy: f32, y?: f32, b?: f32; epsilon: float) -> "
       "(dx?: f32, dw?: f32, db?: f32)", backward},
      {"batch_norm.backward_inference(x: f32, w: f32, mean: f32, variance: f32, dy: f32, y?: f32, b?: f32; epsilon: float) -> "
       "(dx?: f32, dw?: f32, db?: f32)", backward_inference},
      {"batch_norm.update_running(mean: f32, variance: f32, batch_mean: f32, batch_rstd: f32; momentum: float, "
       "epsilon: float) -> (mean_out: f32, variance_out: f32)", update_running},
      {"batch_norm.fold(w: f32, b: f32, mean: f32, variance: f32, bias?: f32; epsilon: float) -> "
       "(scale: f32, shift: f32)", fold});
