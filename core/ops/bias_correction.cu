/* bias_correction: 1 - beta^t for the t-th update. */
#include "pk_cuda.cuh"

namespace {
struct correction {
    float *y;
    const int64_t *count;
    double beta;
    PK_DEVICE void operator()(int64_t) const {
        *y = (float)(1.0 - pow(beta, (double)*count + 1.0));
    }
};

/* count [1] -> y [1] */
pk_status forward(const pk_call *call) {
    if (pk_count(&call->in[0]) != 1 || pk_count(&call->out[0]) != 1)
        return pk_fail(call, PK_BAD_SHAPE, -1, "count has %lld elements, expected 1",
                       (long long)pk_count(&call->in[0]));
    if (call->accumulate)
        return pk_fail(call, PK_BAD_CALL, -1, "a number for an update is not added to");
    return pk_each(call, 1,
                   correction{pk_f32(&call->out[0]), pk_i64(&call->in[0]), call->attr[0].f});
}
} /* namespace */

PK_OP(bias_correction, {"bias_correction.forward(count: i64; beta: float) -> (y: f32)", forward});
