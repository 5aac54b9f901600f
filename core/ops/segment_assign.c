/* segment_assign: new values inside the segments of a flat range. */
#include <string.h>

#include "updates.h"

#define GRAIN 8192

typedef struct piece {
    float *x;
    const float *values;
} piece;

static void copy_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const piece *k = context;
    memcpy(k->x + begin, k->values + begin, (size_t)(end - begin) * sizeof(float));
}

/* x, values [n], bounds [segments, 2] -> x_out [n], the same memory as x where a plan runs it */
static pk_status forward(const pk_call *call) {
    const pk_view *in = call->in, *x = &call->out[0];
    const int64_t n = pk_count(&in[0]), *b = pk_i64(&in[2]);
    const pk_status status = pk_check_segments(call, &in[2], n);
    if (status != PK_OK) return status;
    if (call->accumulate) return pk_fail(call, PK_BAD_CALL, -1, "an update cannot be added to its outputs");
    if (pk_count(&in[1]) != n || pk_count(x) != n)
        return pk_fail(call, PK_BAD_SHAPE, -1, "x has %lld elements, values %lld, x_out %lld", (long long)n,
                       (long long)pk_count(&in[1]), (long long)pk_count(x));
    if (x->data != in[0].data && n > 0) memcpy(x->data, in[0].data, (size_t)n * sizeof(float));
    for (int64_t s = 0; s < in[2].dim[0]; s++) {
        piece k = {pk_f32(x) + b[2 * s], pk_f32(&in[1]) + b[2 * s]};
        pk_parallel(call, b[2 * s + 1], GRAIN, copy_task, &k);
    }
    return PK_OK;
}

PK_OP(segment_assign, {"segment_assign.forward(x: f32, values: f32, bounds: i64) -> (x_out: f32)", forward});
