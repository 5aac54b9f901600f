/* segment_spread: one number a segment of a flat range, repeated over the segment's elements. */
#include <string.h>

#include "updates.h"

/* values [segments], bounds [segments, 2], like [n], never read -> y [n] */
static pk_status forward(const pk_call *call) {
    const pk_view *in = call->in, *bounds = &in[1];
    const int64_t n = pk_count(&call->out[0]), segments = bounds->dim[0];
    const pk_status status = pk_check_segments(call, bounds, n);
    if (status != PK_OK) return status;
    if (call->accumulate) return pk_fail(call, PK_BAD_CALL, -1, "numbers for an update are not added to");
    if (pk_count(&in[0]) != segments || pk_count(&in[2]) != n)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld values for %lld segments, like has %lld elements, y %lld",
                       (long long)pk_count(&in[0]), (long long)segments, (long long)pk_count(&in[2]), (long long)n);
    const float *values = pk_f32(&in[0]);
    const int64_t *b = pk_i64(bounds);
    float *y = pk_f32(&call->out[0]);
    int64_t at = 0;
    for (int64_t s = 0; s < segments; s++) {
        for (; at < b[2 * s]; at++) y[at] = 0.0f;
        for (const int64_t end = at + b[2 * s + 1]; at < end; at++) y[at] = values[s];
    }
    if (n > at) memset(y + at, 0, (size_t)(n - at) * sizeof(float));
    return PK_OK;
}

PK_OP(segment_spread, {"segment_spread.forward(values: f32, bounds: i64, like: f32) -> (y: f32)", forward});
