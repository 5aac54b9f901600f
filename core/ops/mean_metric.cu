/* mean_metric: an exact mean of per-row values over any number of batches, in any cut and order.
 *
 * State: sum in units of 2^40, of wholes (below one such unit), of fractions in units of 2^-40
 * (below one whole); values counted; values left out because they are not finite or 2^80 and above.
 * Integers add up the same in every order; doubles would not. */
#include "reductions.cuh"

namespace {
const int THREADS = 256;
const int64_t MASK = ((int64_t)1 << 40) - 1;

/* The largest whole number that is not above x. */
PK_DEVICE int64_t whole_below(double x) {
    const int64_t floor = (int64_t)x;
    return (double)floor > x ? floor - 1 : floor;
}

/* One block: integers add up the same in every order. */
struct add_values {
    const float *values;
    const int32_t *marks;
    const int64_t *state;
    int64_t *out;
    int64_t n;
    PK_DEVICE void operator()() const {
        const double unit = 1099511627776.0; /* 2^40 */
        int64_t high = 0, whole = 0, part = 0, count = 0, bad = 0;
        for (int64_t i = threadIdx.x; i < n; i += THREADS) {
            if (marks && marks[i] == 0) continue;
            const double x = values[i];
            if (!(x > -unit * unit && x < unit * unit)) {
                bad++;
                continue;
            }
            if (x > -unit && x < unit) {
                const int64_t floor = whole_below(x);
                whole += floor;
                /* A fraction of a float has 24 digits: only those of values below 2^-16 are rounded
                 * here. */
                part += (int64_t)((x - (double)floor) * unit + 0.5);
            } else { /* such a float is whole, and so both differences are exact */
                const int64_t units = whole_below(x / unit);
                high += units, whole += (int64_t)(x - (double)units * unit);
            }
            whole += part >> 40, part &= MASK;
            high += whole >> 40, whole &= MASK;
            count++;
        }
        high = pk_block_sum(high), whole = pk_block_sum(whole), part = pk_block_sum(part);
        count = pk_block_sum(count), bad = pk_block_sum(bad);
        if (threadIdx.x != 0) return;
        part += state[2];
        whole += state[1] + (part >> 40);
        const int64_t all[5] = {state[0] + high + (whole >> 40), whole & MASK, part & MASK,
                                state[3] + count, state[4] + bad};
        for (int i = 0; i < 5; i++) out[i] = all[i];
    }
};

/* values [any], counted (as many as values; 0: leave it out) or none, state [5] */
pk_status forward(const pk_call *call) {
    const pk_view *values = &call->in[0], *counted = &call->in[1];
    const int64_t n = pk_count(values);
    if (counted->data != NULL && pk_count(counted) != n)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld values, %lld marks", (long long)n,
                       (long long)pk_count(counted));
    return PK_LAUNCH(call, pk_dim(1), pk_dim(THREADS),
                     add_values{pk_f32(values), pk_i32(counted), pk_i64(&call->in[2]),
                                pk_i64(&call->out[0]), n});
}
} /* namespace */

PK_OP(mean_metric,
      {"mean_metric.forward(values: f32, counted?: i32, state: i64) -> (state_out: i64)", forward});
