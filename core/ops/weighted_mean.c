/* weighted_mean: sum of all values divided by a weight, the last step of every loss.
 *
 * The weight is that of the whole batch of the step, so the sums of micro-batches and ranks add up to the batch's mean. */
#include "reductions.h"
#include "elementwise.h"

/* A weight of 0 comes from a batch in which nothing counts: its mean is 0. */
static float over(double value, const pk_view *weight) {
    const float w = pk_f32(weight)[0];
    return w == 0.0f ? 0.0f : (float)(value / (double)w);
}

/* values [any], weight [1], y [1] */
static pk_status forward(const pk_call *call) {
    const double sum = pk_sum_flat(call, pk_f32(&call->in[0]), pk_count(&call->in[0]));
    const float mean = over(sum, &call->in[1]);
    float *y = pk_f32(&call->out[0]);
    *y = pk_adds(call, 0) ? *y + mean : mean;
    return PK_OK;
}

typedef struct spread {
    float *out;
    float value;
    int add;
} spread;

static void spread_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const spread k = *(const spread *)context;
    const pk_vec v = pk_set1(k.value);
    for (int64_t i = begin; i < end; i += 16) pk_put(k.out + i, v, pk_min_i64(16, end - i), k.add);
}

/* weight [1], dy [1] -> dvalues [any] */
static pk_status backward_values(const pk_call *call) {
    spread k = {pk_f32(&call->out[0]), over(pk_f32(&call->in[1])[0], &call->in[0]), pk_adds(call, 0)};
    pk_parallel(call, pk_count(&call->out[0]), 16384, spread_task, &k);
    return PK_OK;
}

PK_OP(weighted_mean,
      {"weighted_mean.forward(values: f32, weight: f32) -> (y: f32)", forward},
      {"weighted_mean.backward_values(weight: f32, dy: f32) -> (dvalues: f32)", backward_values});
