/* group_norm: each group of channels of a sample normalised by its own mean and variance.
 *
 * A group of a sample is a row of `each * inner` floats that lie together, so mean and variance are
 * those of a row; w and b change from channel to channel inside it. */
#include <math.h>

#include "elementwise.h"
#include "moments.h"
#include "packed.h"

/* x, y, dy, dx [rows, channels, inner]; w, b, dw, db [channels] or NULL; mean, rstd [rows, groups] */
typedef struct norm {
    const float *x, *w, *b, *dy, *mean, *rstd;
    float *y, *mean_out, *rstd_out, *dw, *db;
    int64_t rows, channels, inner, groups, each; /* each: channels of a group */
    float epsilon;
    int add[3];
} norm;

static pk_status find(const pk_call *call, const pk_view *x, norm *n) {
    const int64_t groups = call->attr[0].i, channels = x->ndim < 2 ? 0 : x->dim[1];
    if (groups < 1 || channels == 0 || channels % groups)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld channels do not divide into %lld groups",
                       (long long)channels, (long long)groups);
    n->x = pk_f32(x), n->rows = x->dim[0], n->channels = channels, n->inner = pk_inner(x, 2);
    n->groups = groups, n->each = channels / groups;
    for (int32_t i = 0; i < 3; i++) n->add[i] = pk_adds(call, i);
    return n->inner > 0 ? PK_OK : pk_fail(call, PK_BAD_SHAPE, -1, "channels without elements");
}

/* A group of a sample is a piece of work. */
static void run(const pk_call *call, norm *n, pk_task task) {
    pk_parallel(call, n->rows * n->groups, pk_max_i64(1, 8192 / (n->each * n->inner)), task, n);
}

static void forward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const norm *k = context;
    (void)thread, (void)scratch;
    for (int64_t r = begin; r < end; r++) {
        const int64_t width = k->each * k->inner, first = r % k->groups * k->each;
        const pk_moments m = pk_moments_of(k->x + r * width, width);
        const float rstd = 1.0f / sqrtf(m.variance + k->epsilon);
        const pk_vec mean = pk_set1(m.mean), left = pk_set1(m.left);
        for (int64_t c = 0; c < k->each; c++) {
            const int64_t at = r * width + c * k->inner;
            const pk_vec w = pk_set1(k->w ? k->w[first + c] : 1.0f),
                         b = pk_set1(k->b ? k->b[first + c] : 0.0f);
            PK_FOR16(i, n, k->inner) {
                pk_vec v = pk_sub(pk_sub(pk_load_n(k->x + at + i, n), mean), left);
                v = pk_mul(v, pk_set1(rstd));
                pk_put(k->y + at + i, pk_add(pk_mul(v, w), b), n, k->add[0]);
            }
        }
        const float shift = m.mean + m.left;
        k->mean_out[r] = k->add[1] ? k->mean_out[r] + shift : shift;
        k->rstd_out[r] = k->add[2] ? k->rstd_out[r] + rstd : rstd;
    }
}

static pk_status group_norm_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *out = call->out;
    norm n = {.w = pk_f32(&call->in[1]), .b = pk_f32(&call->in[2]), .y = pk_f32(&out[0]),
              .mean_out = pk_f32(&out[1]), .rstd_out = pk_f32(&out[2]),
              .epsilon = (float)call->attr[1].f};
    pk_status bad = find(call, x, &n);
    if (!bad) bad = pk_check_size(call, "w", &call->in[1], n.channels);
    if (!bad) bad = pk_check_size(call, "b", &call->in[2], n.channels);
    if (!bad) bad = pk_check_size(call, "y", &out[0], pk_count(x));
    if (!bad) bad = pk_check_size(call, "mean", &out[1], n.rows * n.groups);
    if (!bad) bad = pk_check_size(call, "rstd", &out[2], n.rows * n.groups);
    if (bad) return bad;
    run(call, &n, forward_task);
    return PK_OK;
}

/* Sums of dy and of dy (x - mean) rstd over one channel of a sample. */
PK_INLINE void channel_sums(const norm *k, int64_t at, float mean, float rstd, float *sum, float *with) {
    pk_vec s = pk_zero(), t = pk_zero();
    PK_FOR16(i, n, k->inner) {
        const pk_vec dy = pk_load_n(k->dy + at + i, n);
        const pk_vec d = pk_sub(pk_load_n(k->x + at + i, n), pk_set1(mean));
        s = pk_add(s, dy), t = pk_fma(dy, pk_mul(d, pk_set1(rstd)), t);
    }
    *sum = pk_sum16(s), *with = pk_sum16(t);
}

/* dx = rstd (g - mean(g) - v mean(g v)) with g = dy w and v the normalised x */
static void backward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const norm *k = context;
    (void)thread, (void)scratch;
    for (int64_t r = begin; r < end; r++) {
        const int64_t width = k->each * k->inner, first = r % k->groups * k->each;
        const float mean = k->mean[r], rstd = k->rstd[r];
        double sum = 0, with = 0;
        for (int64_t c = 0; c < k->each; c++) {
            float s, t;
            channel_sums(k, r * width + c * k->inner, mean, rstd, &s, &t);
            const double w = k->w ? (double)k->w[first + c] : 1.0;
            sum += w * s, with += w * t;
        }
        const pk_vec middle = pk_set1((float)(sum / (double)width)),
                     slope = pk_set1((float)(with / (double)width)), scale = pk_set1(rstd);
        for (int64_t c = 0; c < k->each; c++) {
            const int64_t at = r * width + c * k->inner;
            const pk_vec w = pk_set1(k->w ? k->w[first + c] : 1.0f);
            PK_FOR16(i, n, k->inner) {
                const pk_vec v = pk_mul(pk_sub(pk_load_n(k->x + at + i, n), pk_set1(mean)), scale);
                const pk_vec g = pk_mul(pk_load_n(k->dy + at + i, n), w);
                pk_put(k->y + at + i, pk_mul(scale, pk_fnma(v, slope, pk_sub(g, middle))), n, k->add[0]);
            }
        }
    }
}

/* Attributes and sizes of both backward kernels. */
static pk_status find_back(const pk_call *call, const pk_view *mean, norm *n) {
    const pk_view *dy = &call->in[0], *x = &call->in[1];
    n->dy = pk_f32(dy), n->mean = pk_f32(mean), n->rstd = pk_f32(mean + 1);
    pk_status bad = find(call, x, n);
    if (!bad) bad = pk_check_size(call, "dy", dy, pk_count(x));
    if (!bad) bad = pk_check_size(call, "mean", mean, n->rows * n->groups);
    if (!bad) bad = pk_check_size(call, "rstd", mean + 1, n->rows * n->groups);
    return bad;
}

static pk_status group_norm_backward_x(const pk_call *call) {
    norm n = {.w = pk_f32(&call->in[2]), .y = pk_f32(&call->out[0])};
    pk_status bad = find_back(call, &call->in[3], &n);
    if (!bad) bad = pk_check_size(call, "w", &call->in[2], n.channels);
    if (!bad) bad = pk_check_size(call, "dx", &call->out[0], pk_count(&call->in[1]));
    if (bad) return bad;
    run(call, &n, backward_task);
    return PK_OK;
}

/* dw = sum of dy v, db = sum of dy: each sample's sums, added in order. */
static void weight_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const norm *k = context;
    (void)thread, (void)scratch;
    for (int64_t c = begin; c < end; c++) {
        double dw = 0, db = 0;
        for (int64_t r = 0; r < k->rows; r++) {
            const int64_t group = r * k->groups + c / k->each;
            float s, t;
            channel_sums(k, (r * k->channels + c) * k->inner, k->mean[group], k->rstd[group], &s, &t);
            db += s, dw += t;
        }
        if (k->dw) k->dw[c] = k->add[0] ? k->dw[c] + (float)dw : (float)dw;
        if (k->db) k->db[c] = k->add[1] ? k->db[c] + (float)db : (float)db;
    }
}

static pk_status group_norm_backward_w(const pk_call *call) {
    norm n = {.dw = pk_f32(&call->out[0]), .db = pk_f32(&call->out[1])};
    pk_status bad = find_back(call, &call->in[2], &n);
    if (!bad) bad = pk_check_size(call, "dw", &call->out[0], n.channels);
    if (!bad) bad = pk_check_size(call, "db", &call->out[1], n.channels);
    if (bad) return bad;
    const int64_t size = pk_max_i64(1, n.rows * n.inner);
    pk_parallel(call, n.channels, pk_max_i64(1, 8192 / size), weight_task, &n);
    return PK_OK;
}

PK_OP(group_norm,
      {"group_norm.forward(x: f32, w?: f32, b?: f32; groups: int, epsilon: float)"
       " -> (y: f32, mean: f32, rstd: f32)",
       group_norm_forward},
      {"group_norm.backward_x(dy: f32, x: f32, w?: f32, mean: f32, rstd: f32; groups: int)"
       " -> (dx: f32)",
       group_norm_backward_x},
      {"group_norm.backward_w(dy: f32, x: f32, mean: f32, rstd: f32; groups: int)"
       " -> (dw?: f32, db?: f32)",
       group_norm_backward_w});
