/* regression_metric: exact sums of errors and labels, from which MAE, MSE, RMSE and R2 are made.
 *
 * State: elements counted, elements left out because one of the two is not finite, then four exact
 * sums of LIMBS limbs, worth limb[i] * 2^(32 i - BELOW): of |error|, error^2, label, label^2.  See
 * core/cpu/exact_sum.h. */
#include "rows.cuh"

namespace {
const int64_t LIMBS = 20, BELOW = 320, SUMS = 4;
const int64_t MASK = 0xffffffff;

/* Adds a finite x with |x| < 2^258. */
PK_DEVICE void add(int64_t *limb, double x) {
    union {
        double value;
        uint64_t bits;
    } word = {x};
    const int64_t exponent = (int64_t)(word.bits >> 52 & 0x7ff), sign = word.bits >> 63 ? -1 : 1;
    uint64_t digits = (word.bits & ((1ull << 52) - 1)) | 1ull << 52;
    int64_t at = exponent - 1075 + BELOW;
    if (exponent == 0 || at <= -53) return;
    if (at < 0) digits >>= -at, at = 0;
    const uint64_t low = (digits & MASK) << (at & 31), high = (digits >> 32) << (at & 31);
    limb += at >> 5;
    const int64_t parts[3] = {(int64_t)(low & MASK), (int64_t)((low >> 32) + (high & MASK)),
                              (int64_t)(high >> 32)};
    for (int i = 0; i < 3; i++)
        if (parts[i] != 0) pk_atomic_add(limb + i, sign * parts[i]);
}

struct add_element {
    int64_t *out;
    const float *prediction, *label;
    PK_DEVICE void operator()(int64_t i) const {
        const double y = label[i], error = (double)prediction[i] - y;
        if (!(error - error == 0.0)) { /* not finite */
            pk_atomic_add(out + 1, 1);
            return;
        }
        pk_atomic_add(out, 1);
        add(out + 2, error < 0.0 ? -error : error);
        add(out + 2 + LIMBS, error * error);
        add(out + 2 + 2 * LIMBS, y);
        add(out + 2 + 3 * LIMBS, y * y);
    }
};

struct carry_sum {
    int64_t *out;
    PK_DEVICE void operator()(int64_t s) const {
        int64_t *limb = out + 2 + s * LIMBS;
        for (int64_t i = 0; i + 1 < LIMBS; i++) {
            limb[i + 1] += limb[i] >> 32;
            limb[i] &= MASK;
        }
    }
};

/* prediction [any], label [as many], state [2 + SUMS * LIMBS] */
pk_status forward(const pk_call *call) {
    const pk_view *prediction = &call->in[0], *label = &call->in[1];
    const int64_t n = pk_count(prediction);
    if (pk_count(label) != n)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld predictions, %lld labels", (long long)n,
                       (long long)pk_count(label));
    if (n >= 1ll << 30) /* limbs are carried once a call */
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld elements are too many for one batch",
                       (long long)n);
    PK_TRY(pk_take_state(call, 2, 0));
    int64_t *out = pk_i64(&call->out[0]);
    PK_TRY(pk_each(call, n, add_element{out, pk_f32(prediction), pk_f32(label)}));
    return pk_each(call, SUMS, carry_sum{out});
}
} /* namespace */

PK_OP(regression_metric,
      {"regression_metric.forward(prediction: f32, label: f32, state: i64) -> (state_out: i64)",
       forward});
