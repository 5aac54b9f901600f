/* segment_spread: one number a segment of a flat range, repeated over the segment's elements. */
#include "updates.cuh"

namespace {
struct spread {
    float *y;
    const float *values;
    const int64_t *bounds; /* [segments, 2] */
    int64_t segments;
    PK_DEVICE void operator()(int64_t i) const {
        const int64_t s = pk_segment_of(bounds, segments, i);
        y[i] = s < segments && i >= bounds[2 * s] ? values[s] : 0.0f;
    }
};

/* values [segments], bounds [segments, 2], like [n], never read -> y [n] */
pk_status forward(const pk_call *call) {
    const pk_view *in = call->in;
    const int64_t n = pk_count(&call->out[0]), segments = in[1].dim[0];
    if (call->accumulate)
        return pk_fail(call, PK_BAD_CALL, -1, "numbers for an update are not added to");
    PK_TRY(pk_update_size(call, "values", &in[0], segments));
    PK_TRY(pk_update_size(call, "like", &in[2], n));
    return pk_each(call, n, spread{pk_f32(&call->out[0]), pk_f32(&in[0]), pk_i64(&in[1]), segments});
}
} /* namespace */

PK_OP(segment_spread,
      {"segment_spread.forward(values: f32, bounds: i64, like: f32) -> (y: f32)", forward});
