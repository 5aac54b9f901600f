/* global_norm: the norm of all gradients together, from sums of squares in double precision.
 * A gradient that is not finite makes the norm so too. */
#include <string.h>

#include "updates.h"

#define CHUNKS_PER_TASK 4

typedef struct squares {
    double *partial;         /* [chunks] */
    const float *g;
    int64_t n;
    const int64_t *bounds;   /* [segments, 2]; NULL: everything counts */
    const int32_t *clips;
    int64_t segments;
} squares;

/* Sum of squares of chunk `chunk` of the range, as far as it belongs to parameters that are clipped. */
static double chunk_sum(const squares *k, int64_t chunk) {
    int64_t from = chunk * PK_UPDATE_CHUNK, to = pk_min_i64(from + PK_UPDATE_CHUNK, k->n);
    if (!k->bounds) return pk_square_sum(k->g + from, to - from);
    double sum = 0.0;
    for (int64_t s = pk_first_segment(k->bounds, k->segments, from); s < k->segments; s++) {
        int64_t first = pk_max_i64(k->bounds[2 * s], from);
        int64_t last = pk_min_i64(k->bounds[2 * s] + k->bounds[2 * s + 1], to);
        if (first >= to) break;
        if (k->clips[s] && first < last) sum += pk_square_sum(k->g + first, last - first);
    }
    return sum;
}

static void squares_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const squares *k = context;
    for (int64_t chunk = begin; chunk < end; chunk++) k->partial[chunk] = chunk_sum(k, chunk);
}

/* Partials in parallel, their sum in the order of the chunks. */
static pk_status add_up(const pk_call *call, squares *k) {
    const int64_t chunks = pk_ceil_div(k->n, PK_UPDATE_CHUNK), room = pk_count(&call->out[1]);
    if (room < chunks || pk_count(&call->out[0]) != 1)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld chunks, work has %lld elements, total %lld",
                       (long long)chunks, (long long)room, (long long)pk_count(&call->out[0]));
    k->partial = call->out[1].data;
    memset(k->partial, 0, (size_t)room * sizeof(double));
    pk_parallel(call, chunks, CHUNKS_PER_TASK, squares_task, k);
    double sum = 0.0, *total = call->out[0].data;
    for (int64_t c = 0; c < chunks; c++) sum += k->partial[c];
    *total = pk_adds(call, 0) ? *total + sum : sum;
    return PK_OK;
}

/* g [n], bounds [segments, 2], clips [segments] -> total [1], work [>= chunks of n] */
static pk_status squares_flat(const pk_call *call) {
    const pk_view *in = call->in;
    squares k = {.g = pk_f32(&in[0]), .n = pk_count(&in[0]), .bounds = pk_i64(&in[1]),
                 .clips = pk_i32(&in[2]), .segments = in[1].dim[0]};
    pk_status status = pk_check_segments(call, &in[1], k.n);
    if (status != PK_OK) return status;
    if (pk_count(&in[2]) != k.segments)
        return pk_fail(call, PK_BAD_SHAPE, -1, "clips has %lld elements for %lld segments",
                       (long long)pk_count(&in[2]), (long long)k.segments);
    return add_up(call, &k);
}

/* values [room, ...], rows [1]: how many are real -> total [1], work [>= chunks of values] */
static pk_status squares_rows(const pk_call *call) {
    if (call->in[0].ndim < 1 || pk_count(&call->in[1]) != 1)
        return pk_fail(call, PK_BAD_SHAPE, -1, "rows has %lld elements, expected 1",
                       (long long)pk_count(&call->in[1]));
    const int64_t room = call->in[0].dim[0], rows = pk_i64(&call->in[1])[0];
    if (rows < 0 || rows > room)
        return pk_fail(call, PK_BAD_DATA, -1, "rows says %lld, there is room for %lld",
                       (long long)rows, (long long)room);
    squares k = {.g = pk_f32(&call->in[0]), .n = rows * pk_inner(&call->in[0], 1)};
    return add_up(call, &k);
}

/* totals: [1] each -> norm [1] */
static pk_status forward(const pk_call *call) {
    double sum = 0.0;
    for (int32_t i = 0; i < call->n_in; i++) {
        if (pk_count(&call->in[i]) != 1)
            return pk_fail(call, PK_BAD_SHAPE, -1, "total %d has %lld elements, expected 1", i,
                           (long long)pk_count(&call->in[i]));
        sum += *(const double *)call->in[i].data;
    }
    if (pk_count(&call->out[0]) != 1)
        return pk_fail(call, PK_BAD_SHAPE, -1, "norm has %lld elements, expected 1",
                       (long long)pk_count(&call->out[0]));
    const float norm = (float)sqrt(sum);
    float *out = pk_f32(&call->out[0]);
    *out = pk_adds(call, 0) ? *out + norm : norm;
    return PK_OK;
}

PK_OP(global_norm,
      {"global_norm.forward(totals*: f64) -> (norm: f32)", forward},
      {"global_norm.squares(g: f32, bounds: i64, clips: i32) -> (total: f64, work: f64)", squares_flat},
      {"global_norm.squares_rows(values: f32, rows: i64) -> (total: f64, work: f64)", squares_rows});
