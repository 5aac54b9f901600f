/* moving_average: an average over the updates of a training. */
#include "pk_cuda.cuh"

namespace {
struct move {
    float *out; /* [n], may be `average` itself */
    const float *average, *value;
    const int64_t *count; /* [1], device */
    double decay;
    int warmup;
    PK_DEVICE void operator()(int64_t i) const {
        const double t = (double)*count, early = (1.0 + t) / (10.0 + t);
        const float part = (float)(1.0 - (warmup && early < decay ? early : decay));
        out[i] = average[i] + part * (value[i] - average[i]);
    }
};

/* average, value, average_out [n]; count [1].  Attributes: decay, warmup. */
pk_status forward(const pk_call *call) {
    const pk_view *average = &call->in[0], *value = &call->in[1], *count = &call->in[2];
    const int64_t n = pk_count(average);
    if (pk_count(value) != n || pk_count(&call->out[0]) != n || pk_count(count) != 1)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "average has %lld elements, the value %lld, count %lld", (long long)n,
                       (long long)pk_count(value), (long long)pk_count(count));
    return pk_each(call, n,
                   move{pk_f32(&call->out[0]), pk_f32(average), pk_f32(value), pk_i64(count),
                        call->attr[0].f, call->attr[1].i != 0});
}
} /* namespace */

PK_OP(moving_average, {"moving_average.forward(average: f32, value: f32, count: i64; decay: float, "
                       "warmup: bool) -> (average_out: f32)",
                       forward});
