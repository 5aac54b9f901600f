/* im2col is copied run by run: a run moves by the same offsets for every run, one offset a tap. */
#include "columns.h"

#include "pairs.h"

void pk_find_taps(const pk_conv *conv, int64_t first, int64_t count, pk_taps *taps) {
    const int64_t area = conv->kernel_h * conv->kernel_w;
    int64_t channel = first / area, kh = first % area / conv->kernel_w, kw = first % conv->kernel_w;
    taps->first = first;
    taps->count = count;
    for (int64_t i = 0; i < count; i++) {
        taps->offset[i] =
            (channel * conv->height + kh * conv->dilation_h) * conv->width + kw * conv->dilation_w;
        if (++kw < conv->kernel_w) continue;
        kw = 0;
        if (++kh < conv->kernel_h) continue;
        kh = 0;
        channel++;
    }
}

void pk_find_runs(const pk_conv *conv, int64_t group, int64_t begin, int64_t end, pk_runs *runs) {
    const int64_t positions = conv->out_h * conv->out_w, area = conv->height * conv->width;
    const int64_t reach_h = (conv->out_h - 1) * conv->stride_h +
                            (conv->kernel_h - 1) * conv->dilation_h - conv->pad_top;
    const int64_t reach_w = (conv->out_w - 1) * conv->stride_w +
                            (conv->kernel_w - 1) * conv->dilation_w - conv->pad_left;
    runs->count = 0;
    runs->inside = conv->pad_top <= 0 && conv->pad_left <= 0 && reach_h < conv->height &&
                   reach_w < conv->width;
    int64_t sample = begin / positions, out_row = begin % positions / conv->out_w,
            out_column = begin % conv->out_w;
    for (int64_t at = begin; at < end;) {
        const int64_t count = pk_min_i64(conv->out_w - out_column, end - at);
        const int64_t row = out_row * conv->stride_h - conv->pad_top;
        const int64_t column = out_column * conv->stride_w - conv->pad_left;
        const int64_t image =
            (sample * conv->channels + group * (conv->channels / conv->groups)) * area;
        runs->run[runs->count++] =
            (pk_run){image + row * conv->width + column, (int32_t)(at - begin), (int32_t)count,
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
PK_INLINE void valid(const pk_run *run, int64_t column, int64_t step, int64_t width, int64_t *lo,
                     int64_t *hi) {
    *lo = column >= 0 ? 0 : step == 1 ? -column : (-column + step - 1) / step;
    const int64_t room = width - column;
    *hi = room <= 0 ? 0 : step == 1 ? room : (room + step - 1) / step;
    if (*hi > run->count) *hi = run->count;
    if (*lo > *hi) *lo = *hi;
}

/* Sixteen outputs of one run for the rows first, first + step ...: the mask and all sizes stay the
 * same, so the loop is one load and one store.  A store may run over the columns of later runs,
 * which come after it, but not into the next row. */
PK_INLINE void copy_piece(const pk_taps *taps, const float *from, pk_mask mask, int64_t first,
                          int64_t step, float *out, int64_t stride, int64_t room) {
    if (room >= 16)
        for (int64_t r = first; r < taps->count; r += step)
            pk_store(out + r * stride, pk_load_mask(from + taps->offset[r], mask));
    else
        for (int64_t r = first; r < taps->count; r += step)
            pk_store_n(out + r * stride, pk_load_mask(from + taps->offset[r], mask), room);
}

/* With padding the mask depends on the tap's place in the kernel: the rows of all channels for one
 * place together. */
static void copy_padded(const pk_conv *c, const pk_run *run, const pk_taps *taps, const float *x,
                        float *out, int64_t stride) {
    const int64_t area = c->kernel_h * c->kernel_w;
    for (int64_t place = 0; place < area; place++) {
        const int64_t kh = place / c->kernel_w, kw = place % c->kernel_w;
        const int64_t row = run->row + kh * c->dilation_h,
                      column = run->column + kw * c->dilation_w;
        const int64_t first = (place - taps->first % area + area) % area;
        int64_t lo = 0, hi = 0;
        if (row >= 0 && row < c->height) valid(run, column, 1, c->width, &lo, &hi);
        for (int64_t j = 0; j < run->count; j += 16)
            copy_piece(taps, x + run->base + j, pk_lanes_between(lo - j, hi - j), first, area,
                       out + run->at + j, stride, stride - run->at - j);
    }
}

/* A step of two under one place of the kernel: of 32 neighbours the even ones. */
static void copy_pairs(const pk_run *run, const pk_taps *taps, const float *x, int64_t lo,
                       int64_t hi, int64_t first, int64_t area, float *out, int64_t stride) {
    for (int64_t j = 0; j < run->count; j += 16) {
        const int64_t begin = 2 * (lo - j), end = 2 * (hi - j) - 1, room = stride - run->at - j;
        const pk_mask low = pk_lanes_between(begin, end),
                      high = pk_lanes_between(begin - 16, end - 16);
        for (int64_t r = first; r < taps->count; r += area) {
            const float *from = x + run->base + taps->offset[r] + 2 * j;
            float *to = out + r * stride + run->at + j;
            pk_vec even, odd;
            pk_sort_pairs(pk_load_mask(from, low), pk_load_mask(from + 16, high), &even, &odd);
            if (room >= 16)
                pk_store(to, even);
            else
                pk_store_n(to, even, room);
        }
    }
}

static void copy_single(const pk_run *run, const pk_taps *taps, const float *x, int64_t lo,
                        int64_t hi, int64_t first, int64_t area, int64_t step, float *out,
                        int64_t stride) {
    for (int64_t r = first; r < taps->count; r += area) {
        const float *from = x + run->base + taps->offset[r];
        float *to = out + r * stride + run->at;
        for (int64_t i = 0; i < lo; i++) to[i] = 0;
        for (int64_t i = lo; i < hi; i++) to[i] = from[i * step];
        for (int64_t i = hi; i < run->count; i++) to[i] = 0;
    }
}

static void copy_strided(const pk_conv *c, const pk_run *run, const pk_taps *taps, const float *x,
                         float *out, int64_t stride) {
    const int64_t area = c->kernel_h * c->kernel_w, past = taps->first % area;
    for (int64_t kh = 0, place = 0; kh < c->kernel_h; kh++) {
        const int64_t row = run->row + kh * c->dilation_h;
        for (int64_t kw = 0; kw < c->kernel_w; kw++, place++) {
            const int64_t column = run->column + kw * c->dilation_w, step = c->stride_w;
            const int64_t first = place < past ? place - past + area : place - past;
            const int inside = row >= 0 && row < c->height;
            int64_t lo = 0, hi = 0;
            if (step == 2) {
                if (inside) valid(run, column, 2, c->width, &lo, &hi);
                copy_pairs(run, taps, x, lo, hi, first, area, out, stride);
            } else {
                if (inside) valid(run, column, step, c->width, &lo, &hi);
                copy_single(run, taps, x, lo, hi, first, area, step, out, stride);
            }
        }
    }
}

void pk_copy_columns(const pk_conv *conv, const pk_runs *runs, const pk_taps *taps, const float *x,
                     float *out, int64_t stride) {
    for (int32_t i = 0; i < runs->count; i++) {
        const pk_run *run = &runs->run[i];
        if (conv->stride_w != 1)
            copy_strided(conv, run, taps, x, out, stride);
        else if (!runs->inside)
            copy_padded(conv, run, taps, x, out, stride);
        else
            PK_FOR16(j, c, run->count)
                copy_piece(taps, x + run->base + j, pk_first_lanes(c), 0, 1, out + run->at + j,
                           stride, stride - run->at - j);
    }
}

static void add_strided(const pk_conv *c, const pk_runs *runs, const float *in, int64_t kh,
                        int64_t kw, float *x) {
    for (int32_t i = 0; i < runs->count; i++) {
        const pk_run *run = &runs->run[i];
        const int64_t row = run->row + kh * c->dilation_h,
                      column = run->column + kw * c->dilation_w;
        if (row < 0 || row >= c->height) continue;
        int64_t lo, hi;
        valid(run, column, c->stride_w, c->width, &lo, &hi);
        float *to = x + run->base + kh * c->dilation_h * c->width + kw * c->dilation_w;
        for (int64_t j = lo; j < hi; j++) to[j * c->stride_w] += in[run->at + j];
    }
}

#define GATHER_KERNEL 32 /* widest kernel whose masks are kept */

/* Lanes of x[column..] that the output row meets under each place of a kernel row. */
static void find_masks(const pk_conv *c, int64_t column, pk_mask *masks) {
    for (int64_t kw = 0; kw < c->kernel_w; kw++) {
        const int64_t shift = column + c->pad_left - kw * c->dilation_w;
        masks[kw] = pk_lanes_between(-shift, c->out_w - shift);
    }
}

/* Output rows of one sample: run `first` and `count` - 1 more below it.  Each sixteen values of x
 * gather their taps in registers, kernel rows in order, instead of being read and written once a
 * tap. */
static void add_sample(const pk_conv *c, const pk_run *first, int64_t count, const float *in,
                       int64_t stride, int64_t begin, int64_t end, float *x) {
    const int64_t kh_begin = begin / c->kernel_w, kh_end = pk_ceil_div(end, c->kernel_w);
    const int64_t top = pk_max_i64(0, first->row + kh_begin * c->dilation_h);
    const int64_t bottom = pk_min_i64(c->height, first->row + count + (kh_end - 1) * c->dilation_h);
    float *image = x + first->base - first->row * c->width - first->column;
    pk_mask masks[GATHER_KERNEL];
    for (int64_t j = 0; j < c->width; j += 16) {
        find_masks(c, j, masks);
        for (int64_t row = top; row < bottom; row++) {
            pk_vec sum = pk_load_n(image + row * c->width + j, c->width - j);
            for (int64_t kh = kh_begin; kh < kh_end; kh++) {
                const int64_t run = row - kh * c->dilation_h - first->row;
                if (run < 0 || run >= count) continue;
                const int64_t kw = pk_max_i64(0, begin - kh * c->kernel_w);
                const int64_t kw_end = pk_min_i64(c->kernel_w, end - kh * c->kernel_w);
                const float *tap = in + (kh * c->kernel_w - begin) * stride + first->at +
                                   run * c->out_w + j + c->pad_left;
                for (int64_t q = kw; q < kw_end; q++)
                    sum =
                        pk_add(sum, pk_keep(masks[q], pk_load(tap + q * (stride - c->dilation_w))));
            }
            pk_store_n(image + row * c->width + j, sum, c->width - j);
        }
    }
}

static void add_channel(const pk_conv *c, const pk_runs *runs, const float *in, int64_t stride,
                        int64_t begin, int64_t end, float *x) {
    for (int32_t i = 0, n; i < runs->count; i += n) {
        n = 1;
        while (i + n < runs->count && runs->run[i + n].row == runs->run[i].row + n) n++;
        add_sample(c, &runs->run[i], n, in, stride, begin, end, x);
    }
}

void pk_add_columns(const pk_conv *conv, const pk_runs *runs, const float *in, int64_t stride,
                    int64_t first, int64_t rows, float *x) {
    const int64_t area = conv->kernel_h * conv->kernel_w, pixels = conv->height * conv->width;
    const int gather = conv->stride_h == 1 && conv->stride_w == 1 &&
                       conv->kernel_w <= GATHER_KERNEL &&
                       conv->kernel_w * conv->dilation_w + conv->pad_left + 32 <= PK_GATHER_REACH &&
                       conv->out_w <= PK_COLUMN_BLOCK;
    for (int64_t r = first; r < first + rows;) {
        const int64_t begin = r % area, end = pk_min_i64(area, begin + first + rows - r);
        float *to = x + r / area * pixels;
        if (gather)
            add_channel(conv, runs, in, stride, begin, end, to);
        else
            for (int64_t p = begin; p < end; p++)
                add_strided(conv, runs, in + (p - begin) * stride, p / conv->kernel_w,
                            p % conv->kernel_w, to);
        in += (end - begin) * stride;
        r += end - begin;
    }
}
