/* segment_norms: the norm of each parameter's gradient in a flat range, 0 where it is not to be clipped. */
#include <string.h>

#include "updates.h"

#define CHUNKS_PER_TASK 4

typedef struct norms {
    double *partial;        /* chunk c and segment s meet at most once; c + s numbers the meetings */
    const float *g;
    int64_t n;
    const int64_t *bounds;  /* [segments, 2] */
    const int32_t *clips;
    int64_t segments;
} norms;

static void norms_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const norms *k = context;
    for (int64_t chunk = begin; chunk < end; chunk++) {
        int64_t from = chunk * PK_UPDATE_CHUNK, to = pk_min_i64(from + PK_UPDATE_CHUNK, k->n);
        for (int64_t s = pk_first_segment(k->bounds, k->segments, from); s < k->segments; s++) {
            int64_t first = pk_max_i64(k->bounds[2 * s], from);
            int64_t last = pk_min_i64(k->bounds[2 * s] + k->bounds[2 * s + 1], to);
            if (first >= to) break;
            if (first < last) k->partial[chunk + s] = pk_square_sum(k->g + first, last - first);
        }
    }
}

/* The partial sums of segment s, in the order of its chunks. */
static double segment_sum(const norms *k, int64_t s) {
    const int64_t offset = k->bounds[2 * s], length = k->bounds[2 * s + 1];
    if (length == 0) return 0.0;
    double sum = 0.0;
    for (int64_t c = offset / PK_UPDATE_CHUNK; c <= (offset + length - 1) / PK_UPDATE_CHUNK; c++)
        sum += k->partial[c + s];
    return sum;
}

/* g [n], bounds [segments, 2], clips [segments] -> norm [segments], work [>= chunks of n + segments] */
static pk_status forward(const pk_call *call) {
    const pk_view *in = call->in;
    norms k = {.partial = call->out[1].data, .g = pk_f32(&in[0]), .n = pk_count(&in[0]),
               .bounds = pk_i64(&in[1]), .clips = pk_i32(&in[2]), .segments = in[1].dim[0]};
    const int64_t chunks = pk_ceil_div(k.n, PK_UPDATE_CHUNK);
    pk_status status = pk_check_segments(call, &in[1], k.n);
    if (status != PK_OK) return status;
    if (pk_count(&in[2]) != k.segments || pk_count(&call->out[0]) != k.segments)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld segments, clips has %lld elements, norm %lld",
                       (long long)k.segments, (long long)pk_count(&in[2]), (long long)pk_count(&call->out[0]));
    if (pk_count(&call->out[1]) < chunks + k.segments)
        return pk_fail(call, PK_BAD_SHAPE, -1, "work has %lld elements, expected %lld",
                       (long long)pk_count(&call->out[1]), (long long)(chunks + k.segments));
    memset(k.partial, 0, (size_t)pk_count(&call->out[1]) * sizeof(double));
    pk_parallel(call, chunks, CHUNKS_PER_TASK, norms_task, &k);
    float *norm = pk_f32(&call->out[0]);
    for (int64_t s = 0; s < k.segments; s++) {
        const float value = k.clips[s] ? (float)sqrt(segment_sum(&k, s)) : 0.0f;
        norm[s] = pk_adds(call, 0) ? norm[s] + value : value;
    }
    return PK_OK;
}

PK_OP(segment_norms,
      {"segment_norms.forward(g: f32, bounds: i64, clips: i32) -> (norm: f32, work: f64)", forward});
