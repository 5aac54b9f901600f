/* regression_metric: exact sums of errors and labels, from which MAE, MSE, RMSE and R2 are made.
 *
 * State: elements counted, elements left out because one of the two is not finite, then four exact
 * sums (exact_sum.h): of |error|, error^2, label, label^2.  An error is the float64 difference, its
 * square the float64 product: an element's own data decide what it adds. */
#include <math.h>

#include "exact_sum.h"
#include "pk_kernel.h"

#define SUMS 4
#define STATE (2 + SUMS * PK_SUM_LIMBS)
#define MOST_CHUNKS 64

typedef struct sums {
    const float *prediction, *label; /* [n] */
    int64_t n, chunk;
    int64_t (*state)[STATE]; /* [chunks] */
} sums;

static void add_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const sums *k = context;
    for (int64_t c = begin; c < end; c++) {
        int64_t *state = k->state[c], *sum = state + 2;
        memset(state, 0, sizeof k->state[c]);
        for (int64_t i = c * k->chunk, left = 0; i < pk_min_i64((c + 1) * k->chunk, k->n); i++) {
            const double y = k->label[i], error = (double)k->prediction[i] - y;
            if (!isfinite(error)) {
                state[1]++;
                continue;
            }
            state[0]++;
            pk_sum_add(sum, fabs(error));
            pk_sum_add(sum + PK_SUM_LIMBS, error * error);
            pk_sum_add(sum + 2 * PK_SUM_LIMBS, y);
            pk_sum_add(sum + 3 * PK_SUM_LIMBS, y * y);
            if (++left % PK_SUM_ADDS == 0)
                for (int s = 0; s < SUMS; s++) pk_sum_carry(sum + s * PK_SUM_LIMBS);
        }
        for (int s = 0; s < SUMS; s++) pk_sum_carry(sum + s * PK_SUM_LIMBS);
    }
}

/* prediction [any], label [as many], state [STATE] */
static pk_status forward(const pk_call *call) {
    const pk_view *prediction = &call->in[0], *label = &call->in[1];
    sums k = {pk_f32(prediction), pk_f32(label), pk_count(prediction), 0, NULL};
    if (pk_count(label) != k.n)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld predictions, %lld labels", (long long)k.n,
                       (long long)pk_count(label));
    int64_t state[MOST_CHUNKS][STATE];
    k.state = state;
    k.chunk = pk_max_i64(1024, pk_ceil_div(k.n, MOST_CHUNKS));
    const int64_t chunks = pk_ceil_div(k.n, k.chunk);
    pk_parallel(call, chunks, 1, add_task, &k);
    const int64_t *from = pk_i64(&call->in[2]);
    int64_t *out = pk_i64(&call->out[0]);
    for (int i = 0; i < STATE; i++) {
        int64_t all = from[i];
        for (int64_t c = 0; c < chunks; c++) all += state[c][i];
        out[i] = all;
    }
    for (int s = 0; s < SUMS; s++) pk_sum_carry(out + 2 + s * PK_SUM_LIMBS);
    return PK_OK;
}

PK_OP(regression_metric,
      {"regression_metric.forward(prediction: f32, label: f32, state: i64) -> (state_out: i64)",
       forward});
