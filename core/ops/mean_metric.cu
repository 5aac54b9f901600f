/* mean_metric: an exact mean of per-row values over any number of batches, in any cut and order.
 *
 * State: sum of whole parts, sum of fractions in units of 2^-40 (below one whole), values counted,
 * values left out because they are not finite or 2^40 and above.  Integers add up the same in every
 * order; doubles would not. */
#include "reductions.cuh"

namespace {
const int THREADS = 256;

/* One block: integers add up the same in every order. */
struct add_values {
    const float *values;
    const int32_t *marks;
    const int64_t *state;
    int64_t *out;
    int64_t n;
    PK_DEVICE void operator()() const {
        const double unit = 1099511627776.0; /* 2^40 */
        int64_t whole = 0, part = 0, count = 0, bad = 0;
        for (int64_t i = threadIdx.x; i < n; i += THREADS) {
            if (marks && marks[i] == 0) continue;
            const float v = values[i];
            if (!(v > -unit && v < unit)) {
                bad++;
                continue;
            }
            int64_t floor = (int64_t)v;
            if ((double)floor > (double)v) floor--;
            whole += floor;
            /* A fraction of a float has 24 digits: only those of values below 2^-16 are rounded
             * here. */
            part += (int64_t)(((double)v - (double)floor) * unit + 0.5);
            whole += part >> 40, part &= ((int64_t)1 << 40) - 1;
            count++;
        }
        whole = pk_block_sum(whole), part = pk_block_sum(part);
        count = pk_block_sum(count), bad = pk_block_sum(bad);
        if (threadIdx.x != 0) return;
        part += state[1];
        const int64_t all[4] = {state[0] + whole + (part >> 40), part & (((int64_t)1 << 40) - 1),
                                state[2] + count, state[3] + bad};
        for (int i = 0; i < 4; i++) out[i] = all[i];
    }
};

/* values [any], counted (as many as values; 0: leave it out) or none, state [4] */
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
