/* The forward pass and the input gradient, which is a forward pass with the filters turned around.
 *
 * A piece of work is some rows of tiles.  With few channels (at most WINO_CHUNK) a task transforms
 * its tiles into its own scratch, multiplies them by all filters, which were transformed once, and
 * turns the sums back.  With many the tiles of a segment are transformed into `work` by all
 * threads; then each task makes the outputs of WINO_WIDE channels, with filters that it transforms
 * chunk by chunk. */
#include "winograd.h"

#include "pool.h"
#include "tile.h"
#include "winograd_products.h"
#include "winograd_tiles.h"

#define TASK_TILES 56      /* tiles of a task with few channels */
#define BLOCK_TILES 112    /* tiles of a task with many channels */
#define SEGMENT_FLOATS (3 << 20)

/* Floats from point to point; 16 more than needed, or points would share sets of the cache. */
#define TASK_POINT (TASK_TILES * WINO_ROW + 16)
#define TASK_SUMS (TASK_TILES * WINO_WIDE + 16)
#define BLOCK_SUMS (BLOCK_TILES * WINO_WIDE + 16)

typedef struct {
    wino_room room;
    float tiles[WINO_POINTS * TASK_POINT];
    float sums[WINO_POINTS * TASK_SUMS];
} task_room;
typedef struct {
    wino_room room;
    float filters[WINO_POINTS * WINO_CHUNK * WINO_WIDE];
    float sums[WINO_POINTS * BLOCK_SUMS];
} block_room;
_Static_assert(sizeof(task_room) <= PK_SCRATCH_BYTES, "a task fits the scratch");
_Static_assert(sizeof(block_room) <= PK_SCRATCH_BYTES, "a block fits the scratch");

typedef struct {
    int64_t channels, height, width;     /* of x */
    int64_t outputs, out_h, out_w;       /* of y */
    int64_t top, left;                   /* pixel of the first tile's first input */
    int64_t across, down, rows;          /* tiles in a row; rows of tiles of a sample, of all */
    const float *x, *w;
    int64_t w_output, w_channel;         /* floats between filters of outputs, of channels */
    int turned;                          /* filters are turned by half a circle */
    pk_after after;
    float *y, *work;
    int64_t chunks, wide;                /* of channels and outputs */
    int64_t first, last, point;          /* the segment's rows, floats between its points */
    int64_t block_rows;                  /* rows of tiles of a task */
} job;

static job job_of(const pk_conv *c, pk_pass pass) {
    const int back = pass == PK_PASS_INPUT;
    job j = {.channels = back ? c->out_channels : c->channels,
             .height = back ? c->out_h : c->height,
             .width = back ? c->out_w : c->width,
             .outputs = back ? c->channels : c->out_channels,
             .out_h = back ? c->height : c->out_h,
             .out_w = back ? c->width : c->out_w,
             .top = back ? c->pad_top - 2 : -c->pad_top,
             .left = back ? c->pad_left - 2 : -c->pad_left,
             .w_output = back ? 9 : c->channels * 9,
             .w_channel = back ? c->channels * 9 : 9,
             .turned = back};
    j.across = pk_ceil_div(j.out_w, WINO_TILE);
    j.down = pk_ceil_div(j.out_h, WINO_TILE);
    j.rows = c->n * j.down;
    j.chunks = pk_ceil_div(j.channels, WINO_CHUNK);
    j.wide = pk_ceil_div(j.outputs, WINO_WIDE);
    return j;
}

/* Rows of tiles of a segment of the road for many channels. */
static int64_t segment_rows(const job *j) {
    return pk_max_i64(1, SEGMENT_FLOATS / (j->chunks * WINO_POINTS * WINO_ROW) / j->across);
}

const char *pk_winograd_refuses(const pk_conv *c) {
    if (c->kernel_h != 3 || c->kernel_w != 3) return "tiles take filters of 3x3";
    if (c->stride_h != 1 || c->stride_w != 1 || c->dilation_h != 1 || c->dilation_w != 1 ||
        c->groups != 1)
        return "tiles take stride, dilation and groups of 1";
    if (c->channels < 1 || c->out_channels < 1) return "there is no channel";
    /* What a strip and a line hold. */
    if (c->width > WINO_MOST_WIDTH || c->out_w > WINO_MOST_WIDTH)
        return "tiles take images at most 224 wide";
    return NULL;
}

int64_t pk_winograd_floats(const pk_conv *c, pk_pass pass) {
    if (pass == PK_PASS_FILTER) return pk_winograd_filter_floats(c);
    const job j = job_of(c, pass);
    if (j.chunks == 1) return j.wide * WINO_POINTS * j.channels * WINO_WIDE;
    return j.chunks * WINO_POINTS * (segment_rows(&j) * j.across * WINO_ROW + 16);
}

/* ---- filters ---- */

/* Filters of `count` channels from `channel` on, and of sixteen outputs from `output` on, to
 * u [point][channel][WINO_WIDE], points `point` floats apart. */
static void transform_filters(const job *j, int64_t output, int64_t channel, int64_t count,
                              int64_t point, float *u) {
    const int64_t there = pk_min_i64(16, j->outputs - output);
    for (int64_t i = 0; i < count; i++) {
        const float *w = j->w + output * j->w_output + (channel + i) * j->w_channel;
        pk_vec g[12], t[18], row[6];
        if (there == 16) {
            pk_vec four[4];
            pk_columns_of_16(w + 5, j->w_output, four);
            g[8] = four[3];
            pk_columns_of_16(w, j->w_output, g);
            pk_columns_of_16(w + 4, j->w_output, four);
            for (int q = 0; q < 4; q++) g[4 + q] = four[q];
        } else {
            for (int q = 0; q < 9; q++) g[q] = pk_column_of(w + q, j->w_output, there);
        }
        if (j->turned)
            for (int q = 0; q < 4; q++) {
                const pk_vec other = g[q];
                g[q] = g[8 - q];
                g[8 - q] = other;
            }
        WINO_EACH(q, 3) wino_filter(t + q, 3, g + q, 3);
        WINO_EACH(p, 6) {
            wino_filter(row, 1, t + p * 3, 1);
            WINO_EACH(q, 6) pk_store(u + (p * 6 + q) * point + i * WINO_WIDE, row[q]);
        }
    }
}

static void filters_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const job *j = context;
    const int64_t point = j->channels * WINO_WIDE;
    (void)thread, (void)scratch;
    for (int64_t i = begin; i < end; i++) /* sixteen outputs */
        transform_filters(j, i * 16, 0, j->channels, point,
                          j->work + i / 2 * WINO_POINTS * point + i % 2 * 16);
}

/* ---- tiles ---- */

/* Transforms rows first..last of tiles, sixteen channels from `channel` on, to v, points `point`
 * floats and tiles WINO_ROW floats apart. */
static void transform_rows(const job *j, int64_t first, int64_t last, int64_t channel,
                           wino_room *room, int64_t point, float *v) {
    const int64_t columns = j->across * WINO_TILE + 2, row = columns * 16;
    for (int64_t r = first; r < last; r++) {
        const int64_t sample = r / j->down, down = r % j->down;
        const float *x = j->x + (sample * j->channels + channel) * j->height * j->width;
        /* The row of tiles above has left its last two rows of pixels. */
        const int64_t kept = r > first && down > 0 ? 2 : 0;
        for (int64_t i = 0; i < kept * row; i += 16)
            pk_store(room->strip + i, pk_load(room->strip + WINO_TILE * row + i));
        wino_load_strip(x, j->channels - channel, j->height, j->width, down * WINO_TILE + j->top,
                        j->left, kept, WINO_SIDE, columns, room->lines, room->strip);
        for (int64_t t = 0; t < j->across; t++, v += WINO_ROW)
            wino_input_tile(room->strip + t * WINO_TILE * 16, row, v, point);
    }
}

/* One row of tiles of sums, sixteen outputs from `output` on, to y. */
PK_INLINE void write_row(const job *j, int64_t r, int64_t output, const float *sums, int64_t point,
                         float *strip, const int32_t activation) {
    const pk_after *after = &j->after;
    const int64_t sample = r / j->down, top = r % j->down * WINO_TILE;
    const int64_t high = pk_min_i64(WINO_TILE, j->out_h - top), area = j->out_h * j->out_w;
    const int64_t there = pk_min_i64(16, j->outputs - output);
    const pk_vec bias = after->bias ? pk_load_n(after->bias + output, there) : pk_zero();
    const pk_vec scale = after->scale ? pk_load_n(after->scale + output, there) : pk_set1(1.0f);
    for (int64_t t = 0; t < j->across; t++) {
        const int64_t wide = pk_min_i64(WINO_TILE, j->out_w - t * WINO_TILE);
        pk_vec y[16];
        wino_output_tile(sums + t * WINO_WIDE, point, y);
        _Pragma("GCC unroll 4") for (int64_t i = 0; i < 4; i++)
            _Pragma("GCC unroll 4") for (int64_t q = 0; q < 4; q++) {
                if (i >= high || q >= wide) continue;
                pk_store(strip + (i * j->out_w + t * WINO_TILE + q) * 16,
                         pk_fma(y[i * 4 + q], scale, bias));
            }
    }
    const int64_t to = (sample * j->outputs + output) * area + top * j->out_w;
    PK_FOR16(i, n, high * j->out_w)
        for (int64_t c = 0; c < there; c += 4) {
            pk_vec four[4];
            pk_columns_of_16(strip + i * 16 + c, 16, four);
            _Pragma("GCC unroll 4") for (int64_t q = 0; q < 4; q++) {
                const int64_t at = to + (c + q) * area + i;
                if (c + q >= there) continue;
                pk_vec v = four[q];
                if (after->z) v = pk_add(v, pk_load_n(after->z + at, n));
                v = pk_activate(v, activation);
                pk_store_n(j->y + at, after->accumulate ? pk_add(pk_load_n(j->y + at, n), v) : v,
                           n);
            }
        }
}

static void write_sixteen(const job *j, int64_t r, int64_t output, const float *sums, int64_t point,
                          float *strip) {
    switch (j->after.activation) {
    case PK_ACT_RELU: write_row(j, r, output, sums, point, strip, PK_ACT_RELU); break;
    case PK_ACT_TANH: write_row(j, r, output, sums, point, strip, PK_ACT_TANH); break;
    case PK_ACT_SIGMOID: write_row(j, r, output, sums, point, strip, PK_ACT_SIGMOID); break;
    default: write_row(j, r, output, sums, point, strip, PK_ACT_NONE);
    }
}

static void write_rows(const job *j, int64_t first, int64_t last, int64_t output, const float *sums,
                       int64_t point, float *strip) {
    for (int64_t r = first; r < last; r++, sums += j->across * WINO_WIDE)
        for (int64_t o = 0; o < WINO_WIDE && output + o < j->outputs; o += 16)
            write_sixteen(j, r, output + o, sums + o, point, strip);
}

static int vectors_of(const job *j, int64_t output) { return j->outputs - output > 16 ? 2 : 1; }

/* ---- few channels ---- */

static void few_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const job *j = context;
    task_room *room = scratch;
    const int64_t filter_point = j->channels * WINO_WIDE;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = i * j->block_rows, last = pk_min_i64(j->rows, first + j->block_rows);
        for (int64_t c = 0; c < j->channels; c += 16)
            transform_rows(j, first, last, c, &room->room, TASK_POINT, room->tiles + c);
        for (int64_t b = 0; b < j->wide; b++) {
            const float *u = j->work + b * WINO_POINTS * filter_point;
            for (int p = 0; p < WINO_POINTS; p++)
                pk_wino_multiply((last - first) * j->across, j->channels,
                                 vectors_of(j, b * WINO_WIDE), room->tiles + p * TASK_POINT,
                                 u + p * filter_point, room->sums + p * TASK_SUMS, 0);
            write_rows(j, first, last, b * WINO_WIDE, room->sums, TASK_SUMS, room->room.strip);
        }
    }
}

/* ---- many channels ---- */

static void tiles_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const job *j = context;
    const int64_t vectors = pk_ceil_div(j->channels, 16);
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const int64_t channel = i % vectors * 16, first = j->first + i / vectors * WINO_LOAD_ROWS;
        transform_rows(j, first, pk_min_i64(j->last, first + WINO_LOAD_ROWS), channel, scratch,
                       j->point,
                       j->work + channel / WINO_CHUNK * WINO_POINTS * j->point +
                           channel % WINO_CHUNK + (first - j->first) * j->across * WINO_ROW);
    }
}

static void many_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const job *j = context;
    block_room *room = scratch;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const int64_t output = i % j->wide * WINO_WIDE;
        const int64_t first = j->first + i / j->wide * j->block_rows,
                      last = pk_min_i64(j->last, first + j->block_rows);
        const float *tiles = j->work + (first - j->first) * j->across * WINO_ROW;
        for (int64_t k0 = 0; k0 < j->channels; k0 += WINO_CHUNK, tiles += WINO_POINTS * j->point) {
            const int64_t k = pk_min_i64(WINO_CHUNK, j->channels - k0);
            for (int v = 0; v < vectors_of(j, output); v++)
                transform_filters(j, output + 16 * v, k0, k, WINO_CHUNK * WINO_WIDE,
                                  room->filters + 16 * v);
            for (int p = 0; p < WINO_POINTS; p++)
                pk_wino_multiply((last - first) * j->across, k, vectors_of(j, output),
                                 tiles + p * j->point, room->filters + p * WINO_CHUNK * WINO_WIDE,
                                 room->sums + p * BLOCK_SUMS, k0 > 0);
        }
        write_rows(j, first, last, output, room->sums, BLOCK_SUMS, room->room.strip);
    }
}

/* ---- both ---- */

/* Rows of tiles of a task: as many as `most` tiles hold, fewer where threads would have none.
 * Results do not depend on it. */
static int64_t rows_of_task(const pk_call *call, const job *j, int64_t rows, int64_t most) {
    const int64_t tasks = pk_pool_smallest(call->pool) ? rows : 2 * pk_threads(call);
    const int64_t even = pk_threads(call) > 1 || pk_pool_smallest(call->pool)
                             ? pk_ceil_div(rows, tasks) : rows;
    return pk_max_i64(1, pk_min_i64(most / j->across, even));
}

static void run(const pk_call *call, job *j) {
    if (j->rows <= 0 || j->outputs <= 0) return;
    if (j->chunks == 1) {
        pk_parallel(call, pk_ceil_div(j->outputs, 16), 1, filters_task, j);
        j->block_rows = rows_of_task(call, j, j->rows, TASK_TILES);
        pk_parallel(call, pk_ceil_div(j->rows, j->block_rows), 1, few_task, j);
        return;
    }
    const int64_t segment = segment_rows(j);
    j->point = segment * j->across * WINO_ROW + 16;
    for (j->first = 0; j->first < j->rows; j->first = j->last) {
        j->last = pk_min_i64(j->rows, j->first + segment);
        const int64_t rows = j->last - j->first;
        pk_parallel(call, pk_ceil_div(rows, WINO_LOAD_ROWS) * pk_ceil_div(j->channels, 16), 1,
                    tiles_task, j);
        j->block_rows = pk_max_i64(1, pk_min_i64(rows, BLOCK_TILES / j->across));
        pk_parallel(call, pk_ceil_div(rows, j->block_rows) * j->wide, 1, many_task, j);
    }
}

void pk_winograd_forward(const pk_call *call, const pk_conv *conv, const float *x, const float *w,
                         const pk_after *after, float *work, float *y) {
    job j = job_of(conv, PK_PASS_FORWARD);
    j.x = x, j.w = w, j.after = *after, j.y = y, j.work = work;
    run(call, &j);
}

void pk_winograd_input_gradient(const pk_call *call, const pk_conv *conv, const float *dy,
                                const float *w, int32_t accumulate, float *work, float *dx) {
    job j = job_of(conv, PK_PASS_INPUT);
    j.x = dy, j.w = w, j.y = dx, j.work = work;
    j.after.accumulate = accumulate;
    run(call, &j);
}
