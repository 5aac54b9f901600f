/* segment_gradient: clip and regularise, segment by segment, for rules that are composed of ops. */
#include "updates.cuh"

namespace {
struct gradient {
    float *d;
    const float *p, *g;
    const int64_t *bounds; /* [segments, 2] */
    int64_t segments;
    const float *l2, *l1, *scale;
    const int32_t *clips;
    int64_t scales;
    float limit;
    PK_DEVICE void operator()(int64_t i) const {
        const int64_t s = pk_segment_of(bounds, segments, i);
        if (s >= segments || i < bounds[2 * s]) {
            d[i] = 0.0f;
            return;
        }
        pk_update u;
        u.rate = u.trust = 0.0f;
        u.scale = clips[s] && scales ? scale[scales > 1 ? s : 0] : 1.0f;
        u.limit = clips[s] ? limit : INFINITY;
        u.l2 = l2[s];
        u.l1 = l1[s];
        d[i] = pk_update_gradient(u, g[i], p[i]);
    }
};

/* p, g [n], scale [1] or [segments] or none, bounds [segments, 2], l2, l1, clips [segments] -> d [n] */
pk_status forward(const pk_call *call) {
    const pk_view *in = call->in;
    const int64_t n = pk_count(&in[0]), segments = in[3].dim[0];
    const int64_t scales = in[2].data ? pk_count(&in[2]) : 0;
    if (call->accumulate)
        return pk_fail(call, PK_BAD_CALL, -1, "a gradient for an update is not added to");
    PK_TRY(pk_update_size(call, "g", &in[1], n));
    PK_TRY(pk_update_size(call, "d", &call->out[0], n));
    PK_TRY(pk_update_size(call, "l2", &in[4], segments));
    PK_TRY(pk_update_size(call, "l1", &in[5], segments));
    PK_TRY(pk_update_size(call, "clips", &in[6], segments));
    if (scales > 1) PK_TRY(pk_update_size(call, "scale", &in[2], segments));
    const double limit = call->attr[0].f;
    return pk_each(call, n,
                   gradient{pk_f32(&call->out[0]), pk_f32(&in[0]), pk_f32(&in[1]), pk_i64(&in[3]),
                            segments, pk_f32(&in[4]), pk_f32(&in[5]), pk_f32(&in[2]),
                            pk_i32(&in[6]), scales, limit > 0.0 ? (float)limit : INFINITY});
}
} /* namespace */

PK_OP(segment_gradient,
      {"segment_gradient.forward(p: f32, g: f32, scale?: f32, bounds: i64, l2: f32, l1: f32, "
       "clips: i32; clip_value: float) -> (d: f32)",
       forward});
