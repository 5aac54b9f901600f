/* Convolutions as products of which one factor, the im2col matrix, is packed panel by panel.
 *
 * Columns of that matrix run over (sample, output position), so that small images fill the tiles
 * too.  A block's result lies in scratch until its sum over k is complete. */
#include "convolutions.h"

#include <string.h>

#include "columns.h"
#include "packing.h"
#include "pool.h"
#include "tile.h"

#define BLOCK_ROWS 256

/* The scratch of one task, 710 KiB. */
typedef struct {
    pk_runs runs;
    pk_taps taps;
    _Alignas(64) float panel[PK_PRODUCT_CHUNK * PK_TILE_COLUMNS + 16];
    _Alignas(64) float rows[PK_TILE_COLUMNS * PK_A_ROW_STRIDE +
                            16]; /* im2col rows before they are turned */
    _Alignas(64) float block[BLOCK_ROWS * PK_COLUMN_BLOCK + 16];
    /* BLOCK_ROWS rows or columns of A as pk_pack_a lays them, at most 92 Ki floats. */
    _Alignas(64) float packed[];
} conv_room;
_Static_assert(sizeof(conv_room) + 92 * 1024 * sizeof(float) <= PK_SCRATCH_BYTES,
               "a block fits the scratch");

/* What the tasks of one call share.  Blocks are numbered with the group outermost, rows innermost.
 */
typedef struct {
    const pk_call *call;
    pk_conv conv;
    const float *x, *w, *dy;
    float *y, *dx, *dw;
    pk_after after;     /* of the forward pass */
    int32_t accumulate; /* of the gradients */
    int64_t in_channels, out_channels; /* of one group */
    int64_t taps;                      /* rows of the im2col matrix of one group */
    int64_t positions, columns;        /* of one sample, of all */
    int32_t pixels;                    /* the im2col matrix is x itself: one tap, step 1 */
    int64_t down, across;              /* blocks */
    int64_t block_rows;
    int64_t block_samples; /* of the input gradient */
    int64_t unit, units; /* columns are dealt out evenly in units of so many */
} conv_work;

static conv_work describe(const pk_conv *conv) {
    conv_work w = {.conv = *conv};
    pk_conv *c = &w.conv;
    w.in_channels = c->channels / c->groups;
    w.out_channels = c->out_channels / c->groups;
    w.taps = w.in_channels * c->kernel_h * c->kernel_w;
    w.positions = c->out_h * c->out_w;
    w.columns = c->n * w.positions;
    /* A convolution of single pixels does not know rows: one long run instead of many short ones.
     */
    if (c->kernel_h == 1 && c->kernel_w == 1 && c->stride_h == 1 && c->stride_w == 1 &&
        c->out_h == c->height && c->out_w == c->width) {
        c->width = c->out_w = w.positions;
        c->height = c->out_h = 1;
        w.pixels = 1;
    }
    return w;
}

/* Cuts rows x columns into blocks of at most most_rows x most_columns, and further until there are
 * as many as wanted: rows first while they are many_rows or more. Columns are dealt out in
 * multiples of `unit`. */
static void cut(conv_work *w, int64_t rows, int64_t columns, int64_t most_rows,
                int64_t most_columns, int64_t unit, int64_t many_rows, int64_t wanted) {
    w->down = pk_ceil_div(rows, most_rows);
    w->across = pk_ceil_div(columns, most_columns);
    while (w->down * w->across * w->conv.groups < wanted) {
        if (pk_ceil_div(rows, w->down) >= many_rows)
            w->down++;
        else if (pk_ceil_div(columns, w->across) > unit)
            w->across++;
        else if (pk_ceil_div(rows, w->down) > PK_TILE_ROWS / 2)
            w->down++;
        else
            break;
    }
    w->block_rows = pk_ceil_div(rows, w->down);
    w->down = pk_ceil_div(rows, w->block_rows);
    w->unit = unit;
    w->units = pk_ceil_div(columns, unit);
}

static int64_t wanted_blocks(const pk_call *call) {
    return pk_pool_smallest(call->pool) ? INT64_MAX
           : pk_threads(call) == 1      ? 1
                                        : 2 * pk_threads(call);
}

/* Group, first row and first column of block i. */
typedef struct {
    int64_t group, row, rows, column, columns;
} place;
static place place_of(const conv_work *w, int64_t i, int64_t rows, int64_t columns) {
    place p = {.group = i / (w->down * w->across), .row = i % w->down * w->block_rows};
    const int64_t across = i / w->down % w->across;
    p.column = w->units * across / w->across * w->unit;
    p.rows = pk_min_i64(w->block_rows, rows - p.row);
    p.columns = pk_min_i64(w->units * (across + 1) / w->across * w->unit, columns) - p.column;
    return p;
}

/* ---- planes: channels first .. first + k of a tensor [n, channels, positions] as rows ---- */

typedef struct {
    const float *from;
    int64_t channels, first, positions;
} planes;

/* Columns of one sample or more as a panel. */
static void pack_planes(const planes *p, int64_t k, int64_t column, int64_t n, float *panel) {
    for (int64_t at = 0, count; at < n; at += count) {
        const int64_t sample = (column + at) / p->positions,
                      position = (column + at) % p->positions;
        count = pk_min_i64(p->positions - position, n - at);
        const float *from =
            p->from + (sample * p->channels + p->first) * p->positions + position;
        if (count == n) {
            pk_pack_b(PK_ORDER_ROWS, from, p->positions, k, n, panel);
            return;
        }
        for (int64_t q = 0; q < k; q++)
            PK_FOR16(i, c, count)
                pk_store_n(panel + q * PK_TILE_COLUMNS + at + i,
                           pk_load_n(from + q * p->positions + i, c), c);
    }
}

/* c [rows, n] (=|+=) A * columns, at most PK_TILE_COLUMNS; the columns behind them come next. */
static void multiply_planes(const planes *p, const pk_left *left, int64_t rows, int64_t k,
                            int64_t column, int64_t n, float *panel, float *c, int32_t add) {
    const int64_t sample = column / p->positions, position = column % p->positions;
    const float *from = p->from + (sample * p->channels + p->first) * p->positions + position;
    const pk_later later = {from + PK_TILE_COLUMNS + 15, p->positions, k};
    if (n == PK_TILE_COLUMNS && position + n <= p->positions) {
        pk_tile_panel_packing(left, rows, k, from, p->positions, panel, c, PK_COLUMN_BLOCK, add,
                              &later);
        return;
    }
    pack_planes(p, k, column, n, panel);
    pk_tile_panel(left, rows, k, panel, c, PK_COLUMN_BLOCK, n, add, &later);
}

/* ---- forward: y[o, column] = sum over taps of w[o, tap] * im2col[tap, column] ---- */

/* One stretch of a sample's positions for all rows of the block, from scratch to y + at. */
PK_INLINE void write_part(const conv_work *w, const place *p, const float *block, int64_t at,
                          int64_t n, const int32_t activation) {
    const pk_after *after = &w->after;
    const int64_t first = p->group * w->out_channels + p->row;
    for (int64_t r = 0; r < p->rows; r++, block += PK_COLUMN_BLOCK, at += w->positions) {
        const pk_vec b = pk_set1(after->bias ? after->bias[first + r] : 0.0f);
        const pk_vec a = pk_set1(after->scale ? after->scale[first + r] : 1.0f);
        float *y = w->y + at;
        PK_FOR16(i, c, n) {
            pk_vec v = pk_load_n(block + i, c);
            v = after->scale ? pk_fma(v, a, b) : pk_add(v, b);
            if (after->z) v = pk_add(v, pk_load_n(after->z + at + i, c));
            v = pk_activate(v, activation);
            pk_store_n(y + i, after->accumulate ? pk_add(pk_load_n(y + i, c), v) : v, c);
        }
    }
}

static void write_outputs(const conv_work *w, const place *p, const float *block) {
    for (int64_t at = 0, n; at < p->columns; at += n) {
        const int64_t sample = (p->column + at) / w->positions,
                      position = (p->column + at) % w->positions;
        n = pk_min_i64(w->positions - position, p->columns - at);
        const int64_t y =
            (sample * w->conv.out_channels + p->group * w->out_channels + p->row) * w->positions +
            position;
        switch (w->after.activation) {
        case PK_ACT_RELU: write_part(w, p, block + at, y, n, PK_ACT_RELU); break;
        case PK_ACT_TANH: write_part(w, p, block + at, y, n, PK_ACT_TANH); break;
        case PK_ACT_SIGMOID: write_part(w, p, block + at, y, n, PK_ACT_SIGMOID); break;
        default: write_part(w, p, block + at, y, n, PK_ACT_NONE);
        }
    }
}

/* Fetches the lines that some columns will be written to, while sums run: a store that misses the
 * caches waits in order. */
PK_INLINE void fetch_outputs(const conv_work *w, const place *p, int64_t column, int64_t n) {
    const int64_t sample = column / w->positions, position = column % w->positions;
    const float *y = w->y +
                     (sample * w->conv.out_channels + p->group * w->out_channels + p->row) *
                         w->positions +
                     position;
    for (int64_t r = 0; r < p->rows; r++, y += w->positions)
        for (int64_t i = 0; i < n; i += 16) __builtin_prefetch(y + i, 1, 2);
}

/* A chunk of the block's filters, where they lie; rows a multiple of 4 KiB apart share one set of
 * the L1 cache, where a tile's do not fit: they are packed. */
static pk_left filters_of(const conv_work *w, const place *p, int64_t k0, int64_t k,
                          float *packed) {
    const float *filter = w->w + (p->group * w->out_channels + p->row) * w->taps + k0;
    if (w->taps % 1024) return (pk_left){PK_ORDER_ROWS, filter, w->taps, 0};
    pk_pack_a(PK_ORDER_ROWS, filter, w->taps, p->rows, k, packed);
    return pk_packed_left(PK_ORDER_ROWS, packed);
}

/* Adds chunk k0 .. k0 + k of the sums to the block. */
static void forward_chunk(const conv_work *w, const place *p, int64_t k0, int64_t k,
                          conv_room *room) {
    const planes x = {w->x, w->conv.channels, p->group * w->in_channels + k0, w->positions};
    const pk_left left = filters_of(w, p, k0, k, room->packed);
    const pk_later none = {w->x, 0, 0};
    if (!w->pixels) pk_find_taps(&w->conv, k0, k, &room->taps);
    for (int64_t j = 0; j < p->columns; j += PK_TILE_COLUMNS) {
        const int64_t n = pk_min_i64(PK_TILE_COLUMNS, p->columns - j);
        if (k0 + k == w->taps) fetch_outputs(w, p, p->column + j, n);
        if (w->pixels) {
            multiply_planes(&x, &left, p->rows, k, p->column + j, n, room->panel, room->block + j,
                            k0 > 0);
            continue;
        }
        pk_find_runs(&w->conv, p->group, p->column + j, p->column + j + n, &room->runs);
        pk_copy_columns(&w->conv, &room->runs, &room->taps, w->x, room->panel, PK_TILE_COLUMNS);
        pk_tile_panel(&left, p->rows, k, room->panel, room->block + j, PK_COLUMN_BLOCK, n, k0 > 0,
                      &none);
    }
}

/* The sums of one small picture, whose columns would leave vectors half empty: the transposed
 * product, whose vectors run over output channels.  An element is the same chain of fma. */
static void forward_turned(const conv_work *w, const place *p, conv_room *room) {
    const pk_product turned = {
        .m = p->columns,
        .n = p->rows,
        .k = w->taps,
        .a = w->x + p->group * w->in_channels * w->positions + p->column,
        .a_stride = w->positions,
        .a_transposed = 1,
        .b = w->w + (p->group * w->out_channels + p->row) * w->taps,
        .b_stride = w->taps,
        .b_transposed = 1,
        .c = room->packed,
        .c_stride = BLOCK_ROWS,
    };
    pk_multiply(w->call, &turned);
    pk_transpose_block(room->packed, BLOCK_ROWS, p->columns, p->rows, room->block, PK_COLUMN_BLOCK);
}

/* Turning the filters costs as much as four columns; at most 88 columns gain by it. */
static int turns(const conv_work *w) {
    const int64_t empty = pk_ceil_div(w->columns, 16) * 16 - w->columns;
    return w->pixels && w->conv.n == 1 && w->out_channels >= PK_TILE_COLUMNS &&
           8 * empty >= w->columns + 32;
}

static void forward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const conv_work *w = context;
    conv_room *room = scratch;
    const int turned = turns(w);
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const place p = place_of(w, i, w->out_channels, w->columns);
        if (turned) forward_turned(w, &p, room);
        for (int64_t k0 = 0; k0 < w->taps && !turned; k0 += PK_PRODUCT_CHUNK)
            forward_chunk(w, &p, k0, pk_min_i64(PK_PRODUCT_CHUNK, w->taps - k0), room);
        write_outputs(w, &p, room->block);
    }
}

void pk_conv_forward(const pk_call *call, const pk_conv *conv, const float *x, const float *w,
                     const float *bias, int32_t activation, int32_t accumulate, float *y) {
    const pk_after after = {
        .bias = bias, .activation = activation, .accumulate = accumulate};
    pk_conv_forward_after(call, conv, x, w, &after, y);
}

void pk_conv_forward_after(const pk_call *call, const pk_conv *conv, const float *x, const float *w,
                           const pk_after *after, float *y) {
    conv_work work = describe(conv);
    work.call = call;
    work.x = x;
    work.w = w;
    work.after = *after;
    work.y = y;
    if (work.columns <= 0 || work.out_channels <= 0) return;
    /* Where nothing is copied for a block, shorter ones cost less than columns cut once more. */
    const int64_t many = work.pixels ? 6 * PK_TILE_ROWS : INT64_MAX, threads = pk_threads(call);
    cut(&work, work.out_channels, work.columns, BLOCK_ROWS, PK_COLUMN_BLOCK, PK_TILE_COLUMNS, many,
        wanted_blocks(call));
    /* As many for each thread. */
    if (work.down * conv->groups % threads != 0)
        work.across = pk_min_i64(work.units, pk_ceil_div(work.across, threads) * threads);
    pk_parallel(call, work.conv.groups * work.down * work.across, 1, forward_task, &work);
}

/* ---- input gradient: for each tap the sum over output channels of w[o, tap] * dy[o, column],
 * added where it lies ---- */

/* Rows row..row + rows of the gradient of the im2col matrix, for columns of one or more whole
 * samples or a part of one. */
static void gradient_block(const conv_work *w, int64_t group, int64_t row, int64_t rows,
                           int64_t column, int64_t columns, conv_room *room) {
    for (int64_t k0 = 0; k0 < w->out_channels; k0 += PK_PRODUCT_CHUNK) {
        const int64_t k = pk_min_i64(PK_PRODUCT_CHUNK, w->out_channels - k0);
        const float *filter = w->w + (group * w->out_channels + k0) * w->taps + row;
        const planes dy = {w->dy, w->conv.out_channels, group * w->out_channels + k0, w->positions};
        const pk_left left = pk_packed_left(PK_ORDER_COLUMNS, room->packed);
        pk_pack_a(PK_ORDER_COLUMNS, filter, w->taps, rows, k, room->packed);
        for (int64_t j = 0; j < columns; j += PK_TILE_COLUMNS)
            multiply_planes(&dy, &left, rows, k, column + j,
                            pk_min_i64(PK_TILE_COLUMNS, columns - j), room->panel, room->block + j,
                            k0 > 0);
    }
    pk_find_runs(&w->conv, group, column, column + columns, &room->runs);
    pk_add_columns(&w->conv, &room->runs, room->block, PK_COLUMN_BLOCK, row, rows, w->dx);
}

/* A block here is some channels of some whole samples, so that every value of dx has one task;
 * inside, blocks of columns begin at the first sample, and a sample's cut does not depend on its
 * place in the batch. */
static void input_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const conv_work *w = context;
    const pk_conv *c = &w->conv;
    const int64_t area = c->kernel_h * c->kernel_w, pixels = c->height * c->width;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const int64_t group = i / (w->down * w->across), channel = i % w->down * w->block_rows;
        const int64_t sample = i / w->down % w->across * w->block_samples;
        const int64_t channels = pk_min_i64(w->block_rows, w->in_channels - channel);
        const int64_t samples = pk_min_i64(w->block_samples, c->n - sample);
        for (int64_t s = sample; s < sample + samples && !w->accumulate; s++) {
            float *dx = w->dx + (s * c->channels + group * w->in_channels + channel) * pixels;
            PK_FOR16(j, n, channels * pixels) pk_store_n(dx + j, pk_zero(), n);
        }
        const int64_t last = (sample + samples) * w->positions;
        /* Whole output rows, where they fit. */
        const int64_t step =
            c->out_w > PK_COLUMN_BLOCK ? PK_COLUMN_BLOCK : PK_COLUMN_BLOCK / c->out_w * c->out_w;
        for (int64_t at = sample * w->positions; at < last; at += step)
            for (int64_t row = channel * area; row < (channel + channels) * area; row += BLOCK_ROWS)
                gradient_block(w, group, row,
                               pk_min_i64(BLOCK_ROWS, (channel + channels) * area - row), at,
                               pk_min_i64(step, last - at), scratch);
    }
}

void pk_conv_input_gradient(const pk_call *call, const pk_conv *conv, const float *dy,
                            const float *w, int32_t accumulate, float *dx) {
    conv_work work = describe(conv);
    work.dy = dy;
    work.w = w;
    work.accumulate = accumulate;
    work.dx = dx;
    if (conv->n <= 0 || work.in_channels <= 0) return;
    const int64_t area = work.conv.kernel_h * work.conv.kernel_w;
    const int64_t wanted = wanted_blocks(call);
    /* Samples share a block only when it holds them whole. */
    work.block_samples = pk_max_i64(1, PK_COLUMN_BLOCK / pk_max_i64(1, work.positions));
    work.block_rows = pk_max_i64(1, BLOCK_ROWS / area);
    while (pk_ceil_div(conv->n, work.block_samples) *
               pk_ceil_div(work.in_channels, work.block_rows) * conv->groups <
           wanted) {
        if (work.block_samples > 1)
            work.block_samples = pk_ceil_div(work.block_samples, 2);
        else if (work.block_rows > 1)
            work.block_rows = pk_ceil_div(work.block_rows, 2);
        else
            break;
    }
    work.across = pk_ceil_div(conv->n, work.block_samples);
    work.down = pk_ceil_div(work.in_channels, work.block_rows);
    pk_parallel(call, conv->groups * work.down * work.across, 1, input_task, &work);
}

/* ---- filter gradient: dw[o, tap] = sum over columns of dy[o, column] * im2col[tap, column] ----
 */

/* Packs dy[row .. row + rows, columns] of the group with columns contiguous. */
static void pack_dy_rows(const conv_work *w, const place *p, int64_t column, int64_t k,
                         float *packed) {
    for (int64_t at = 0, count; at < k; at += count) {
        const int64_t sample = (column + at) / w->positions,
                      position = (column + at) % w->positions;
        count = pk_min_i64(w->positions - position, k - at);
        const float *dy =
            w->dy +
            (sample * w->conv.out_channels + p->group * w->out_channels + p->row) * w->positions;
        for (int64_t r = 0; r < p->rows; r++)
            PK_FOR16(i, c, count)
                pk_store(packed + r * PK_A_ROW_STRIDE + at + i,
                         pk_load_n(dy + r * w->positions + position + i, c));
    }
}

static void write_filters(const conv_work *w, const place *p, const float *block) {
    float *dw = w->dw + (p->group * w->out_channels + p->row) * w->taps + p->column;
    for (int64_t r = 0; r < p->rows; r++, dw += w->taps, block += PK_COLUMN_BLOCK)
        PK_FOR16(i, c, p->columns) {
            pk_vec v = pk_load_n(block + i, c);
            if (w->accumulate) v = pk_add(pk_load_n(dw + i, c), v);
            pk_store_n(dw + i, v, c);
        }
}

static void filter_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const conv_work *w = context;
    conv_room *room = scratch;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const place p = place_of(w, i, w->out_channels, w->taps);
        memset(room->rows, 0, sizeof room->rows);
        for (int64_t r = 0; r < p.rows; r++)
            for (int64_t j = 0; j < p.columns; j += 16)
                pk_store(room->block + r * PK_COLUMN_BLOCK + j, pk_zero());
        for (int64_t k0 = 0; k0 < w->columns; k0 += PK_PRODUCT_CHUNK) {
            const int64_t k = pk_min_i64(PK_PRODUCT_CHUNK, w->columns - k0);
            pk_find_runs(&w->conv, p.group, k0, k0 + k, &room->runs);
            pack_dy_rows(w, &p, k0, k, room->packed);
            for (int64_t j = 0; j < p.columns; j += PK_TILE_COLUMNS) {
                const int64_t n = pk_min_i64(PK_TILE_COLUMNS, p.columns - j);
                pk_find_taps(&w->conv, p.column + j, n, &room->taps);
                pk_copy_columns(&w->conv, &room->runs, &room->taps, w->x, room->rows,
                                PK_A_ROW_STRIDE);
                /* Rows behind n are old or 0; whole groups of sixteen turn faster. */
                pk_pack_b(PK_ORDER_COLUMNS, room->rows, PK_A_ROW_STRIDE, k, pk_ceil_div(n, 16) * 16,
                          room->panel);
                pk_tile_column(PK_ORDER_ROWS, p.rows, k, room->packed, room->panel, room->block + j,
                               PK_COLUMN_BLOCK, n, 1);
            }
        }
        write_filters(w, &p, room->block);
    }
}

void pk_conv_filter_gradient(const pk_call *call, const pk_conv *conv, const float *x,
                             const float *dy, int32_t accumulate, float *dw) {
    conv_work work = describe(conv);
    work.x = x;
    work.dy = dy;
    work.accumulate = accumulate;
    work.dw = dw;
    if (work.taps <= 0 || work.out_channels <= 0) return;
    /* A panel that is not full costs less than a second packing of its columns for other rows. */
    const int64_t threads = pk_threads(call);
    const int64_t unit = work.taps < threads * PK_TILE_COLUMNS ? 16 : PK_TILE_COLUMNS;
    cut(&work, work.out_channels, work.taps, BLOCK_ROWS, PK_COLUMN_BLOCK, unit, INT64_MAX,
        pk_pool_smallest(call->pool) ? INT64_MAX : unit == 16 ? threads : wanted_blocks(call));
    pk_parallel(call, work.conv.groups * work.down * work.across, 1, filter_task, &work);
}

/* ---- bias gradient ---- */

static void bias_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const conv_work *w = context;
    (void)thread;
    (void)scratch;
    for (int64_t c = begin; c < end; c++) {
        float sum = 0;
        for (int64_t s = 0; s < w->conv.n; s++)
            sum += pk_row_sum(w->dy + (s * w->conv.out_channels + c) * w->positions, w->positions);
        w->dw[c] = w->accumulate ? w->dw[c] + sum : sum;
    }
}

void pk_conv_bias_gradient(const pk_call *call, const pk_conv *conv, const float *dy,
                           int32_t accumulate, float *db) {
    conv_work work = describe(conv);
    work.dy = dy;
    work.accumulate = accumulate;
    work.dw = db;
    const int64_t grain = pk_ceil_div(32768, pk_max_i64(1, work.columns));
    pk_parallel(call, conv->out_channels, grain, bias_task, &work);
}
