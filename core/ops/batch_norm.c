/* batch_norm: y = (x - mean)/sqrt(variance + epsilon)*scale + shift per channel, of x [rows, channels, inner].
 *
 * Without running statistics mean and (biased) variance are those of the batch.  A channel is one piece of work.  With
 * inner > 1 each plane gives its own mean and squared distance, which are merged in the order of the rows in double; with
 * inner = 1 sixteen channels go together, one a lane, over chunks of CHUNK rows. */
#include "elementwise.h"

#define CHUNK 64

typedef struct norm {
    float *out;                       /* y or dx [rows, channels, inner]; NULL when dx is not wanted */
    float *mean_out, *variance_out;   /* [channels]; or dscale, dshift */
    const float *x, *dy, *y;          /* y: only where a relu was fused, NULL otherwise */
    const float *scale, *shift, *mean, *variance; /* [channels]; forward: mean NULL when the batch's are taken */
    int64_t rows, channels, inner;
    float epsilon;
    int relu, global, add, add_mean, add_variance;
} norm;

static void keep(float *out, float v, int add) { *out = add ? *out + v : v; }

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
    const pk_vec m = pk_set1(mean), a = pk_set1(k->scale[c] * rstd), b = pk_set1(k->shift[c]);
    for (int64_t r = 0; r < k->rows; r++) {
        const int64_t at = (r * k->channels + c) * k->inner;
        PK_FOR16(i, n, k->inner) {
            pk_vec v = pk_fma(pk_sub(pk_load_n(k->x + at + i, n), m), a, b);
            if (k->relu) v = pk_relu(v);
            pk_put(k->out + at + i, v, n, k->add);
        }
    }
}

static float rstd_of(const norm *k, float variance) { return 1.0f / __builtin_sqrtf(variance + k->epsilon); }

static void forward_planes(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const norm *k = context;
    const double count = (double)(k->rows * k->inner);
    for (int64_t c = begin; c < end; c++) {
        float mean, variance;
        if (k->mean != NULL) {
            mean = k->mean[c], variance = k->variance[c];
        } else {
            double m, q;
            plane_moments(k, c, &m, &q);
            mean = (float)m, variance = count > 0 ? (float)(q / count) : 0.0f;
        }
        plane_apply(k, c, mean, rstd_of(k, variance));
        keep(k->mean_out + c, mean, k->add_mean);
        keep(k->variance_out + c, variance, k->add_variance);
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
        pk_vec m = pk_zero(), v = pk_zero();
        if (k->mean != NULL) {
            m = pk_load_n(k->mean + c, lanes), v = pk_load_n(k->variance + c, lanes);
        } else if (k->rows > 0) {
            double sum[16];
            float lane[16];
            column_sums(k, c, lanes, m, 0, sum);
            for (int l = 0; l < 16; l++) lane[l] = (float)(sum[l] / (double)k->rows);
            m = pk_load(lane);
            column_sums(k, c, lanes, m, 1, sum);
            for (int l = 0; l < 16; l++) lane[l] = (float)(sum[l] / (double)k->rows);
            v = pk_load(lane);
        }
        const pk_vec rstd = pk_div(pk_set1(1.0f), pk_sqrt(pk_add(v, pk_set1(k->epsilon))));
        const pk_vec a = pk_mul(pk_load_n(k->scale + c, lanes), rstd), b = pk_load_n(k->shift + c, lanes);
        for (int64_t r = 0; r < k->rows; r++) {
            const int64_t at = r * k->channels + c;
            pk_vec y = pk_fma(pk_sub(pk_load_n(k->x + at, lanes), m), a, b);
            if (k->relu) y = pk_relu(y);
            pk_put(k->out + at, y, lanes, k->add);
        }
        pk_put(k->mean_out + c, m, lanes, k->add_mean);
        pk_put(k->variance_out + c, v, lanes, k->add_variance);
    }
}

/* ---- backward: dshift = sum(dy), dscale = rstd*sum(dy*(x - mean)); with the batch's statistics
 * dx = scale*rstd*(dy - sum(dy)/count - (x - mean)*rstd^2*sum(dy*(x - mean))/count), with given ones scale*rstd*dy ---- */

/* dy where the fused relu let it pass */
PK_INLINE pk_vec upstream(const norm *k, int64_t at, int64_t n) {
    const pk_vec d = pk_load_n(k->dy + at, n);
    return k->y == NULL ? d : pk_select(pk_gt(pk_load_n(k->y + at, n), pk_zero()), d, pk_zero());
}

static void backward_planes(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const norm *k = context;
    const double count = (double)pk_max_i64(1, k->rows * k->inner);
    for (int64_t c = begin; c < end; c++) {
        const float mean = k->mean[c], rstd = rstd_of(k, k->variance[c]);
        const pk_vec m = pk_set1(mean);
        double sum = 0, dot = 0;
        for (int64_t r = 0; r < k->rows; r++) {
            const int64_t at = (r * k->channels + c) * k->inner;
            pk_vec s = pk_zero(), t = pk_zero();
            PK_FOR16(i, n, k->inner) {
                const pk_vec d = upstream(k, at + i, n);
                s = pk_add(s, d);
                t = pk_fma(d, pk_sub(pk_load_n(k->x + at + i, n), m), t);
            }
            sum += pk_sum16(s), dot += pk_sum16(t);
        }
        keep(k->mean_out + c, (float)(dot * rstd), k->add_mean);
        keep(k->variance_out + c, (float)sum, k->add_variance);
        if (k->out == NULL) continue;
        const pk_vec a = pk_set1(k->scale[c] * rstd);
        const pk_vec level = pk_set1(k->global ? 0.0f : (float)(sum / count));
        const pk_vec tilt = pk_set1(k->global ? 0.0f : (float)(dot * rstd * rstd / count));
        for (int64_t r = 0; r < k->rows; r++) {
            const int64_t at = (r * k->channels + c) * k->inner;
            PK_FOR16(i, n, k->inner) {
                const pk_vec d = pk_sub(upstream(k, at + i, n), level);
                const pk_vec v = pk_fnma(pk_sub(pk_load_n(k->x + at + i, n), m), tilt, d);
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
        const pk_vec m = pk_load_n(k->mean + c, lanes);
        const pk_vec rstd =
            pk_div(pk_set1(1.0f), pk_sqrt(pk_add(pk_load_n(k->variance + c, lanes), pk_set1(k->epsilon))));
        double sum[16] = {0}, dot[16] = {0};
        float part[2][16], r_lane[16], level[16] = {0}, tilt[16] = {0};
        for (int64_t first = 0; first < k->rows; first += CHUNK) {
            const int64_t last = pk_min_i64(first + CHUNK, k->rows);
            pk_vec s = pk_zero(), t = pk_zero();
            for (int64_t r = first; r < last; r++) {
                const pk_vec d = upstream(k, r * k->channels + c, lanes);
                s = pk_add(s, d);
                t = pk_fma(d, pk_sub(pk_load_n(k->x + r * k->channels + c, lanes), m), t);
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
        pk_put(k->mean_out + c, pk_load(part[0]), lanes, k->add_mean);
        pk_put(k->variance_out + c, pk_load(part[1]), lanes, k->add_variance);
        if (k->out == NULL) continue;
        const pk_vec a = pk_mul(pk_load_n(k->scale + c, lanes), rstd), vl = pk_load(level), vt = pk_load(tilt);
        for (int64_t r = 0; r < k->rows; r++) {
            const int64_t at = r * k->channels + c;
            const pk_vec d = pk_sub(upstream(k, at, lanes), vl);
            const pk_vec v = pk_fnma(pk_sub(pk_load_n(k->x + at, lanes), m), vt, d);
            pk_put(k->out + at, pk_mul(v, a), lanes, k->add);
        }
    }
}

/* ---- adapters ---- */

static pk_status shape_of(const pk_call *call, const pk_view *x, norm *k) {
    if (x->ndim < 2) return pk_fail(call, PK_BAD_SHAPE, -1, "[batch_norm] x has no channel axis");
    k->rows = x->dim[0], k->channels = x->dim[1], k->inner = pk_inner(x, 2);
    k->x = pk_f32(x), k->epsilon = (float)call->attr[0].f;
    return PK_OK;
}

static pk_status per_channel(const pk_call *call, const norm *k, const char *name, const pk_view *v) {
    if (v->data == NULL || pk_count(v) == k->channels) return PK_OK;
    return pk_fail(call, PK_BAD_SHAPE, -1, "[batch_norm] %s has %lld elements, x has %lld channels", name,
                   (long long)pk_count(v), (long long)k->channels);
}

/* A channel of the usual sizes is long enough to be a piece of work; tiny ones go together. */
static void run(const pk_call *call, norm *k, pk_task planes, pk_task columns) {
    const int64_t size = pk_max_i64(1, k->rows * k->inner);
    if (k->inner == 1)
        pk_parallel(call, pk_ceil_div(k->channels, 16), pk_max_i64(1, 512 / size), columns, k);
    else
        pk_parallel(call, k->channels, pk_max_i64(1, 8192 / size), planes, k);
}

/* x, scale, shift, running mean and variance or none -> y, mean, variance; attributes epsilon, activation */
static pk_status forward(const pk_call *call) {
    static const char *const names[] = {"x", "scale", "shift", "running_mean", "running_variance"};
    norm k = {0};
    pk_status status = shape_of(call, &call->in[0], &k);
    for (int i = 1; i < 5 && status == PK_OK; i++) status = per_channel(call, &k, names[i], &call->in[i]);
    if (status != PK_OK) return status;
    if ((call->in[3].data == NULL) != (call->in[4].data == NULL))
        return pk_fail(call, PK_BAD_SHAPE, -1, "[batch_norm] running mean and variance come together");
    if (call->attr[1].i < 0 || call->attr[1].i > 1)
        return pk_fail(call, PK_BAD_SHAPE, -1, "[batch_norm] no activation %lld", (long long)call->attr[1].i);
    k.scale = pk_f32(&call->in[1]), k.shift = pk_f32(&call->in[2]);
    k.mean = pk_f32(&call->in[3]), k.variance = pk_f32(&call->in[4]);
    k.relu = call->attr[1].i == 1;
    k.out = pk_f32(&call->out[0]), k.mean_out = pk_f32(&call->out[1]), k.variance_out = pk_f32(&call->out[2]);
    k.add = pk_adds(call, 0), k.add_mean = pk_adds(call, 1), k.add_variance = pk_adds(call, 2);
    run(call, &k, forward_planes, forward_columns);
    return PK_OK;
}

/* x, scale, mean, variance, dy, y or none -> [dx,] dscale, dshift; attributes epsilon, global_stats */
static pk_status backward_into(const pk_call *call, int32_t with_dx) {
    static const char *const names[] = {"x", "scale", "mean", "variance"};
    norm k = {0};
    pk_status status = shape_of(call, &call->in[0], &k);
    for (int i = 1; i < 4 && status == PK_OK; i++) status = per_channel(call, &k, names[i], &call->in[i]);
    if (status != PK_OK) return status;
    const pk_view *dy = &call->in[4], *y = &call->in[5];
    if (pk_count(dy) != pk_count(&call->in[0]) || (y->data != NULL && pk_count(y) != pk_count(dy)))
        return pk_fail(call, PK_BAD_SHAPE, -1, "[batch_norm] dy has %lld elements, x has %lld", (long long)pk_count(dy),
                       (long long)pk_count(&call->in[0]));
    k.scale = pk_f32(&call->in[1]), k.mean = pk_f32(&call->in[2]), k.variance = pk_f32(&call->in[3]);
    k.dy = pk_f32(dy), k.y = y->data == NULL ? NULL : pk_f32(y);
    k.global = call->attr[1].i != 0;
    k.out = with_dx ? pk_f32(&call->out[0]) : NULL;
    k.mean_out = pk_f32(&call->out[with_dx]), k.variance_out = pk_f32(&call->out[with_dx + 1]);
    k.add = with_dx && pk_adds(call, 0);
    k.add_mean = pk_adds(call, with_dx), k.add_variance = pk_adds(call, with_dx + 1);
    run(call, &k, backward_planes, backward_columns);
    return PK_OK;
}
static pk_status backward(const pk_call *call) { return backward_into(call, 1); }
static pk_status backward_w(const pk_call *call) { return backward_into(call, 0); }

/* running = momentum*running + (1 - momentum)*batch, for mean and variance [channels]; in place. */
static pk_status update_running(const pk_call *call) {
    const float keep_share = (float)call->attr[0].f, new_share = (float)(1.0 - call->attr[0].f);
    for (int i = 0; i < 2; i++) {
        const int64_t n = pk_count(&call->out[i]);
        if (pk_count(&call->in[i]) != n || pk_count(&call->in[i + 2]) != n)
            return pk_fail(call, PK_BAD_SHAPE, -1, "[batch_norm] %lld running values, %lld of the batch", (long long)n,
                           (long long)pk_count(&call->in[i + 2]));
        const float *old = pk_f32(&call->in[i]), *batch = pk_f32(&call->in[i + 2]);
        float *out = pk_f32(&call->out[i]);
        for (int64_t c = 0; c < n; c++) out[c] = keep_share * old[c] + new_share * batch[c];
    }
    return PK_OK;
}

PK_OP(batch_norm,
      {"batch_norm.forward(x: f32, scale: f32, shift: f32, running_mean?: f32, running_variance?: f32; epsilon: float, "
       "activation: int) -> (y: f32, mean: f32, variance: f32)", forward},
      {"batch_norm.backward(x: f32, scale: f32, mean: f32, variance: f32, dy: f32, y?: f32; epsilon: float, "
       "global_stats: bool) -> (dx: f32, dscale: f32, dshift: f32)", backward},
      {"batch_norm.backward_w(x: f32, scale: f32, mean: f32, variance: f32, dy: f32, y?: f32; epsilon: float, "
       "global_stats: bool) -> (dscale: f32, dshift: f32)", backward_w},
      {"batch_norm.update_running(running_mean: f32, running_variance: f32, mean: f32, variance: f32; momentum: float) -> "
       "(running_mean_out: f32, running_variance_out: f32)", update_running});
