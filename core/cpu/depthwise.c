/* The usual kernels of 3x3 read the plane where it lies.  For others its rows are laid out in
 * scratch with their padding, so that no tap needs a mask; with a stride, columns are sorted by
 * their remainder, so that sixteen outputs read sixteen neighbours.  The input gradient is the
 * convolution of stride 1 of dy, spread with zeros between, with the filter turned around. */
#include "depthwise.h"

#include "pairs.h"
#include "pool.h"
#include "tile.h"

#define ROOM_FLOATS (192 << 10) /* of the scratch, for rows */
#define MOST_TAPS 64
#define SLACK 48 /* floats behind a row's last column that vectors may touch */
_Static_assert(ROOM_FLOATS * sizeof(float) <= PK_SCRATCH_BYTES, "rows fit the scratch");

/* A convolution of planes: out[h, w] = sum over taps of in[h*stride + kh*dilation - pad ...]. */
typedef struct {
    int64_t height, width, out_h, out_w;
    int64_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
    int64_t top, left;            /* padding; may be negative */
    int64_t spread_h, spread_w;   /* a value and that many - 1 zeros behind it */
    int64_t phase, row;           /* floats of a remainder's columns, of a row */
    int64_t strip;                /* output rows whose inputs fit the room */
    int64_t taps, offset[MOST_TAPS];
    int64_t step; /* of a kernel of 3x3 that needs no room: 1 or 2; else 0 */
} plane;

typedef struct {
    const pk_conv *conv;
    plane p;
    int64_t share; /* outputs of one channel */
    const float *x, *w, *dy;
    float *out;
    pk_after after;     /* of the forward pass */
    int32_t accumulate; /* of the gradients */
} job;

/* Fills in what follows from the sizes. */
static plane finished(plane p) {
    const int64_t reach = (p.out_w - 1) * p.stride_w + (p.kernel_w - 1) * p.dilation_w + 1;
    p.phase = pk_ceil_div(reach, p.stride_w) + SLACK;
    p.row = p.phase * p.stride_w;
    const int64_t rows = ROOM_FLOATS / p.row - (p.kernel_h - 1) * p.dilation_h - 1;
    p.strip = rows < 0 ? 0 : pk_min_i64(p.out_h, rows / p.stride_h + 1);
    p.taps = p.kernel_h * p.kernel_w;
    for (int64_t t = 0; t < p.taps && t < MOST_TAPS; t++) {
        const int64_t column = t % p.kernel_w * p.dilation_w;
        p.offset[t] = t / p.kernel_w * p.dilation_h * p.row + column % p.stride_w * p.phase +
                      column / p.stride_w;
    }
    if (p.kernel_h == 3 && p.kernel_w == 3 && p.dilation_h == 1 && p.dilation_w == 1 &&
        p.spread_h == 1 && p.spread_w == 1 && p.stride_h == p.stride_w && p.stride_h <= 2)
        p.step = p.stride_h;
    return p;
}

static plane forward_plane(const pk_conv *c) {
    return finished((plane){.height = c->height, .width = c->width, .out_h = c->out_h,
                            .out_w = c->out_w, .kernel_h = c->kernel_h, .kernel_w = c->kernel_w,
                            .stride_h = c->stride_h, .stride_w = c->stride_w,
                            .dilation_h = c->dilation_h, .dilation_w = c->dilation_w,
                            .top = c->pad_top, .left = c->pad_left, .spread_h = 1, .spread_w = 1});
}

static plane backward_plane(const pk_conv *c) {
    return finished((plane){.height = c->out_h, .width = c->out_w, .out_h = c->height,
                            .out_w = c->width, .kernel_h = c->kernel_h, .kernel_w = c->kernel_w,
                            .stride_h = 1, .stride_w = 1,
                            .dilation_h = c->dilation_h, .dilation_w = c->dilation_w,
                            .top = (c->kernel_h - 1) * c->dilation_h - c->pad_top,
                            .left = (c->kernel_w - 1) * c->dilation_w - c->pad_left,
                            .spread_h = c->stride_h, .spread_w = c->stride_w});
}

int pk_depthwise_fits(const pk_conv *c) {
    /* One channel in one group is an ordinary convolution of a grey picture: all outputs read it,
     * and products are several times as fast. */
    if (c->groups == 1 && c->out_channels > 1) return 0;
    if (c->groups != c->channels || c->kernel_h * c->kernel_w > MOST_TAPS) return 0;
    return forward_plane(c).strip > 0 && backward_plane(c).strip > 0;
}

/* ---- rows into the room ---- */

/* One row of the plane, `from`, to columns in their padding; NULL: zeros. */
static void lay_row(const plane *p, const float *from, float *to) {
    /* What the values below do not cover: in the plain case the columns beside them. */
    const int plain = from != NULL && p->spread_w == 1 && p->stride_w == 1 && p->left >= 0;
    const int64_t there = pk_min_i64(p->width, p->phase - SLACK - p->left);
    for (int64_t i = 0; i < (plain ? p->left : p->row); i += 16)
        pk_store_n(to + i, pk_zero(), p->row - i);
    if (plain) {
        PK_FOR16(i, n, there) pk_store(to + p->left + i, pk_load_n(from + i, n));
        for (int64_t i = p->left + pk_ceil_div(there, 16) * 16; i < p->row; i += 16)
            pk_store_n(to + i, pk_zero(), p->row - i);
        return;
    }
    if (from == NULL) return;
    if (p->spread_w == 1 && p->left >= 0 && p->stride_w == 2) {
        float *first = to + p->left % 2 * p->phase + p->left / 2;
        float *second = to + (p->left + 1) % 2 * p->phase + (p->left + 1) / 2;
        const int64_t inside = pk_min_i64(p->width, 2 * (p->phase - SLACK) - p->left);
        for (int64_t i = 0; i < inside; i += 32) {
            pk_vec even, odd;
            pk_sort_pairs(pk_load_n(from + i, inside - i),
                          pk_load_n(from + i + 16, pk_max_i64(0, inside - i - 16)), &even, &odd);
            pk_store(first + i / 2, even);
            pk_store(second + i / 2, odd);
        }
        return;
    }
    if (p->spread_w == 2 && p->left >= 0 && p->stride_w == 1) {
        const int64_t inside = pk_min_i64(p->width, (p->phase - SLACK - p->left + 1) / 2);
        PK_FOR16(i, n, inside) pk_spread_pairs(pk_load_n(from + i, n), to + p->left + 2 * i);
        return;
    }
    const int64_t end = (p->phase - SLACK) * p->stride_w;
    for (int64_t i = 0; i < p->width; i++) {
        const int64_t column = i * p->spread_w + p->left;
        if (column >= 0 && column < end)
            to[column % p->stride_w * p->phase + column / p->stride_w] = from[i];
    }
}

/* The rows that output rows first..last read. */
static void lay_rows(const plane *p, const float *x, int64_t first, int64_t last, float *room) {
    const int64_t rows = (last - first - 1) * p->stride_h + (p->kernel_h - 1) * p->dilation_h + 1;
    for (int64_t r = 0; r < rows; r++) {
        const int64_t at = first * p->stride_h + r - p->top, row = at / p->spread_h;
        const int there = at >= 0 && at % p->spread_h == 0 && row < p->height;
        lay_row(p, there ? x + row * p->width : NULL, room + r * p->row);
    }
}

/* ---- forward ---- */

typedef struct {
    float *out;
    const float *z; /* or NULL */
    float scale, bias;
    int32_t activation, accumulate;
} target;

PK_INLINE void put(const target *to, int64_t at, pk_vec v, int64_t n) {
    v = pk_fma(v, pk_set1(to->scale), pk_set1(to->bias));
    if (to->z) v = pk_add(v, pk_load_n(to->z + at, n));
    v = pk_activate(v, to->activation);
    pk_store_n(to->out + at, to->accumulate ? pk_add(pk_load_n(to->out + at, n), v) : v, n);
}

/* Sixteen outputs and so on to the end of a row, whose taps lie `offset` apart. */
PK_INLINE void convolve_row(const float *from, const int64_t *offset, const pk_vec *tap,
                            const int64_t taps, const target *to, int64_t at, int64_t n) {
    PK_FOR16(j, c, n) {
        pk_vec sum = pk_zero();
        _Pragma("GCC unroll 9") for (int64_t t = 0; t < taps; t++)
            sum = pk_fma(tap[t], pk_load(from + offset[t] + j), sum);
        put(to, at + j, sum, c);
    }
}

/* What the three taps of a kernel row meet; x lies under the first tap of the first output, NULL is
 * the padding above and below. */
PK_INLINE void meet(const float *x, const pk_mask *mask, const int64_t step, pk_vec *seen) {
    if (x == NULL) {
        seen[0] = seen[1] = seen[2] = pk_zero();
    } else if (step == 1) {
        for (int i = 0; i < 3; i++) seen[i] = pk_load_mask(x + i, mask[i]);
    } else {
        pk_vec unread;
        pk_sort_pairs(pk_load_mask(x, mask[0]), pk_load_mask(x + 16, mask[1]), &seen[0], &seen[1]);
        pk_sort_pairs(pk_load_mask(x + 2, mask[2]), pk_load_mask(x + 18, mask[3]), &seen[2],
                      &unread);
    }
}

/* Where the input row under kernel row `tap` is kept for output row h: a row that the next output
 * reads again stays in its registers. */
#define KEPT(step, h, tap) ((step) == 1 ? ((h) + (tap)) % 3 : (h) % 2 ? 2 - (tap) : (tap))
#define PERIOD 6 /* of h */

/* Sixteen columns down the plane. */
PK_INLINE void convolve_three(const plane *p, const float *x, const pk_vec *tap, const target *to,
                              const int64_t step) {
    static const int64_t loads[2][4] = {{0, 1, 2, 2}, {0, 16, 2, 18}};
    for (int64_t j = 0; j < p->out_w; j += 16) {
        const int64_t column = j * step - p->left, n = pk_min_i64(16, p->out_w - j);
        pk_mask mask[4];
        for (int i = 0; i < 4; i++) {
            const int64_t first = column + loads[step - 1][i];
            mask[i] = pk_lanes_between(-first, p->width - first);
        }
        pk_vec seen[3][3];
        for (int64_t t = 0, i = -p->top; t < 3 - step; t++, i++)
            meet(i >= 0 && i < p->height ? x + i * p->width + column : NULL, mask, step, seen[t]);
        for (int64_t h = 0; h < p->out_h; h += PERIOD)
            _Pragma("GCC unroll 6") for (int u = 0; u < PERIOD; u++) {
                if (h + u >= p->out_h) break;
                int64_t i = (h + u) * step + 3 - step - p->top;
                for (int64_t t = 3 - step; t < 3; t++, i++)
                    meet(i >= 0 && i < p->height ? x + i * p->width + column : NULL, mask, step,
                         seen[KEPT(step, u, t)]);
                /* A store that misses the caches waits in order. */
                __builtin_prefetch(to->out + (h + u + 8) * p->out_w + j, 1, 2);
                pk_vec sum = pk_zero();
                for (int t = 0; t < 9; t++)
                    sum = pk_fma(tap[t], seen[KEPT(step, u, t / 3)][t % 3], sum);
                put(to, (h + u) * p->out_w + j, sum, n);
            }
    }
}

/* One plane; `turned`: the filter from its end. */
static void convolve(const plane *p, const float *x, const float *w, int turned,
                     const target *where, float *room) {
    /* Copies that no store can reach, so that the usual nine taps stay in registers. */
    const target to = *where;
    int64_t offset[MOST_TAPS];
    pk_vec tap[MOST_TAPS];
    for (int64_t t = 0; t < p->taps; t++) {
        tap[t] = pk_set1(w[turned ? p->taps - 1 - t : t]);
        offset[t] = p->offset[t];
    }
    if (p->step == 1) return convolve_three(p, x, tap, &to, 1);
    if (p->step == 2) return convolve_three(p, x, tap, &to, 2);
    for (int64_t first = 0; first < p->out_h; first += p->strip) {
        const int64_t last = pk_min_i64(p->out_h, first + p->strip);
        lay_rows(p, x, first, last, room);
        for (int64_t h = first; h < last; h++) {
            const float *from = room + (h - first) * p->stride_h * p->row;
            if (p->taps == 9)
                convolve_row(from, offset, tap, 9, &to, h * p->out_w, p->out_w);
            else
                convolve_row(from, offset, tap, p->taps, &to, h * p->out_w, p->out_w);
        }
    }
}

static void forward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const job *k = context;
    const pk_conv *c = k->conv;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const int64_t o = i % c->out_channels, sample = i / c->out_channels;
        const pk_after *after = &k->after;
        const int64_t at = i * c->out_h * c->out_w;
        const target to = {.out = k->out + at,
                           .z = after->z ? after->z + at : NULL,
                           .scale = after->scale ? after->scale[o] : 1.0f,
                           .bias = after->bias ? after->bias[o] : 0.0f,
                           .activation = after->activation,
                           .accumulate = after->accumulate};
        convolve(&k->p, k->x + (sample * c->channels + o / k->share) * c->height * c->width,
                 k->w + o * k->p.taps, 0, &to, scratch);
    }
}

/* A power of two, as channels often are: then threads get as many planes each. */
static int64_t grain_of(const plane *p) {
    int64_t grain = 1;
    while (grain * pk_max_i64(1, p->out_h * p->out_w) < 16384) grain *= 2;
    return grain;
}

void pk_depthwise_forward(const pk_call *call, const pk_conv *conv, const float *x, const float *w,
                          const pk_after *after, float *y) {
    job k = {.conv = conv, .p = forward_plane(conv), .share = conv->out_channels / conv->groups,
             .x = x, .w = w, .after = *after, .out = y};
    pk_parallel(call, conv->n * conv->out_channels, grain_of(&k.p), forward_task, &k);
}

/* ---- input gradient ---- */

static void input_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const job *k = context;
    const pk_conv *c = k->conv;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const int64_t channel = i % c->channels, sample = i / c->channels;
        target to = {.out = k->out + i * c->height * c->width, .scale = 1.0f,
                     .accumulate = k->accumulate};
        for (int64_t s = 0; s < k->share; s++, to.accumulate = 1) {
            const int64_t o = channel * k->share + s;
            convolve(&k->p, k->dy + (sample * c->out_channels + o) * c->out_h * c->out_w,
                     k->w + o * k->p.taps, 1, &to, scratch);
        }
    }
}

void pk_depthwise_input_gradient(const pk_call *call, const pk_conv *conv, const float *dy,
                                 const float *w, int32_t accumulate, float *dx) {
    job k = {.conv = conv, .p = backward_plane(conv), .share = conv->out_channels / conv->groups,
             .dy = dy, .w = w, .out = dx, .accumulate = accumulate};
    pk_parallel(call, conv->n * conv->channels, grain_of(&k.p), input_task, &k);
}

/* ---- filter gradient ---- */

/* Adds to sum the lanes of dy * (what tap t reads) over output rows first..last. */
PK_INLINE void add_products(const plane *p, const float *room, const float *dy, int64_t first,
                            int64_t last, const int taps, const int64_t *offset, pk_vec *sum) {
    for (int64_t h = first; h < last; h++) {
        const float *from = room + (h - first) * p->stride_h * p->row, *row = dy + h * p->out_w;
        PK_FOR16(j, n, p->out_w) {
            const pk_vec d = pk_load_n(row + j, n);
            _Pragma("GCC unroll 9") for (int t = 0; t < taps; t++)
                sum[t] = pk_fma(d, pk_load(from + offset[t] + j), sum[t]);
        }
    }
}

static void filter_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const job *k = context;
    const pk_conv *c = k->conv;
    const plane *p = &k->p;
    (void)thread;
    for (int64_t o = begin; o < end; o++) {
        double total[MOST_TAPS] = {0};
        for (int64_t s = 0; s < c->n; s++) {
            const float *x = k->x + (s * c->channels + o / k->share) * c->height * c->width;
            const float *dy = k->dy + (s * c->out_channels + o) * c->out_h * c->out_w;
            pk_vec sum[MOST_TAPS];
            for (int64_t t = 0; t < p->taps; t++) sum[t] = pk_zero();
            for (int64_t first = 0; first < p->out_h; first += p->strip) {
                const int64_t last = pk_min_i64(p->out_h, first + p->strip);
                lay_rows(p, x, first, last, scratch);
                if (p->taps == 9) {
                    pk_vec nine[9]; /* in registers */
                    for (int t = 0; t < 9; t++) nine[t] = sum[t];
                    add_products(p, scratch, dy, first, last, 9, p->offset, nine);
                    for (int t = 0; t < 9; t++) sum[t] = nine[t];
                } else {
                    for (int64_t t = 0; t < p->taps; t++)
                        add_products(p, scratch, dy, first, last, 1, p->offset + t, sum + t);
                }
            }
            for (int64_t t = 0; t < p->taps; t++) total[t] += pk_sum16(sum[t]);
        }
        float *dw = k->out + o * p->taps;
        for (int64_t t = 0; t < p->taps; t++)
            dw[t] = k->accumulate ? dw[t] + (float)total[t] : (float)total[t];
    }
}

void pk_depthwise_filter_gradient(const pk_call *call, const pk_conv *conv, const float *x,
                                  const float *dy, int32_t accumulate, float *dw) {
    job k = {.conv = conv, .p = forward_plane(conv), .share = conv->out_channels / conv->groups,
             .x = x, .dy = dy, .out = dw, .accumulate = accumulate};
    pk_parallel(call, conv->out_channels, 1, filter_task, &k);
}
