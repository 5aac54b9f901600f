/* check_finite: flags for guards.  ok is 1 when every element is finite, bad is 1 when one is not.
 */
#include "reductions.cuh"

namespace {
struct not_finite {
    const float *x;
    PK_DEVICE int at(int64_t i) const { return !(fabsf(x[i]) <= 3.40282347e+38f); }
};
struct flags {
    int32_t *ok, *bad;
    int add_ok, add_bad;
    PK_DEVICE void put(int found) const {
        *ok = (add_ok ? *ok : 0) + (found == 0);
        *bad = (add_bad ? *bad : 0) + (found != 0);
    }
};

/* x [any], ok [1], bad [1] */
pk_status forward(const pk_call *call) {
    const pk_view *x = &call->in[0];
    return pk_flat_sum<int>(
        call, pk_count(x), not_finite{pk_f32(x)},
        flags{pk_i32(&call->out[0]), pk_i32(&call->out[1]), pk_adds(call, 0), pk_adds(call, 1)});
}
} /* namespace */

PK_OP(check_finite, {"check_finite.forward(x: f32) -> (ok: i32, bad: i32)", forward});
