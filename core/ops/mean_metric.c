/* mean_metric: an exact mean of per-row values over any number of batches, in any cut and order.
 *
 * State: sum in units of 2^40, of wholes (below one such unit), of fractions in units of 2^-40 (below one whole); values counted;
 * values left out because they are not finite or 2^80 and above.  Integers add up the same in every order; doubles would not. */
#include "pk_kernel.h"

#define UNIT 1099511627776.0   /* 2^40 */
#define MASK (((int64_t)1 << 40) - 1)

/* The largest whole number that is not above x. */
static int64_t whole_below(double x) {
    const int64_t floor = (int64_t)x;
    return (double)floor > x ? floor - 1 : floor;
}

/* values [any], counted (as many as values; 0: leave it out) or none, state [5] */
static pk_status forward(const pk_call *call) {
    const pk_view *values = &call->in[0], *counted = &call->in[1];
    const int64_t n = pk_count(values);
    if (counted->data != NULL && pk_count(counted) != n)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld values, %lld marks", (long long)n,
                       (long long)pk_count(counted));
    const float *v = pk_f32(values);
    const int64_t *state = pk_i64(&call->in[2]);
    const int32_t *marks = pk_i32(counted);
    int64_t high = state[0], whole = state[1], part = state[2], count = state[3], bad = state[4];
    for (int64_t i = 0; i < n; i++) {
        if (marks != NULL && marks[i] == 0) continue;
        const double x = v[i];
        if (!(x > -UNIT * UNIT && x < UNIT * UNIT)) {
            bad++;
            continue;
        }
        if (x > -UNIT && x < UNIT) {
            const int64_t floor = whole_below(x);
            whole += floor;
            /* A fraction of a float has 24 digits: only those of values below 2^-16 are rounded here. */
            part += (int64_t)((x - (double)floor) * UNIT + 0.5);
        } else { /* such a float is whole, and so both differences are exact */
            const int64_t units = whole_below(x / UNIT);
            high += units, whole += (int64_t)(x - (double)units * UNIT);
        }
        whole += part >> 40, part &= MASK;
        high += whole >> 40, whole &= MASK;
        count++;
    }
    int64_t *out = pk_i64(&call->out[0]);
    out[0] = high, out[1] = whole, out[2] = part, out[3] = count, out[4] = bad;
    return PK_OK;
}

PK_OP(mean_metric,
      {"mean_metric.forward(values: f32, counted?: i32, state: i64) -> (state_out: i64)", forward});
