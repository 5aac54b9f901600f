/* layer_norm: each row normalised by its own mean and variance. */
#include <math.h>

#include "elementwise.h"
#include "moments.h"
#include "packed.h"
#include "reductions.h"

/* x, y, dy, dx [rows, width]; w, b [width] or NULL; mean, rstd [rows] */
typedef struct norm {
    const float *x, *w, *b, *dy, *mean, *rstd;
    float *y, *mean_out, *rstd_out, *dw, *db;
    int64_t rows, width;
    float epsilon;
    int add[3];
} norm;

static pk_status find(const pk_call *call, const pk_view *x, norm *n) {
    const int64_t begin = call->attr[0].i;
    if (begin < 1 || begin >= x->ndim)
        return pk_fail(call, PK_BAD_SHAPE, -1, "begin %lld of %d dimensions", (long long)begin,
                       (int)x->ndim);
    n->width = pk_inner(x, (int32_t)begin), n->rows = 1;
    for (int64_t d = 0; d < begin; d++) n->rows *= x->dim[d];
    n->x = pk_f32(x);
    for (int32_t i = 0; i < 3; i++) n->add[i] = pk_adds(call, i);
    return n->width > 0 ? PK_OK : pk_fail(call, PK_BAD_SHAPE, -1, "rows without elements");
}

static void run(const pk_call *call, norm *n, pk_task task) {
    pk_parallel(call, n->rows, pk_max_i64(1, 8192 / n->width), task, n);
}

static void forward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const norm *k = context;
    (void)thread, (void)scratch;
    for (int64_t r = begin; r < end; r++) {
        const float *x = k->x + r * k->width;
        const pk_moments m = pk_moments_of(x, k->width);
        const float mean = m.mean, left = m.left, rstd = 1.0f / sqrtf(m.variance + k->epsilon);
        const float shift = mean + left;
        PK_FOR16(i, c, k->width) {
            pk_vec v = pk_sub(pk_sub(pk_load_n(x + i, c), pk_set1(mean)), pk_set1(left));
            v = pk_mul(v, pk_set1(rstd));
            if (k->w) v = pk_mul(v, pk_load_n(k->w + i, c));
            if (k->b) v = pk_add(v, pk_load_n(k->b + i, c));
            pk_put(k->y + r * k->width + i, v, c, k->add[0]);
        }
        k->mean_out[r] = k->add[1] ? k->mean_out[r] + shift : shift;
        k->rstd_out[r] = k->add[2] ? k->rstd_out[r] + rstd : rstd;
    }
}

static pk_status layer_norm_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *out = call->out;
    norm n = {.w = pk_f32(&call->in[1]), .b = pk_f32(&call->in[2]), .y = pk_f32(&out[0]),
              .mean_out = pk_f32(&out[1]), .rstd_out = pk_f32(&out[2]),
              .epsilon = (float)call->attr[1].f};
    pk_status bad = find(call, x, &n);
    if (!bad) bad = pk_check_size(call, "w", &call->in[1], n.width);
    if (!bad) bad = pk_check_size(call, "b", &call->in[2], n.width);
    if (!bad) bad = pk_check_size(call, "y", &out[0], pk_count(x));
    if (!bad) bad = pk_check_size(call, "mean", &out[1], n.rows);
    if (!bad) bad = pk_check_size(call, "rstd", &out[2], n.rows);
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
        const float *x = k->x + r * k->width, *dy = k->dy + r * k->width;
        const pk_vec mean = pk_set1(k->mean[r]), rstd = pk_set1(k->rstd[r]);
        pk_vec sum = pk_zero(), with = pk_zero();
        PK_FOR16(i, c, k->width) {
            pk_vec g = pk_load_n(dy + i, c);
            if (k->w) g = pk_mul(g, pk_load_n(k->w + i, c));
            sum = pk_add(sum, g);
            with = pk_fma(g, pk_mul(pk_sub(pk_load_n(x + i, c), mean), rstd), with);
        }
        const pk_vec middle = pk_set1(pk_sum16(sum) / (float)k->width),
                     slope = pk_set1(pk_sum16(with) / (float)k->width);
        PK_FOR16(i, c, k->width) {
            pk_vec g = pk_load_n(dy + i, c);
            if (k->w) g = pk_mul(g, pk_load_n(k->w + i, c));
            const pk_vec v = pk_mul(pk_sub(pk_load_n(x + i, c), mean), rstd);
            pk_put(k->y + r * k->width + i, pk_mul(rstd, pk_fnma(v, slope, pk_sub(g, middle))), c,
                   k->add[0]);
        }
    }
}

/* Attributes and sizes of both backward kernels. */
static pk_status find_back(const pk_call *call, const pk_view *mean, norm *n) {
    const pk_view *dy = &call->in[0], *x = &call->in[1];
    n->dy = pk_f32(dy), n->mean = pk_f32(mean), n->rstd = pk_f32(mean + 1);
    pk_status bad = find(call, x, n);
    if (!bad) bad = pk_check_size(call, "dy", dy, pk_count(x));
    if (!bad) bad = pk_check_size(call, "mean", mean, n->rows);
    if (!bad) bad = pk_check_size(call, "rstd", mean + 1, n->rows);
    return bad;
}

static pk_status layer_norm_backward_x(const pk_call *call) {
    norm n = {.w = pk_f32(&call->in[2]), .y = pk_f32(&call->out[0])};
    pk_status bad = find_back(call, &call->in[3], &n);
    if (!bad) bad = pk_check_size(call, "w", &call->in[2], n.width);
    if (!bad) bad = pk_check_size(call, "dx", &call->out[0], n.rows * n.width);
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
                const pk_vec dy = pk_load_n(k->dy + r * k->width + i, c),
                             d = pk_sub(pk_load_n(k->x + r * k->width + i, c), pk_set1(k->mean[r]));
                part = pk_fma(dy, pk_mul(d, pk_set1(k->rstd[r])), part);
                bias = pk_add(bias, dy);
            }
            dw = pk_add(dw, part), db = pk_add(db, bias);
        }
        if (k->dw) pk_put(k->dw + i, dw, c, k->add[0]);
        if (k->db) pk_put(k->db + i, db, c, k->add[1]);
    }
}

static pk_status layer_norm_backward_w(const pk_call *call) {
    norm n = {.dw = pk_f32(&call->out[0]), .db = pk_f32(&call->out[1])};
    pk_status bad = find_back(call, &call->in[2], &n);
    if (!bad) bad = pk_check_size(call, "dw", &call->out[0], n.width);
    if (!bad) bad = pk_check_size(call, "db", &call->out[1], n.width);
    if (bad) return bad;
    pk_parallel(call, pk_ceil_div(n.width, 16), 1, weight_task, &n);
    return PK_OK;
}

PK_OP(layer_norm,
      {"layer_norm.forward(x: f32, w?: f32, b?: f32; begin: int, epsilon: float)"
       " -> (y: f32, mean: f32, rstd: f32)",
       layer_norm_forward},
      {"layer_norm.backward_x(dy: f32, x: f32, w?: f32, mean: f32, rstd: f32; begin: int)"
       " -> (dx: f32)",
       layer_norm_backward_x},
      {"layer_norm.backward_w(dy: f32, x: f32, mean: f32, rstd: f32; begin: int)"
       " -> (dw?: f32, db?: f32)",
       layer_norm_backward_w});
