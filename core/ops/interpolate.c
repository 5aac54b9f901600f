/* interpolate: NCHW planes in another size, by the nearest pixel or bilinearly.
 *
 * Where a pixel of the result lies in the image is a fraction of whole numbers, so the places are
 * exact at any size.  Those of columns are looked up once for many rows, in stretches that fit the
 * scratch.  Planes are independent; backwards a plane's pixels add in the order of the result. */
#include <string.h>

#include "pk_kernel.h"

/* Pixel i lies at max(0, factor*i + first) / den. */
typedef struct line {
    int64_t size, out; /* pixels of the image and of the result */
    int64_t factor, first, den;
} line;

/* The pixel there, the one behind it, and the latter's share. */
typedef struct place {
    int32_t low, high;
    float share;
} place;

static line line_of(int64_t size, int64_t out, int linear, int corners, int64_t mode) {
    line l = {.size = size, .out = out, .factor = size, .den = out};
    if (corners) {
        l.factor = size - 1, l.den = pk_max_i64(1, out - 1);
        if (!linear) l.factor *= 2, l.first = l.den, l.den *= 2; /* rounded, not cut */
    } else if (linear && mode == 0) {
        l.factor = 2 * size, l.first = size - out, l.den = 2 * out;
    }
    return l;
}

static place place_of(const line *l, int64_t i) {
    const int64_t at = pk_max_i64(0, l->factor * i + l->first), low = at / l->den;
    return (place){(int32_t)low, (int32_t)pk_min_i64(low + 1, l->size - 1),
                   (float)((double)(at % l->den) / (double)l->den)};
}

typedef struct resize {
    float *out;      /* y, or dx */
    const float *in; /* x, or dy */
    line h, w;
    int linear, add;
} resize;

/* What is in scratch at once: places of columns, pixels of a row. */
enum { STRETCH = 16384, ROW = 131072 };

/* How many columns of the result are done together: their places, and the pixels they lie on. */
static int64_t stretch(const line *l) {
    return pk_max_i64(1, pk_min_i64(STRETCH, ROW / 2 * l->out / pk_max_i64(l->size, l->out)));
}

/* y (=|+=) pixels of x around pixel row `h`, n columns.  Linear: two rows are mixed first (in
 * `row`), then columns. */
static void mix(const resize *k, float *y, const float *x, place h, const place *w, int64_t n,
                float *row) {
    const float *top = x + h.low * k->w.size, *bottom = x + h.high * k->w.size;
    const int64_t begin = w[0].low, end = w[n - 1].high + 1;
    if (!k->linear) {
        for (int64_t j = 0; j < n; j++) y[j] = k->add ? y[j] + top[w[j].low] : top[w[j].low];
        return;
    }
    for (int64_t j = begin; j < end; j++)
        row[j - begin] = top[j] * (1.0f - h.share) + bottom[j] * h.share;
    for (int64_t j = 0; j < n; j++) {
        const float a = row[w[j].low - begin], b = row[w[j].high - begin];
        const float v = a * (1.0f - w[j].share) + b * w[j].share;
        y[j] = k->add ? y[j] + v : v;
    }
}

/* The same shares of dy back to dx. */
static void spread(const resize *k, float *dx, const float *dy, place h, const place *w, int64_t n,
                   float *row) {
    float *top = dx + h.low * k->w.size, *bottom = dx + h.high * k->w.size;
    const int64_t begin = w[0].low, end = w[n - 1].high + 1;
    if (!k->linear) {
        for (int64_t j = 0; j < n;) {
            const int32_t at = w[j].low;
            float sum = dy[j];
            for (j++; j < n && w[j].low == at; j++) sum += dy[j];
            top[at] += sum;
        }
        return;
    }
    memset(row, 0, (size_t)(end - begin) * sizeof *row);
    for (int64_t j = 0; j < n; j++) {
        row[w[j].low - begin] += dy[j] * (1.0f - w[j].share);
        row[w[j].high - begin] += dy[j] * w[j].share;
    }
    for (int64_t j = begin; j < end; j++) top[j] += row[j - begin] * (1.0f - h.share);
    for (int64_t j = begin; j < end; j++) bottom[j] += row[j - begin] * h.share;
}

/* Planes begin .. end, a stretch of columns after the other. */
static void each_plane(const resize *k, int64_t begin, int64_t end, void *scratch, int back) {
    place *w = scratch;
    float *row = (float *)(w + STRETCH);
    const int64_t step = stretch(&k->w);
    const int64_t pixels = k->h.size * k->w.size, results = k->h.out * k->w.out;
    if (back && !k->add) memset(k->out + begin * pixels, 0, (size_t)((end - begin) * pixels) * 4);
    for (int64_t j0 = 0; j0 < k->w.out; j0 += step) {
        const int64_t n = pk_min_i64(step, k->w.out - j0);
        for (int64_t j = 0; j < n; j++) w[j] = place_of(&k->w, j0 + j);
        for (int64_t plane = begin; plane < end; plane++)
            for (int64_t i = 0; i < k->h.out; i++) {
                const place h = place_of(&k->h, i);
                const int64_t at = plane * results + i * k->w.out + j0;
                if (back) spread(k, k->out + plane * pixels, k->in + at, h, w, n, row);
                else mix(k, k->out + at, k->in + plane * pixels, h, w, n, row);
            }
    }
}
static void forward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread;
    each_plane(context, begin, end, scratch, 0);
}
static void backward_task(void *context, int64_t begin, int64_t end, int32_t thread,
                          void *scratch) {
    (void)thread;
    each_plane(context, begin, end, scratch, 1);
}

/* Attributes size, linear, align_corners, align_mode.  x and y are views of the image and the
 * result, or of their gradients. */
static pk_status run(const pk_call *call, const pk_view *x, const pk_view *y, int back) {
    const int64_t *size = call->attr[0].list, mode = call->attr[3].i;
    const int linear = call->attr[1].i != 0, corners = call->attr[2].i != 0;
    const int64_t most = 1 << 24; /* so that no product of sizes overflows and places are int32 */
    if (x->ndim != 4 || y->ndim != 4 || x->dim[0] != y->dim[0] || x->dim[1] != y->dim[1])
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "image and result need [n, channels, height, width]");
    if (size[0] != 2 || size[1] != y->dim[2] || size[2] != y->dim[3] || (mode != 0 && mode != 1))
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "size has %lld numbers, y is %lldx%lld, align_mode %lld",
                       (long long)size[0], (long long)y->dim[2], (long long)y->dim[3],
                       (long long)mode);
    for (int d = 2; d < 4; d++)
        if (x->dim[d] < 1 || y->dim[d] < 1 || x->dim[d] > most || y->dim[d] > most)
            return pk_fail(call, PK_BAD_SHAPE, -1, "%lld pixels to %lld", (long long)x->dim[d],
                           (long long)y->dim[d]);
    resize k = {.out = pk_f32(&call->out[0]), .in = pk_f32(&call->in[0]),
                .h = line_of(x->dim[2], y->dim[2], linear, corners, mode),
                .w = line_of(x->dim[3], y->dim[3], linear, corners, mode),
                .linear = linear, .add = pk_adds(call, 0)};
    const int64_t area = pk_max_i64(x->dim[2] * x->dim[3], y->dim[2] * y->dim[3]);
    pk_parallel(call, x->dim[0] * x->dim[1], pk_max_i64(1, 16384 / area),
                back ? backward_task : forward_task, &k);
    return PK_OK;
}

/* x [n, channels, height, width] -> y [n, channels, out_h, out_w] */
static pk_status forward(const pk_call *call) { return run(call, &call->in[0], &call->out[0], 0); }
/* dy -> dx */
static pk_status backward(const pk_call *call) { return run(call, &call->out[0], &call->in[0], 1); }

#define ATTRS "size: list, linear: bool, align_corners: bool, align_mode: int"
PK_OP(interpolate, {"interpolate.forward(x: f32; " ATTRS ") -> (y: f32)", forward},
      {"interpolate.backward(dy: f32; " ATTRS ") -> (dx: f32)", backward});
