/* auc: histograms of the scores of rows with label 1 and label 0; the area under the curve is made from them. */
#include "pk_kernel.h"

#define BUCKETS 4095   /* bucket of a score: floor(score * BUCKETS), so there are BUCKETS + 1 */

/* scores [rows], [rows, 1] or [rows, 2] (then the second column), label [rows] of 0 and 1, state [2, BUCKETS + 1]: ones first */
static pk_status forward(const pk_call *call) {
    const pk_view *scores = &call->in[0], *label = &call->in[1];
    const int64_t rows = pk_count(label), width = scores->ndim == 0 ? 1 : pk_inner(scores, 1);
    if (pk_count(scores) != rows * width || width < 1 || width > 2)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld labels, %lld scores in rows of %lld", (long long)rows,
                       (long long)pk_count(scores), (long long)width);
    const float *s = pk_f32(scores) + width - 1;
    const int64_t *labels = pk_i64(label);
    /* Checked before anything is counted: the state is changed in place. */
    for (int64_t r = 0; r < rows; r++) {
        if (labels[r] != 0 && labels[r] != 1)
            return pk_fail(call, PK_BAD_DATA, r, "label %lld is not 0 or 1", (long long)labels[r]);
        if (!(s[r * width] >= 0.0f && s[r * width] <= 1.0f))
            return pk_fail(call, PK_BAD_DATA, r, "score %g is not between 0 and 1", (double)s[r * width]);
    }
    const int64_t *state = pk_i64(&call->in[2]);
    int64_t *out = pk_i64(&call->out[0]);
    for (int64_t i = 0; i < 2 * (BUCKETS + 1); i++) out[i] = state[i];
    for (int64_t r = 0; r < rows; r++)
        out[(labels[r] == 1 ? 0 : BUCKETS + 1) + (int64_t)((double)s[r * width] * BUCKETS)]++;
    return PK_OK;
}

PK_OP(auc, {"auc.forward(scores: f32, label: i64, state: i64) -> (state_out: i64)", forward});
