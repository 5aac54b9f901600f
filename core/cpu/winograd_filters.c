/* The filter gradient: in the transformed space 36 products, each a sum over tiles of (gradient of
 * an output channel) * (input channel).
 *
 * Segments of tiles follow each other; of each, inputs and gradients are transformed into `work` by
 * all threads, then every point's sums go on.  At the end the sums are turned back. */
#include "pool.h"
#include "winograd.h"
#include "winograd_products.h"
#include "winograd_tiles.h"

#define SUM_OUTPUTS 64       /* outputs of a task that sums */
#define CHUNK_TILES 256      /* tiles whose sum starts at 0, at most */
#define SEGMENT_TILES 96     /* at least so many in a segment, */
#define SEGMENT_FLOATS (384 << 10) /* and as many as keep inputs and gradients in this room */

typedef struct {
    const pk_conv *conv;
    const float *x, *dy;
    float *dw;
    int32_t accumulate;
    int64_t across, down, rows, segment; /* tiles in a row; rows of a sample, of all, of a segment */
    int64_t x_row, dy_row; /* floats from tile to tile, an odd number of cache lines */
    int64_t x_point, dy_point, sum_row, sum_point;
    float *inputs, *gradients, *sums;
    int64_t first, last; /* rows of the segment */
} job;

static int64_t whole(int64_t channels) { return pk_ceil_div(channels, 16) * 16; }

static job job_of(const pk_conv *c, float *work) {
    job j = {.conv = c};
    j.across = pk_ceil_div(c->out_w, WINO_TILE);
    j.down = pk_ceil_div(c->out_h, WINO_TILE);
    j.rows = c->n * j.down;
    j.x_row = (whole(c->channels) / 16 | 1) * 16;
    j.dy_row = (whole(c->out_channels) / 16 | 1) * 16;
    const int64_t tiles =
        pk_max_i64(SEGMENT_TILES, SEGMENT_FLOATS / (WINO_POINTS * (j.x_row + j.dy_row)));
    j.segment = pk_max_i64(1, tiles / j.across);
    j.x_point = j.segment * j.across * j.x_row + 16;
    j.dy_point = j.segment * j.across * j.dy_row + 16;
    j.sum_row = whole(c->channels);
    j.sum_point = c->out_channels * j.sum_row + 16;
    j.inputs = work;
    if (work == NULL) return j;
    j.gradients = j.inputs + WINO_POINTS * j.x_point;
    j.sums = j.gradients + WINO_POINTS * j.dy_point;
    return j;
}

int64_t pk_winograd_filter_floats(const pk_conv *conv) {
    const job j = job_of(conv, NULL);
    return WINO_POINTS * (j.x_point + j.dy_point + j.sum_point);
}

/* Sixteen channels, of x or of dy, of some rows of tiles. */
static void transform_task(void *context, int64_t begin, int64_t end, int32_t thread,
                           void *scratch) {
    const job *j = context;
    const pk_conv *c = j->conv;
    wino_room *room = scratch;
    const int64_t x_vectors = pk_ceil_div(c->channels, 16),
                  vectors = x_vectors + pk_ceil_div(c->out_channels, 16);
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const int64_t vector = i % vectors, first = j->first + i / vectors * WINO_LOAD_ROWS;
        const int64_t last = pk_min_i64(j->last, first + WINO_LOAD_ROWS);
        const int64_t tile = (first - j->first) * j->across;
        const int is_x = vector < x_vectors;
        const int64_t channel = 16 * (is_x ? vector : vector - x_vectors);
        const int64_t channels = is_x ? c->channels : c->out_channels;
        const int64_t height = is_x ? c->height : c->out_h, width = is_x ? c->width : c->out_w;
        const int64_t high = is_x ? WINO_SIDE : WINO_TILE;
        const int64_t columns = j->across * WINO_TILE + high - WINO_TILE, row = columns * 16;
        float *v = is_x ? j->inputs + channel + tile * j->x_row
                        : j->gradients + channel + tile * j->dy_row;
        for (int64_t r = first; r < last; r++) {
            const int64_t down = r % j->down, kept = is_x && r > first && down > 0 ? 2 : 0;
            const float *image = (is_x ? j->x : j->dy) +
                                 (r / j->down * channels + channel) * height * width;
            for (int64_t q = 0; q < kept * row; q += 16)
                pk_store(room->strip + q, pk_load(room->strip + WINO_TILE * row + q));
            wino_load_strip(image, channels - channel, height, width,
                            down * WINO_TILE - (is_x ? c->pad_top : 0), is_x ? -c->pad_left : 0,
                            kept, high, columns, room->lines, room->strip);
            for (int64_t t = 0; t < j->across; t++) {
                const float *from = room->strip + t * WINO_TILE * 16;
                if (is_x)
                    wino_input_tile(from, row, v, j->x_point);
                else
                    wino_gradient_tile(from, row, v, j->dy_point);
                v += is_x ? j->x_row : j->dy_row;
            }
        }
    }
}

static void sum_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const job *j = context;
    const int64_t blocks = pk_ceil_div(j->conv->out_channels, SUM_OUTPUTS);
    const int64_t tiles = (j->last - j->first) * j->across;
    (void)thread, (void)scratch;
    for (int64_t i = begin; i < end; i++) {
        const int64_t point = i / blocks, output = i % blocks * SUM_OUTPUTS;
        const int64_t outputs = pk_min_i64(SUM_OUTPUTS, j->conv->out_channels - output);
        const float *gradients = j->gradients + point * j->dy_point + output;
        const float *inputs = j->inputs + point * j->x_point;
        float *sums = j->sums + point * j->sum_point + output * j->sum_row;
        for (int64_t t = 0; t < tiles; t += CHUNK_TILES)
            pk_wino_multiply_tiles(pk_min_i64(CHUNK_TILES, tiles - t), outputs, j->sum_row,
                                   gradients + t * j->dy_row, j->dy_row, inputs + t * j->x_row,
                                   j->x_row, sums, j->sum_row, j->first > 0 || t > 0);
    }
}

static void filters_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const job *j = context;
    const int64_t channels = j->conv->channels;
    (void)thread, (void)scratch;
    for (int64_t o = begin; o < end; o++)
        for (int64_t i = 0; i < channels; i += 16) {
            const float *sums = j->sums + o * j->sum_row + i;
            float *dw = j->dw + (o * channels + i) * 9, lanes[9][16];
            pk_vec u[6], t[18], g[3];
            WINO_EACH(p, 6) {
                WINO_EACH(q, 6) u[q] = pk_load(sums + (p * 6 + q) * j->sum_point);
                wino_filter_back(t + p * 3, 1, u, 1);
            }
            WINO_EACH(q, 3) {
                wino_filter_back(g, 1, t + q, 3);
                WINO_EACH(p, 3) pk_store(lanes[p * 3 + q], g[p]);
            }
            for (int64_t l = 0; l < pk_min_i64(16, channels - i); l++)
                for (int p = 0; p < 9; p++, dw++)
                    *dw = j->accumulate ? *dw + lanes[p][l] : lanes[p][l];
        }
}

void pk_winograd_filter_gradient(const pk_call *call, const pk_conv *conv, const float *x,
                                 const float *dy, int32_t accumulate, float *work, float *dw) {
    job j = job_of(conv, work);
    j.x = x, j.dy = dy, j.dw = dw, j.accumulate = accumulate;
    const int64_t vectors =
        pk_ceil_div(conv->channels, 16) + pk_ceil_div(conv->out_channels, 16);
    if (j.rows == 0)
        for (int64_t i = 0; i < WINO_POINTS * j.sum_point; i++) j.sums[i] = 0;
    for (j.first = 0; j.first < j.rows; j.first = j.last) {
        j.last = pk_min_i64(j.rows, j.first + j.segment);
        pk_parallel(call, pk_ceil_div(j.last - j.first, WINO_LOAD_ROWS) * vectors, 1,
                    transform_task, &j);
        pk_parallel(call, WINO_POINTS * pk_ceil_div(conv->out_channels, SUM_OUTPUTS), 1, sum_task,
                    &j);
    }
    pk_parallel(call, conv->out_channels, 4, filters_task, &j);
}
