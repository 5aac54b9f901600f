/* weighted_mean: sum of all values divided by a weight, the last step of every loss.
 *
 * The weight is that of the whole batch of the step, so the sums of micro-batches and ranks add up
 * to the batch's mean. */
#include "reductions.cuh"

namespace {
/* A weight of 0 comes from a batch in which nothing counts: its mean is 0. */
PK_DEVICE float over(double value, float weight) {
    return weight == 0.0f ? 0.0f : (float)(value / (double)weight);
}

struct divide {
    float *y;
    const float *weight;
    int add;
    PK_DEVICE void put(double sum) const { pk_put(y, over(sum, *weight), add); }
};

/* values [any], weight [1], y [1] */
pk_status forward(const pk_call *call) {
    const pk_view *values = &call->in[0];
    return pk_flat_sum<double>(
        call, pk_count(values), pk_floats{pk_f32(values)},
        divide{pk_f32(&call->out[0]), pk_f32(&call->in[1]), pk_adds(call, 0)});
}

struct spread {
    float *out;
    const float *weight, *dy;
    int add;
    PK_DEVICE void operator()(int64_t i) const { pk_put(out + i, over(*dy, *weight), add); }
};

/* weight [1], dy [1] -> dvalues [any] */
pk_status backward_values(const pk_call *call) {
    return pk_each(call, pk_count(&call->out[0]),
                   spread{pk_f32(&call->out[0]), pk_f32(&call->in[0]), pk_f32(&call->in[1]),
                          pk_adds(call, 0)});
}
} /* namespace */

PK_OP(weighted_mean, {"weighted_mean.forward(values: f32, weight: f32) -> (y: f32)", forward},
      {"weighted_mean.backward_values(weight: f32, dy: f32) -> (dvalues: f32)", backward_values});
