/* segment_gradient: clip and regularise, segment by segment, for rules that are composed of ops. */
#include <string.h>

#include "updates.h"

#define CHUNKS_PER_TASK 2

typedef struct gradient {
    float *d;
    const float *p, *g;
    int64_t n;
    const int64_t *bounds;  /* [segments, 2] */
    int64_t segments;
    const float *l2, *l1, *scale;
    const int32_t *clips;
    int64_t scales;
    float limit;
} gradient;

static pk_update segment_update(const gradient *k, int64_t s) {
    const int clipped = k->clips[s] != 0;
    return (pk_update){
        .scale = clipped && k->scales ? k->scale[k->scales > 1 ? s : 0] : 1.0f,
        .limit = clipped ? k->limit : INFINITY,
        .l2 = k->l2[s],
        .l1 = k->l1[s],
    };
}

static void gradient_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const gradient *k = context;
    const int64_t from = begin * PK_UPDATE_CHUNK, to = pk_min_i64(end * PK_UPDATE_CHUNK, k->n);
    /* What lies between segments belongs to nobody: its gradient is 0, so that rules meet no garbage there. */
    memset(k->d + from, 0, (size_t)(to - from) * sizeof(float));
    for (int64_t s = pk_first_segment(k->bounds, k->segments, from); s < k->segments; s++) {
        const int64_t first = pk_max_i64(k->bounds[2 * s], from);
        const int64_t last = pk_min_i64(k->bounds[2 * s] + k->bounds[2 * s + 1], to);
        if (first >= to) return;
        const pk_update u = segment_update(k, s);
        for (int64_t i = first; i < last; i++) k->d[i] = pk_update_gradient(u, k->g[i], k->p[i]);
    }
}

static pk_status check(const pk_call *call, const char *what, const pk_view *view, int64_t n) {
    if (pk_count(view) == n) return PK_OK;
    return pk_fail(call, PK_BAD_SHAPE, -1, "%s has %lld elements, expected %lld", what, (long long)pk_count(view),
                   (long long)n);
}

/* p, g [n], scale [1] or [segments] or none, bounds [segments, 2], l2, l1, clips [segments] -> d [n] */
static pk_status forward(const pk_call *call) {
    const pk_view *in = call->in;
    gradient k = {
        .d = pk_f32(&call->out[0]), .p = pk_f32(&in[0]), .g = pk_f32(&in[1]), .n = pk_count(&in[0]),
        .bounds = pk_i64(&in[3]), .segments = in[3].dim[0], .l2 = pk_f32(&in[4]), .l1 = pk_f32(&in[5]),
        .scale = pk_f32(&in[2]), .clips = pk_i32(&in[6]), .scales = in[2].data ? pk_count(&in[2]) : 0,
        .limit = call->attr[0].f > 0.0 ? (float)call->attr[0].f : INFINITY,
    };
    pk_status status = pk_check_segments(call, &in[3], k.n);
    if (call->accumulate) status = pk_fail(call, PK_BAD_CALL, -1, "a gradient for an update is not added to");
    if (status == PK_OK) status = check(call, "g", &in[1], k.n);
    if (status == PK_OK) status = check(call, "d", &call->out[0], k.n);
    static const char *const names[3] = {"l2", "l1", "clips"};
    for (int i = 0; i < 3 && status == PK_OK; i++) status = check(call, names[i], &in[4 + i], k.segments);
    if (status == PK_OK && k.scales > 1) status = check(call, "scale", &in[2], k.segments);
    if (status != PK_OK) return status;
    pk_parallel(call, pk_ceil_div(k.n, PK_UPDATE_CHUNK), CHUNKS_PER_TASK, gradient_task, &k);
    return PK_OK;
}

PK_OP(segment_gradient,
      {"segment_gradient.forward(p: f32, g: f32, scale?: f32, bounds: i64, l2: f32, l1: f32, "
       "clips: i32; clip_value: float) -> (d: f32)", forward});
