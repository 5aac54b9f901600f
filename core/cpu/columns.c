/* im2col rows are copied run by run: for one row all runs move by the same offset. */
#include "columns.h"

#include "pk_simd.h"

/* A row of the matrix: channel of the group, kernel row and column. */
typedef struct { int64_t channel, kh, kw; } tap;

static tap tap_of(const pk_conv *c, int64_t row) {
    const int64_t area = c->kernel_h * c->kernel_w;
    return (tap){row / area, row % area / c->kernel_w, row % c->kernel_w};
}

static void next_tap(const pk_conv *c, tap *t) {
    if (++t->kw < c->kernel_w) return;
    t->kw = 0;
    if (++t->kh < c->kernel_h) return;
    t->kh = 0;
    t->channel++;
}

void pk_find_runs(const pk_conv *conv, int64_t group, int64_t begin, int64_t end, pk_runs *runs) {
    const int64_t positions = conv->out_h * conv->out_w, area = conv->height * conv->width;
    const int64_t reach_h = (conv->out_h - 1) * conv->stride_h + (conv->kernel_h - 1) * conv->dilation_h - conv->pad_top;
    const int64_t reach_w = (conv->out_w - 1) * conv->stride_w + (conv->kernel_w - 1) * conv->dilation_w - conv->pad_left;
    runs->count = 0;
    runs->inside = conv->pad_top <= 0 && conv->pad_left <= 0 && reach_h < conv->height && reach_w < conv->width;
    int64_t sample = begin / positions, out_row = begin % positions / conv->out_w, out_column = begin % conv->out_w;
    for (int64_t at = begin; at < end;) {
        const int64_t count = pk_min_i64(conv->out_w - out_column, end - at);
        const int64_t row = out_row * conv->stride_h - conv->pad_top;
        const int64_t column = out_column * conv->stride_w - conv->pad_left;
        const int64_t image = (sample * conv->channels + group * (conv->channels / conv->groups)) * area;
        runs->run[runs->count++] = (pk_run){image + row * conv->width + column, (int32_t)(at - begin), (int32_t)count,
                                            (int32_t)row, (int32_t)column};
        at += count;
        out_column = 0;
        if (++out_row == conv->out_h) {
            out_row = 0;
            sample++;
        }
    }
}

/* Outputs lo..hi of a run whose tap lies in x: 0 <= column + step * i < width. */
PK_INLINE void valid(const pk_run *run, int64_t column, int64_t step, int64_t width, int64_t *lo, int64_t *hi) {
    *lo = column >= 0 ? 0 : step == 1 ? -column : (-column + step - 1) / step;
    const int64_t room = width - column;
    *hi = room <= 0 ? 0 : step == 1 ? room : (room + step - 1) / step;
    if (*hi > run->count) *hi = run->count;
    if (*lo > *hi) *lo = *hi;
}

PK_INLINE void copy_run(float *to, const float *from, int64_t step, int64_t n) {
    if (step == 1) {
        PK_FOR16(i, c, n) pk_store(to + i, pk_load_n(from + i, c));
        return;
    }
    int64_t i = 0;
    for (; i < n; i++) to[i] = from[i * step];
    for (; i % 16; i++) to[i] = 0;
}

/* Runs in order: what a store writes behind its run is written again by the next run. */
static void copy_inside(const pk_runs *runs, const float *from, int64_t step, float *out) {
    for (int32_t i = 0; i < runs->count; i++)
        copy_run(out + runs->run[i].at, from + runs->run[i].base, step, runs->run[i].count);
}

static void copy_padded(const pk_conv *c, const pk_runs *runs, const float *from, const tap *t, float *out) {
    for (int32_t i = 0; i < runs->count; i++) {
        const pk_run *run = &runs->run[i];
        const int64_t row = run->row + t->kh * c->dilation_h, column = run->column + t->kw * c->dilation_w;
        int64_t lo = 0, hi = 0;
        if (row >= 0 && row < c->height) valid(run, column, c->stride_w, c->width, &lo, &hi);
        float *to = out + run->at;
        if (lo > 0 || hi < run->count)
            PK_FOR16(j, n, run->count) pk_store(to + j, pk_zero());
        if (lo < hi) copy_run(to + lo, from + run->base + lo * c->stride_w, c->stride_w, hi - lo);
    }
}

/* Offset in x from the first tap to tap t. */
PK_INLINE int64_t offset_of(const pk_conv *c, const tap *t) {
    return (t->channel * c->height + t->kh * c->dilation_h) * c->width + t->kw * c->dilation_w;
}

void pk_copy_columns(const pk_conv *conv, const pk_runs *runs, const float *x, int64_t first, int64_t rows, float *out,
                     int64_t stride) {
    tap t = tap_of(conv, first);
    for (int64_t r = 0; r < rows; r++, out += stride, next_tap(conv, &t)) {
        const float *from = x + offset_of(conv, &t);
        if (runs->inside)
            copy_inside(runs, from, conv->stride_w, out);
        else
            copy_padded(conv, runs, from, &t, out);
    }
}

static void add_run(float *to, const float *from, int64_t step, int64_t n) {
    if (step == 1) {
        PK_FOR16(i, c, n) pk_store_n(to + i, pk_add(pk_load_n(to + i, c), pk_load_n(from + i, c)), c);
        return;
    }
    for (int64_t i = 0; i < n; i++) to[i * step] += from[i];
}

void pk_add_columns(const pk_conv *conv, const pk_runs *runs, const float *in, int64_t stride, int64_t first,
                    int64_t rows, float *x) {
    tap t = tap_of(conv, first);
    for (int64_t r = 0; r < rows; r++, in += stride, next_tap(conv, &t)) {
        float *to = x + offset_of(conv, &t);
        for (int32_t i = 0; i < runs->count; i++) {
            const pk_run *run = &runs->run[i];
            const int64_t row = run->row + t.kh * conv->dilation_h, column = run->column + t.kw * conv->dilation_w;
            if (row < 0 || row >= conv->height) continue;
            int64_t lo, hi;
            valid(run, column, conv->stride_w, conv->width, &lo, &hi);
            add_run(to + run->base + lo * conv->stride_w, in + run->at + lo, conv->stride_w, hi - lo);
        }
    }
}
