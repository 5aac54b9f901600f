/* layer_norm: each row normalised by its own mean and variance. */
#include <math.h>

#include "elementwise.h"
#include "moments.h"
#include "packed.h"
#include "reductions.h"
#include "row_norm.h"

/* x, y, dy, dx [rows, width]; w, b, dw, db [width] or NULL; mean, rstd [rows] */
typedef struct norm {
    pk_row_norm io;
    int64_t rows, width;
} norm;

static pk_status find(const pk_call *call, const pk_view *x, norm *n) {
    const int64_t begin = call->attr[0].i;
    if (begin < 1 || begin >= x->ndim)
        return pk_fail(call, PK_BAD_SHAPE, -1, "begin %lld of %d dimensions", (long long)begin,
                       (int)x->ndim);
    n->width = pk_inner(x, (int32_t)begin), n->rows = 1;
    for (int64_t d = 0; d < begin; d++) n->rows *= x->dim[d];
    n->io.means = n->rows, n->io.weights = n->width;
    return n->width > 0 ? PK_OK : pk_fail(call, PK_BAD_SHAPE, -1, "rows without elements");
}

static void run(const pk_call *call, norm *n, pk_task task) {
    pk_parallel(call, n->rows, pk_max_i64(1, 8192 / n->width), task, n);
}

static void forward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const norm *k = context;
    (void)thread, (void)scratch;
    for (int64_t r = begin; r < end; r++) {
        const float *x = k->io.x + r * k->width;
        const pk_moments m = pk_moments_of(x, k->width);
        const float mean = m.mean, left = m.left, rstd = 1.0f / sqrtf(m.variance + (float)k->io.epsilon);
        const float shift = mean + left;
        PK_FOR16(i, c, k->width) {
            pk_vec v = pk_sub(pk_sub(pk_load_n(x + i, c), pk_set1(mean)), pk_set1(left));
            v = pk_mul(v, pk_set1(rstd));
            if (k->io.w) v = pk_mul(v, pk_load_n(k->io.w + i, c));
            if (k->io.b) v = pk_add(v, pk_load_n(k->io.b + i, c));
            pk_put(k->io.y + r * k->width + i, v, c, k->io.add[0]);
        }
        k->io.mean_out[r] = k->io.add[1] ? k->io.mean_out[r] + shift : shift;
        k->io.rstd_out[r] = k->io.add[2] ? k->io.rstd_out[r] + rstd : rstd;
    }
}

static pk_status layer_norm_forward(const pk_call *call) {
    norm n = {0};
    pk_status bad = find(call, &call->in[0], &n);
    if (!bad) bad = pk_row_norm_forward(call, &n.io);
    if (bad) return bad;
    run(call, &n, forward_task);
    return PK_OK;
}

/* dx = rstd (g - mean(g) - v mean(g v)) with g = dy w and v the normalised x */
static void backward_task(void *context, int64_t begin, int64_t end, int32_t thread,
                          void *scratch) {
    const norm *k = context;
    (void)thread, (void)scratch;
    for (int64_t r = begin; r < end; r++) {
        const float *x = k->io.x + r * k->width, *dy = k->io.dy + r * k->width;
        const pk_vec mean = pk_set1(k->io.mean[r]), rstd = pk_set1(k->io.rstd[r]);
        pk_vec sum = pk_zero(), with = pk_zero();
        PK_FOR16(i, c, k->width) {
            pk_vec g = pk_load_n(dy + i, c);
            if (k->io.w) g = pk_mul(g, pk_load_n(k->io.w + i, c));
            sum = pk_add(sum, g);
            with = pk_fma(g, pk_mul(pk_sub(pk_load_n(x + i, c), mean), rstd), with);
        }
        const pk_vec middle = pk_set1(pk_sum16(sum) / (float)k->width),
                     slope = pk_set1(pk_sum16(with) / (float)k->width);
        PK_FOR16(i, c, k->width) {
            pk_vec g = pk_load_n(dy + i, c);
            if (k->io.w) g = pk_mul(g, pk_load_n(k->io.w + i, c));
            const pk_vec v = pk_mul(pk_sub(pk_load_n(x + i, c), mean), rstd);
            pk_put(k->io.y + r * k->width + i, pk_mul(rstd, pk_fnma(v, slope, pk_sub(g, middle))), c,
                   k->io.add[0]);
        }
    }
}

static pk_status layer_norm_backward_x(const pk_call *call) {
    norm n = {0};
    pk_status bad = find(call, &call->in[1], &n);
    if (!bad) bad = pk_row_norm_backward_x(call, &n.io);
    if (bad) return bad;
    run(call, &n, backward_task);
    return PK_OK;
}

/* Columns: partial sums of PK_ROW_CHUNK rows, added in order. */
static void weight_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const norm *k = context;
    (void)thread, (void)scratch;
    for (int64_t v = begin; v < end; v++) {
        const int64_t i = 16 * v, c = pk_min_i64(16, k->width - i);
        pk_vec dw = pk_zero(), db = pk_zero();
        for (int64_t first = 0; first < k->rows; first += PK_ROW_CHUNK) {
            const int64_t last = pk_min_i64(first + PK_ROW_CHUNK, k->rows);
            pk_vec part = pk_zero(), bias = pk_zero();
            for (int64_t r = first; r < last; r++) {
                const pk_vec dy = pk_load_n(k->io.dy + r * k->width + i, c),
                             d = pk_sub(pk_load_n(k->io.x + r * k->width + i, c), pk_set1(k->io.mean[r]));
                part = pk_fma(dy, pk_mul(d, pk_set1(k->io.rstd[r])), part);
                bias = pk_add(bias, dy);
            }
            dw = pk_add(dw, part), db = pk_add(db, bias);
        }
        if (k->io.dw) pk_put(k->io.dw + i, dw, c, k->io.add[0]);
        if (k->io.db) pk_put(k->io.db + i, db, c, k->io.add[1]);
    }
}

static pk_status layer_norm_backward_w(const pk_call *call) {
    norm n = {0};
    pk_status bad = find(call, &call->in[1], &n);
    if (!bad) bad = pk_row_norm_backward_w(call, &n.io);
    if (bad) return bad;
    pk_parallel(call, pk_ceil_div(n.width, 16), 1, weight_task, &n);
    return PK_OK;
}

PK_ROW_NORM_OP(layer_norm, "begin");
