/* pool2d: largest or mean value of windows over NCHW planes.
 *
 * Planes are independent.  A row of windows is reduced down first (whole rows at a time, in vectors), then across.  The
 * largest value's place is not saved: the backward kernel finds the first place, row by row, that holds it. */
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
            v = k->average ? pk_add(v, w) : pk_select(pk_mask_or(pk_gt(w, v), pk_is_nan(w)), w, v);
        }
        pk_store_n(down + j, v, c);
    }
}

static float reduce_across(const pool *k, const float *down, span w) {
    float v = down[w.begin];
    for (int64_t j = w.begin + 1; j < w.end; j++) v = k->average ? v + down[j] : larger(v, down[j]);
    return v;
}

/* Windows of two, two apart: the common case, written so that compilers make vectors of it. */
static void pairs_across(int average, float *restrict y, const float *restrict down, int64_t n) {
    if (average)
        for (int64_t i = 0; i < n; i++) y[i] = down[2 * i] + down[2 * i + 1];
    else
        for (int64_t i = 0; i < n; i++) y[i] = larger(down[2 * i], down[2 * i + 1]);
}
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
    if (k->stride_w == 2 && k->kernel_w == 2 && !k->adaptive)
        pairs_across(k->average, row + full.begin, down + first, full.end - full.begin), done = full.end;
    else if (k->stride_w == 2 && k->kernel_w == 3 && !k->adaptive)
        triples_across(k->average, row + full.begin, down + first, full.end - full.begin), done = full.end;
    for (int64_t j = 0; j < k->out_w; j++) {
        if (j == full.begin && done > j) j = done;
        if (j >= k->out_w) break;
        const span w = window_w(k, j);
        row[j] = w.begin < w.end ? reduce_across(k, down, w) : 0.0f;
    }
}

/* Scratch: down [width], row [out_w]. */
static void forward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread;
    const pool *k = context;
    float *down = scratch, *row = down + pk_ceil_div(k->width, 16) * 16;
    for (int64_t plane = begin; plane < end; plane++) {
        const float *x = k->x + plane * k->height * k->width;
        for (int64_t i = 0; i < k->out_h; i++) {
            float *y = k->out + (plane * k->out_h + i) * k->out_w;
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

/* Two rows of x under windows of 2x2, two apart: g goes to the first cell that holds m. */
static void pairs_back(float *restrict d0, float *restrict d1, const float *restrict x0, const float *restrict x1,
                       const float *restrict y, const float *restrict dy, int64_t n, int add) {
    if (add) {
        for (int64_t j = 0; j < n; j++) {
            const float m = y[j], g = dy[j];
            const int a = x0[2 * j] == m, b = x0[2 * j + 1] == m, c = x1[2 * j] == m, d = x1[2 * j + 1] == m;
            d0[2 * j] += a ? g : 0.0f;
            d0[2 * j + 1] += b & !a ? g : 0.0f;
            d1[2 * j] += c & !(a | b) ? g : 0.0f;
            d1[2 * j + 1] += d & !(a | b | c) ? g : 0.0f;
        }
        return;
    }
    for (int64_t j = 0; j < n; j++) {
        const float m = y[j], g = dy[j];
        const int a = x0[2 * j] == m, b = x0[2 * j + 1] == m, c = x1[2 * j] == m, d = x1[2 * j + 1] == m;
        d0[2 * j] = a ? g : 0.0f;
        d0[2 * j + 1] = b & !a ? g : 0.0f;
        d1[2 * j] = c & !(a | b) ? g : 0.0f;
        d1[2 * j + 1] = d & !(a | b | c) ? g : 0.0f;
    }
}

static int is_pairs(const pool *k) {
    return !k->adaptive && k->kernel_h == 2 && k->kernel_w == 2 && k->stride_h == 2 && k->stride_w == 2 &&
           k->pad_top == 0 && k->pad_left == 0 && k->out_h * 2 <= k->height && k->out_w * 2 <= k->width;
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
    const int pairs = !k->average && is_pairs(k);
    const int covered = pairs && k->out_h * 2 == k->height && k->out_w * 2 == k->width;
    for (int64_t plane = begin; plane < end; plane++) {
        float *dx = k->out + plane * k->height * k->width;
        const float *x = k->average ? NULL : k->x + plane * k->height * k->width;
        const float *y = k->average ? NULL : k->y + plane * k->out_h * k->out_w;
        const float *dy = k->dy + plane * k->out_h * k->out_w;
        if (!k->add && !covered) memset(dx, 0, (size_t)(k->height * k->width) * sizeof *dx);
        if (k->average) {
            mean_back(k, dx, dy, scratch);
        } else if (pairs) {
            for (int64_t i = 0; i < k->out_h; i++)
                pairs_back(dx + 2 * i * k->width, dx + (2 * i + 1) * k->width, x + 2 * i * k->width,
                           x + (2 * i + 1) * k->width, y + i * k->out_w, dy + i * k->out_w, k->out_w, k->add);
        } else {
            max_back(k, dx, x, y, dy);
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
