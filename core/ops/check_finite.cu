/* check_finite: flags for guards.  ok is 1 when every element of every x is finite, bad is 1 when
 * one is not. */
#include "reductions.cuh"

namespace {
/* Inputs of a launch, one behind the other: a loss and the gradients of a few optimizers. */
const int MOST = 16;
struct not_finite {
    const float *x[MOST];
    int64_t end[MOST]; /* where each input ends among all */
    PK_DEVICE int at(int64_t i) const {
        int k = 0;
        while (i >= end[k]) k++;
        const float value = x[k][i - (k > 0 ? end[k - 1] : 0)];
        return !(fabsf(value) <= 3.40282347e+38f);
    }
};
struct flags {
    int32_t *ok, *bad;
    int add_ok, add_bad;
    PK_DEVICE void put(int found) const {
        *ok = (add_ok ? *ok : 0) + (found == 0);
        *bad = (add_bad ? *bad : 0) + (found != 0);
    }
};

/* x [any] each, ok [1], bad [1] */
pk_status forward(const pk_call *call) {
    if (call->n_in > MOST)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%d inputs, at most %d are checked at once",
                       call->n_in, MOST);
    not_finite all = {};
    int64_t n = 0;
    for (int32_t i = 0; i < call->n_in; i++) {
        all.x[i] = pk_f32(&call->in[i]);
        all.end[i] = n += pk_count(&call->in[i]);
    }
    return pk_flat_sum<int>(
        call, n, all,
        flags{pk_i32(&call->out[0]), pk_i32(&call->out[1]), pk_adds(call, 0), pk_adds(call, 1)});
}
} /* namespace */

PK_OP(check_finite, {"check_finite.forward(x*: f32) -> (ok: i32, bad: i32)", forward});
