/* bias_correction: 1 - beta^t for the t-th update. */
#include <math.h>

#include "pk_kernel.h"

/* count [1] -> y [1] */
static pk_status forward(const pk_call *call) {
    if (pk_count(&call->in[0]) != 1 || pk_count(&call->out[0]) != 1)
        return pk_fail(call, PK_BAD_SHAPE, -1, "count has %lld elements, expected 1",
                       (long long)pk_count(&call->in[0]));
    if (call->accumulate) return pk_fail(call, PK_BAD_CALL, -1, "a number for an update is not added to");
    *pk_f32(&call->out[0]) = (float)(1.0 - pow(call->attr[0].f, (double)*pk_i64(&call->in[0]) + 1.0));
    return PK_OK;
}

PK_OP(bias_correction, {"bias_correction.forward(count: i64; beta: float) -> (y: f32)", forward});
