/* pool2d: largest or mean value of windows over NCHW planes.
 *
 * Planes are independent.  A row of windows is reduced down first (whole rows at a time, in vectors), then across; the
 * usual windows of 2x2, two apart, have a way of their own.  The largest value's place is not saved: the backward kernel
 * finds the first place, row by row, that holds it. */
#include "elementwise.h"

typedef struct pool {
    float *out;               /* y, or dx */
    const float *x, *y, *dy;
    int64_t height, width, out_h, out_w;
    int64_t kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_left;
    int average, exclusive, adaptive, add;
} pool;

/* The cells of window i along one side of `size` cells; begin >= end for a window that lies in the padding. */
typedef struct span {
    int64_t begin, end;
} span;

static span window(int adaptive, int64_t i, int64_t size, int64_t windows, int64_t kernel, int64_t stride, int64_t pad) {
    if (adaptive) return (span){i * size / windows, pk_ceil_div((i + 1) * size, windows)};
    const int64_t begin = i * stride - pad;
    return (span){pk_max_i64(begin, 0), pk_min_i64(begin + kernel, size)};
}
static span window_h(const pool *k, int64_t i) {
    return window(k->adaptive, i, k->height, k->out_h, k->kernel_h, k->stride_h, k->pad_top);
}
static span window_w(const pool *k, int64_t i) {
    return window(k->adaptive, i, k->width, k->out_w, k->kernel_w, k->stride_w, k->pad_left);
}
static int64_t cells(span h, span w) { return pk_max_i64(0, h.end - h.begin) * pk_max_i64(0, w.end - w.begin); }
/* What a window's sum is multiplied with. */
static float share(const pool *k, span h, span w) {
    const int64_t n = k->exclusive || k->adaptive ? cells(h, w) : k->kernel_h * k->kernel_w;
    return cells(h, w) > 0 ? 1.0f / (float)n : 0.0f;
}

/* Takes b where it is larger or NaN, so a NaN is not lost; once it is NaN it stays. */
static inline float larger(float a, float b) { return (b > a) | (b != b) ? b : a; }
PK_INLINE pk_vec larger_lanes(pk_vec a, pk_vec b) { return pk_select(pk_mask_or(pk_gt(b, a), pk_is_nan(b)), b, a); }

/* Windows from `first` on whose cells all exist, up to `last`. */
static span inner_windows(const pool *k) {
    if (k->adaptive || k->width + k->pad_left < k->kernel_w) return (span){0, 0};
    const int64_t first = pk_ceil_div(k->pad_left, k->stride_w);
    const int64_t last = (k->width + k->pad_left - k->kernel_w) / k->stride_w + 1;
    return (span){pk_min_i64(first, k->out_w), pk_max_i64(pk_min_i64(first, k->out_w), pk_min_i64(last, k->out_w))};
}

/* down [width] = largest, or sum, of rows h of one plane */
static void reduce_down(const pool *k, float *down, const float *x, span h) {
    PK_FOR16(j, c, k->width) {
        pk_vec v = pk_load_n(x + h.begin * k->width + j, c);
        for (int64_t i = h.begin + 1; i < h.end; i++) {
            const pk_vec w = pk_load_n(x + i * k->width + j, c);
            v = k->average ? pk_add(v, w) : larger_lanes(v, w);
        }
        pk_store_n(down + j, v, c);
    }
}

static float reduce_across(const pool *k, const float *down, span w) {
    float v = down[w.begin];
    for (int64_t j = w.begin + 1; j < w.end; j++) v = k->average ? v + down[j] : larger(v, down[j]);
    return v;
}

/* Windows of three, two apart, written so that compilers make vectors of it. */
static void triples_across(int average, float *restrict y, const float *restrict down, int64_t n) {
    if (average)
        for (int64_t i = 0; i < n; i++) y[i] = down[2 * i] + down[2 * i + 1] + down[2 * i + 2];
    else
        for (int64_t i = 0; i < n; i++) y[i] = larger(larger(down[2 * i], down[2 * i + 1]), down[2 * i + 2]);
}

/* row [out_w] from down [width]; sums, not yet means */
static void across(const pool *k, float *row, const float *down) {
    const span full = inner_windows(k);
    const int64_t first = k->stride_w == 2 ? full.begin * 2 - k->pad_left : 0;
    int64_t done = full.begin;
    if (k->stride_w == 2 && k->kernel_w == 3 && !k->adaptive)
        triples_across(k->average, row + full.begin, down + first, full.end - full.begin), done = full.end;
    for (int64_t j = 0; j < k->out_w; j++) {
        if (j == full.begin && done > j) j = done;
        if (j >= k->out_w) break;
        const span w = window_w(k, j);
        row[j] = w.begin < w.end ? reduce_across(k, down, w) : 0.0f;
    }
}

/* ---- windows of 2x2, two apart, without padding: the usual pool, sixteen windows at a time ---- */

#if defined(__clang__)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (pk_parti){__VA_ARGS__})
#endif
#if PK_PART_LANES == 16
#define EVENS 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODDS 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#define LOWS 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGHS 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif PK_PART_LANES == 8
#define EVENS 0, 2, 4, 6, 8, 10, 12, 14
#define ODDS 1, 3, 5, 7, 9, 11, 13, 15
#define LOWS 0, 8, 1, 9, 2, 10, 3, 11
#define HIGHS 4, 12, 5, 13, 6, 14, 7, 15
#else
#define EVENS 0, 2, 4, 6
#define ODDS 1, 3, 5, 7
#define LOWS 0, 4, 1, 5
#define HIGHS 2, 6, 3, 7
#endif

/* Columns 0, 2, 4 .. and 1, 3, 5 .. of 2*n (at most 32) floats; lanes beyond n are 0. */
PK_INLINE void load_pairs(const float *x, int64_t n, pk_vec *even, pk_vec *odd) {
    const pk_vec both[2] = {pk_load_n(x, 2 * n), pk_load_n(x + 16, n > 8 ? 2 * n - 16 : 0)};
    for (int i = 0; i < PK_PARTS; i++) {
        const pk_part a = both[2 * i / PK_PARTS].p[2 * i % PK_PARTS];
        const pk_part b = both[(2 * i + 1) / PK_PARTS].p[(2 * i + 1) % PK_PARTS];
        even->p[i] = SHUFFLE(a, b, EVENS);
        odd->p[i] = SHUFFLE(a, b, ODDS);
    }
}
/* The other way round: stores, or adds, 2*n floats. */
PK_INLINE void put_pairs(float *out, pk_vec even, pk_vec odd, int64_t n, int add) {
    pk_vec both[2];
    for (int i = 0; i < PK_PARTS; i++) {
        both[2 * i / PK_PARTS].p[2 * i % PK_PARTS] = SHUFFLE(even.p[i], odd.p[i], LOWS);
        both[(2 * i + 1) / PK_PARTS].p[(2 * i + 1) % PK_PARTS] = SHUFFLE(even.p[i], odd.p[i], HIGHS);
    }
    pk_put(out, both[0], 2 * n, add);
    if (n > 8) pk_put(out + 16, both[1], 2 * n - 16, add);
}

static int is_pairs(const pool *k) {
    return !k->adaptive && k->kernel_h == 2 && k->kernel_w == 2 && k->stride_h == 2 && k->stride_w == 2 &&
           k->pad_top == 0 && k->pad_left == 0 && k->out_h * 2 <= k->height && k->out_w * 2 <= k->width;
}

/* y [out_w] from two rows of x */
static void pairs_forward(const pool *k, float *y, const float *x) {
    const pk_vec quarter = pk_set1(0.25f);
    PK_FOR16(j, c, k->out_w) {
        pk_vec a, b, d, e;
        load_pairs(x + 2 * j, c, &a, &b);
        load_pairs(x + k->width + 2 * j, c, &d, &e);
        const pk_vec v = k->average ? pk_mul(pk_add(pk_add(a, d), pk_add(b, e)), quarter)
                                    : larger_lanes(larger_lanes(larger_lanes(a, b), d), e);
        pk_put(y + j, v, c, k->add);
    }
}

/* Two rows of dx from y and dy [out_w]: dy goes to the first cell that holds y. */
static void pairs_back(const pool *k, float *dx, const float *x, const float *y, const float *dy) {
    const pk_vec zero = pk_zero();
    PK_FOR16(j, c, k->out_w) {
        const pk_vec m = pk_load_n(y + j, c), g = pk_load_n(dy + j, c);
        pk_vec a, b, d, e;
        load_pairs(x + 2 * j, c, &a, &b);
        load_pairs(x + k->width + 2 * j, c, &d, &e);
        pk_mask taken = pk_eq(a, m);
        const pk_vec ga = pk_select(taken, g, zero);
        const pk_vec gb = pk_select(taken, zero, pk_select(pk_eq(b, m), g, zero));
        taken = pk_mask_or(taken, pk_eq(b, m));
        const pk_vec gd = pk_select(taken, zero, pk_select(pk_eq(d, m), g, zero));
        taken = pk_mask_or(taken, pk_eq(d, m));
        const pk_vec ge = pk_select(taken, zero, pk_select(pk_eq(e, m), g, zero));
        put_pairs(dx + 2 * j, ga, gb, c, k->add);
        put_pairs(dx + k->width + 2 * j, gd, ge, c, k->add);
    }
}

static void pairs_mean_back(const pool *k, float *dx, const float *dy) {
    PK_FOR16(j, c, k->out_w) {
        const pk_vec g = pk_mul(pk_load_n(dy + j, c), pk_set1(0.25f));
        put_pairs(dx + 2 * j, g, g, c, k->add);
        put_pairs(dx + k->width + 2 * j, g, g, c, k->add);
    }
}

/* ---- all windows ---- */

/* Scratch: down [width], row [out_w]. */
static void forward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread;
    const pool *k = context;
    const int pairs = is_pairs(k);
    float *down = scratch, *row = down + pk_ceil_div(k->width, 16) * 16;
    for (int64_t plane = begin; plane < end; plane++) {
        const float *x = k->x + plane * k->height * k->width;
        for (int64_t i = 0; i < k->out_h; i++) {
            float *y = k->out + (plane * k->out_h + i) * k->out_w;
            if (pairs) {
                pairs_forward(k, y, x + 2 * i * k->width);
                continue;
            }
            const span h = window_h(k, i);
            float *to = k->add ? row : y;
            if (h.begin < h.end) {
                reduce_down(k, down, x, h);
                across(k, to, down);
            } else {
                memset(to, 0, (size_t)k->out_w * sizeof *to);
            }
            if (k->average)
                for (int64_t j = 0; j < k->out_w; j++) to[j] *= share(k, h, window_w(k, j));
            if (k->add)
                for (int64_t j = 0; j < k->out_w; j++) y[j] += row[j];
        }
    }
}

static void max_back(const pool *k, float *dx, const float *x, const float *y, const float *dy) {
    for (int64_t i = 0; i < k->out_h; i++) {
        const span h = window_h(k, i);
        for (int64_t j = 0; j < k->out_w; j++) {
            const span w = window_w(k, j);
            const float m = y[i * k->out_w + j];
            for (int64_t a = h.begin; a < h.end; a++) {
                int64_t b = w.begin;
                while (b < w.end && x[a * k->width + b] != m) b++;
                if (b >= w.end) continue;
                dx[a * k->width + b] += dy[i * k->out_w + j];
                break;
            }
        }
    }
}

/* Each row of windows is spread across first (into `row`), then down over the rows it covers. */
static void mean_back(const pool *k, float *dx, const float *dy, float *row) {
    for (int64_t i = 0; i < k->out_h; i++) {
        const span h = window_h(k, i);
        memset(row, 0, (size_t)k->width * sizeof *row);
        for (int64_t j = 0; j < k->out_w; j++) {
            const span w = window_w(k, j);
            const float g = dy[i * k->out_w + j] * share(k, h, w);
            for (int64_t b = w.begin; b < w.end; b++) row[b] += g;
        }
        for (int64_t a = h.begin; a < h.end; a++)
            PK_FOR16(b, c, k->width) pk_put(dx + a * k->width + b, pk_load_n(row + b, c), c, 1);
    }
}

/* Scratch: row [width]. */
static void backward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread;
    const pool *k = context;
    const int pairs = is_pairs(k), covered = pairs && k->out_h * 2 == k->height && k->out_w * 2 == k->width;
    for (int64_t plane = begin; plane < end; plane++) {
        float *dx = k->out + plane * k->height * k->width;
        const float *x = k->average ? NULL : k->x + plane * k->height * k->width;
        const float *y = k->average ? NULL : k->y + plane * k->out_h * k->out_w;
        const float *dy = k->dy + plane * k->out_h * k->out_w;
        if (!k->add && !covered) memset(dx, 0, (size_t)(k->height * k->width) * sizeof *dx);
        if (!pairs) {
            if (k->average)
                mean_back(k, dx, dy, scratch);
            else
                max_back(k, dx, x, y, dy);
            continue;
        }
        for (int64_t i = 0; i < k->out_h; i++) {
            float *rows = dx + 2 * i * k->width;
            if (k->average)
                pairs_mean_back(k, rows, dy + i * k->out_w);
            else
                pairs_back(k, rows, x + 2 * i * k->width, y + i * k->out_w, dy + i * k->out_w);
        }
    }
}

/* Attributes: average, window, stride, padding, ceil_mode, exclusive, adaptive.  x and y are views of the image and the
 * result, or of their gradients; adaptive windows follow from the sizes alone. */
static pk_status prepare(const pk_call *call, const pk_view *x, const pk_view *y, pool *k) {
    const int64_t *kernel = call->attr[1].list, *stride = call->attr[2].list, *pad = call->attr[3].list;
    if (x->ndim != 4 || y->ndim != 4 || x->dim[0] != y->dim[0] || x->dim[1] != y->dim[1])
        return pk_fail(call, PK_BAD_SHAPE, -1, "image and result need [n, channels, height, width]");
    if (kernel[0] != 2 || stride[0] != 2 || (pad[0] != 2 && pad[0] != 4))
        return pk_fail(call, PK_BAD_SHAPE, -1, "kernel, stride, padding have %lld, %lld, %lld numbers",
                       (long long)kernel[0], (long long)stride[0], (long long)pad[0]);
    if (kernel[1] < 1 || kernel[2] < 1 || stride[1] < 1 || stride[2] < 1 || pad[1] < 0 || pad[2] < 0)
        return pk_fail(call, PK_BAD_SHAPE, -1, "kernel and stride must be at least 1, padding 0");
    if ((x->dim[3] + y->dim[3] + 32) * (int64_t)sizeof(float) > (int64_t)PK_SCRATCH_BYTES)
        return pk_fail(call, PK_BAD_SHAPE, -1, "an image %lld wide is too wide", (long long)x->dim[3]);
    *k = (pool){.height = x->dim[2], .width = x->dim[3], .out_h = y->dim[2], .out_w = y->dim[3],
                .kernel_h = kernel[1], .kernel_w = kernel[2], .stride_h = stride[1], .stride_w = stride[2],
                .pad_top = pad[1], .pad_left = pad[0] == 2 ? pad[2] : pad[3], .average = call->attr[0].i != 0,
                .exclusive = call->attr[5].i != 0, .adaptive = call->attr[6].i != 0, .add = pk_adds(call, 0),
                .out = pk_f32(&call->out[0])};
    return PK_OK;
}

static pk_status run(const pk_call *call, const pk_view *x, pk_task task, pool *k) {
    const int64_t planes = x->dim[0] * x->dim[1], size = k->height * k->width;
    if (size > 0) pk_parallel(call, planes, pk_max_i64(1, 16384 / size), task, k);
    return PK_OK;
}

/* x [n, channels, height, width], y [n, channels, out_h, out_w] */
static pk_status forward(const pk_call *call) {
    pool k;
    const pk_status status = prepare(call, &call->in[0], &call->out[0], &k);
    if (status != PK_OK) return status;
    k.x = pk_f32(&call->in[0]);
    return run(call, &call->in[0], forward_task, &k);
}

/* x, y, dy -> dx */
static pk_status backward_max(const pk_call *call) {
    pool k;
    const pk_status status = prepare(call, &call->in[0], &call->in[1], &k);
    if (status != PK_OK) return status;
    k.average = 0;
    k.x = pk_f32(&call->in[0]), k.y = pk_f32(&call->in[1]), k.dy = pk_f32(&call->in[2]);
    return run(call, &call->in[0], backward_task, &k);
}

/* dy -> dx */
static pk_status backward_average(const pk_call *call) {
    pool k;
    const pk_status status = prepare(call, &call->out[0], &call->in[0], &k);
    if (status != PK_OK) return status;
    k.average = 1;
    k.dy = pk_f32(&call->in[0]);
    return run(call, &call->out[0], backward_task, &k);
}

#define POOL_ATTRS "average: bool, window: list, stride: list, padding: list, ceil_mode: bool, exclusive: bool, adaptive: bool"
PK_OP(pool2d,
      {"pool2d.forward(x: f32; " POOL_ATTRS ") -> (y: f32)", forward},
      {"pool2d.backward_max(x: f32, y: f32, dy: f32; " POOL_ATTRS ") -> (dx: f32)", backward_max},
      {"pool2d.backward_average(dy: f32; " POOL_ATTRS ") -> (dx: f32)", backward_average});
