/* segment_assign: new values inside the segments of a flat range. */
#include "updates.cuh"

namespace {
struct assign {
    float *x;
    const float *values;
    const int64_t *bounds; /* [segments, 2] */
    int64_t segments;
    PK_DEVICE void operator()(int64_t i) const {
        const int64_t s = pk_segment_of(bounds, segments, i);
        if (s < segments && i >= bounds[2 * s]) x[i] = values[i];
    }
};

/* x, values [n], bounds [segments, 2] -> x_out [n], the same memory as x where a plan runs it */
pk_status forward(const pk_call *call) {
    const pk_view *in = call->in;
    const int64_t n = pk_count(&in[0]);
    if (call->accumulate)
        return pk_fail(call, PK_BAD_CALL, -1, "an update cannot be added to its outputs");
    PK_TRY(pk_update_size(call, "values", &in[1], n));
    PK_TRY(pk_update_size(call, "x_out", &call->out[0], n));
    PK_TRY(pk_take_state(call, 0, 0));
    return pk_each(call, n,
                   assign{pk_f32(&call->out[0]), pk_f32(&in[1]), pk_i64(&in[2]), in[2].dim[0]});
}
} /* namespace */

PK_OP(segment_assign,
      {"segment_assign.forward(x: f32, values: f32, bounds: i64) -> (x_out: f32)", forward});
