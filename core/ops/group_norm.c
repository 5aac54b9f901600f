/* group_norm: each group of channels of a sample normalised by its own mean and variance.
 *
 * A group of a sample is a row of `each * inner` floats that lie together, so mean and variance are
 * those of a row; w and b change from channel to channel inside it. */
#include <math.h>

#include "elementwise.h"
#include "moments.h"
#include "packed.h"
#include "row_norm.h"

/* x, y, dy, dx [rows, channels, inner]; w, b, dw, db [channels] or NULL; mean, rstd [rows, groups] */
typedef struct norm {
    pk_row_norm io;
    int64_t rows, channels, inner, groups, each; /* each: channels of a group */
} norm;

static pk_status find(const pk_call *call, const pk_view *x, norm *n) {
    const int64_t groups = call->attr[0].i, channels = x->ndim < 2 ? 0 : x->dim[1];
    if (groups < 1 || channels == 0 || channels % groups)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld channels do not divide into %lld groups",
                       (long long)channels, (long long)groups);
    n->rows = x->dim[0], n->channels = channels, n->inner = pk_inner(x, 2);
    n->groups = groups, n->each = channels / groups;
    n->io.means = n->rows * groups, n->io.weights = channels;
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
        const pk_moments m = pk_moments_of(k->io.x + r * width, width);
        const float rstd = 1.0f / sqrtf(m.variance + (float)k->io.epsilon);
        const pk_vec mean = pk_set1(m.mean), left = pk_set1(m.left);
        for (int64_t c = 0; c < k->each; c++) {
            const int64_t at = r * width + c * k->inner;
            const pk_vec w = pk_set1(k->io.w ? k->io.w[first + c] : 1.0f),
                         b = pk_set1(k->io.b ? k->io.b[first + c] : 0.0f);
            PK_FOR16(i, n, k->inner) {
                pk_vec v = pk_sub(pk_sub(pk_load_n(k->io.x + at + i, n), mean), left);
                v = pk_mul(v, pk_set1(rstd));
                pk_put(k->io.y + at + i, pk_add(pk_mul(v, w), b), n, k->io.add[0]);
            }
        }
        const float shift = m.mean + m.left;
        k->io.mean_out[r] = k->io.add[1] ? k->io.mean_out[r] + shift : shift;
        k->io.rstd_out[r] = k->io.add[2] ? k->io.rstd_out[r] + rstd : rstd;
    }
}

static pk_status group_norm_forward(const pk_call *call) {
    norm n = {0};
    pk_status bad = find(call, &call->in[0], &n);
    if (!bad) bad = pk_row_norm_forward(call, &n.io);
    if (bad) return bad;
    run(call, &n, forward_task);
    return PK_OK;
}

/* Sums of dy and of dy (x - mean) rstd over one channel of a sample. */
PK_INLINE void channel_sums(const norm *k, int64_t at, float mean, float rstd, float *sum, float *with) {
    pk_vec s = pk_zero(), t = pk_zero();
    PK_FOR16(i, n, k->inner) {
        const pk_vec dy = pk_load_n(k->io.dy + at + i, n);
        const pk_vec d = pk_sub(pk_load_n(k->io.x + at + i, n), pk_set1(mean));
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
        const float mean = k->io.mean[r], rstd = k->io.rstd[r];
        double sum = 0, with = 0;
        for (int64_t c = 0; c < k->each; c++) {
            float s, t;
            channel_sums(k, r * width + c * k->inner, mean, rstd, &s, &t);
            const double w = k->io.w ? (double)k->io.w[first + c] : 1.0;
            sum += w * s, with += w * t;
        }
        const pk_vec middle = pk_set1((float)(sum / (double)width)),
                     slope = pk_set1((float)(with / (double)width)), scale = pk_set1(rstd);
        for (int64_t c = 0; c < k->each; c++) {
            const int64_t at = r * width + c * k->inner;
            const pk_vec w = pk_set1(k->io.w ? k->io.w[first + c] : 1.0f);
            PK_FOR16(i, n, k->inner) {
                const pk_vec v = pk_mul(pk_sub(pk_load_n(k->io.x + at + i, n), pk_set1(mean)), scale);
                const pk_vec g = pk_mul(pk_load_n(k->io.dy + at + i, n), w);
                pk_put(k->io.y + at + i, pk_mul(scale, pk_fnma(v, slope, pk_sub(g, middle))), n, k->io.add[0]);
            }
        }
    }
}

static pk_status group_norm_backward_x(const pk_call *call) {
    norm n = {0};
    pk_status bad = find(call, &call->in[1], &n);
    if (!bad) bad = pk_row_norm_backward_x(call, &n.io);
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
            channel_sums(k, (r * k->channels + c) * k->inner, k->io.mean[group], k->io.rstd[group], &s, &t);
            db += s, dw += t;
        }
        if (k->io.dw) k->io.dw[c] = k->io.add[0] ? k->io.dw[c] + (float)dw : (float)dw;
        if (k->io.db) k->io.db[c] = k->io.add[1] ? k->io.db[c] + (float)db : (float)db;
    }
}

static pk_status group_norm_backward_w(const pk_call *call) {
    norm n = {0};
    pk_status bad = find(call, &call->in[1], &n);
    if (!bad) bad = pk_row_norm_backward_w(call, &n.io);
    if (bad) return bad;
    const int64_t size = pk_max_i64(1, n.rows * n.inner);
    pk_parallel(call, n.channels, pk_max_i64(1, 8192 / size), weight_task, &n);
    return PK_OK;
}

PK_ROW_NORM_OP(group_norm, "groups");
