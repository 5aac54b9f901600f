/* accuracy: counts the rows whose label is among the k largest scores.  State: correct, total.
 *
 * The label's rank is the number of scores above it; of equal scores the first counts as the larger
 * one, and a NaN counts as larger than the label's score (a label whose own score is NaN is wrong).
 */
#include "distributions.cuh"
#include "rows.cuh"

namespace {
/* A warp for each row; what it finds is added to the state, in any order. */
struct count_row {
    const float *scores; /* [rows, classes] */
    const int64_t *label; /* [rows] */
    int64_t *state; /* correct, total */
    int64_t classes, k, ignore;
    PK_DEVICE void at(int64_t row, int64_t first, int lane) const {
        const int64_t mine = label[row];
        if (mine == ignore) return;
        const float *x = scores + first;
        const float own = x[mine];
        int above = 0;
        for (int64_t j = lane; j < classes; j += PK_WARP)
            above += j < mine ? !(x[j] < own) : j > mine && !(x[j] <= own);
        above = pk_warp_sum(above);
        if (lane != 0) return;
        pk_atomic_add(state + 1, 1);
        if (own == own && above < k) pk_atomic_add(state, 1);
    }
};

/* scores [.., classes], label [..] or [.., 1], state [2]; attributes k, ignore_index */
pk_status forward(const pk_call *call) {
    const pk_view *scores = &call->in[0], *label = &call->in[1];
    const int64_t classes = scores->ndim == 0 ? 0 : scores->dim[scores->ndim - 1],
                  rows = pk_count(label);
    if (pk_count(scores) != rows * classes)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld labels, %lld scores of %lld classes",
                       (long long)rows, (long long)pk_count(scores), (long long)classes);
    PK_TRY(pk_check_index(call, pk_i64(label), rows, classes, call->attr[1].i, 1,
                          "label %lld is not one of %lld classes"));
    PK_TRY(pk_take_state(call, 2, 0));
    return pk_each_place(call, pk_places{rows, classes, 1},
                         count_row{pk_f32(scores), pk_i64(label), pk_i64(&call->out[0]), classes,
                                   call->attr[0].i, call->attr[1].i});
}
} /* namespace */

PK_OP(
    accuracy,
    {"accuracy.forward(scores: f32, label: i64, state: i64; k: int, ignore_index: int) -> (state_out: i64)",
     forward});
