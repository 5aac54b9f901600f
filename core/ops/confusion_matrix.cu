/* confusion_matrix: counts rows by label and predicted class (the first largest score). */
#include "rows.cuh"

namespace {
struct count_row {
    int64_t *out;
    const float *scores;
    const int64_t *label;
    int64_t classes, ignore;
    /* First largest score; a NaN counts as the largest. */
    PK_DEVICE int64_t predicted(const float *s) const {
        int64_t best = 0;
        for (int64_t c = 1; c < classes && s[best] == s[best]; c++)
            if (!(s[c] <= s[best])) best = c;
        return best;
    }
    PK_DEVICE void operator()(int64_t r) const {
        if (label[r] != ignore)
            pk_atomic_add(out + label[r] * classes + predicted(scores + r * classes), 1);
    }
};

/* scores [.., classes], label [..], state [classes, classes]: row label, column prediction;
 * attributes classes, ignore_index */
pk_status forward(const pk_call *call) {
    const pk_view *scores = &call->in[0], *label = &call->in[1];
    const int64_t classes = call->attr[0].i, ignore = call->attr[1].i, rows = pk_count(label);
    if (scores->ndim < 1 || scores->dim[scores->ndim - 1] != classes ||
        pk_count(scores) != rows * classes)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld labels, %lld scores of %lld classes",
                       (long long)rows, (long long)pk_count(scores), (long long)classes);
    PK_TRY(pk_check_index(call, pk_i64(label), rows, classes, ignore, 1,
                          "label %lld is not one of %lld classes"));
    PK_TRY(pk_take_state(call, 2, 0));
    return pk_each(
        call, rows,
        count_row{pk_i64(&call->out[0]), pk_f32(scores), pk_i64(label), classes, ignore});
}
} /* namespace */

PK_OP(
    confusion_matrix,
    {"confusion_matrix.forward(scores: f32, label: i64, state: i64; classes: int, ignore_index: int) -> "
     "(state_out: i64)",
     forward});
