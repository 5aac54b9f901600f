/* mean_metric: an exact mean of per-row values over any number of batches, in any cut and order.
 *
 * State: sum of whole parts, sum of fractions in units of 2^-40 (below one whole), values counted, values left out because
 * they are not finite or 2^40 and above.  Integers add up the same in every order; doubles would not. */
#include "pk_kernel.h"

#define UNIT 1099511627776.0   /* 2^40 */

/* values [any], counted (as many as values; 0: leave it out) or none, state [4] */
static pk_status forward(const pk_call *call) {
    const pk_view *values = &call->in[0], *counted = &call->in[1];
    const int64_t n = pk_count(values);
    if (counted->data != NULL && pk_count(counted) != n)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld values, %lld marks", (long long)n,
                       (long long)pk_count(counted));
    const float *v = pk_f32(values);
    const int64_t *state = pk_i64(&call->in[2]);
    const int32_t *marks = pk_i32(counted);
    int64_t whole = state[0], part = state[1], count = state[2], bad = state[3];
    for (int64_t i = 0; i < n; i++) {
        if (marks != NULL && marks[i] == 0) continue;
        if (!(v[i] > -UNIT && v[i] < UNIT)) {
            bad++;
            continue;
        }
        int64_t floor = (int64_t)v[i];
        if ((double)floor > (double)v[i]) floor--;
        whole += floor;
        /* A fraction of a float has 24 digits: only those of values below 2^-16 are rounded here. */
        part += (int64_t)(((double)v[i] - (double)floor) * UNIT + 0.5);
        whole += part >> 40, part &= ((int64_t)1 << 40) - 1;
        count++;
    }
    int64_t *out = pk_i64(&call->out[0]);
    out[0] = whole, out[1] = part, out[2] = count, out[3] = bad;
    return PK_OK;
}

PK_OP(mean_metric,
      {"mean_metric.forward(values: f32, counted?: i32, state: i64) -> (state_out: i64)", forward});
