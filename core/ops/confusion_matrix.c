/* confusion_matrix: counts rows by label and predicted class (the first largest score). */
#include "pk_kernel.h"

/* First largest score; a NaN counts as the largest. */
static int64_t predicted(const float *s, int64_t classes) {
    int64_t best = 0;
    for (int64_t c = 1; c < classes && s[best] == s[best]; c++)
        if (!(s[c] <= s[best])) best = c;
    return best;
}

/* scores [.., classes], label [..], state [classes, classes]: row label, column prediction; attributes classes, ignore_index */
static pk_status forward(const pk_call *call) {
    const pk_view *scores = &call->in[0], *label = &call->in[1];
    const int64_t classes = call->attr[0].i, ignore = call->attr[1].i, rows = pk_count(label);
    if (scores->ndim < 1 || scores->dim[scores->ndim - 1] != classes || pk_count(scores) != rows * classes)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld labels, %lld scores of %lld classes",
                       (long long)rows, (long long)pk_count(scores), (long long)classes);
    const int64_t *labels = pk_i64(label), *state = pk_i64(&call->in[2]);
    for (int64_t r = 0; r < rows; r++)
        if (labels[r] != ignore && (labels[r] < 0 || labels[r] >= classes))
            return pk_fail(call, PK_BAD_DATA, r, "label %lld is not one of %lld classes",
                           (long long)labels[r], (long long)classes);
    int64_t *out = pk_i64(&call->out[0]);
    for (int64_t i = 0; i < classes * classes; i++) out[i] = state[i];
    for (int64_t r = 0; r < rows; r++)
        if (labels[r] != ignore) out[labels[r] * classes + predicted(pk_f32(scores) + r * classes, classes)]++;
    return PK_OK;
}

PK_OP(confusion_matrix,
      {"confusion_matrix.forward(scores: f32, label: i64, state: i64; classes: int, ignore_index: int) -> "
       "(state_out: i64)", forward});
