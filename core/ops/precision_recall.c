/* precision_recall: binary counts at the threshold 0.5.
 *
 * State: right and wrong among the scores >= 0.5 (precision), then found and missed among the labels of 1, found meaning a
 * score > 0.5 (recall).  A score of exactly 0.5 is treated differently by the two, as the original's two metrics do. */
#include "pk_kernel.h"

/* scores [rows], [rows, 1] or [rows, 2] (then the second column), label [rows] of 0 and 1, state [4] */
static pk_status forward(const pk_call *call) {
    const pk_view *scores = &call->in[0], *label = &call->in[1];
    const int64_t rows = pk_count(label), width = scores->ndim == 0 ? 1 : pk_inner(scores, 1);
    if (pk_count(scores) != rows * width || width < 1 || width > 2)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld labels, %lld scores in rows of %lld",
                       (long long)rows, (long long)pk_count(scores), (long long)width);
    const float *s = pk_f32(scores) + width - 1;
    const int64_t *labels = pk_i64(label), *state = pk_i64(&call->in[2]);
    int64_t counts[4] = {state[0], state[1], state[2], state[3]};
    for (int64_t r = 0; r < rows; r++) {
        if (labels[r] != 0 && labels[r] != 1)
            return pk_fail(call, PK_BAD_DATA, r, "label %lld is not 0 or 1", (long long)labels[r]);
        if (s[r * width] >= 0.5f) counts[labels[r] == 1 ? 0 : 1]++;
        if (labels[r] == 1) counts[s[r * width] > 0.5f ? 2 : 3]++;
    }
    for (int i = 0; i < 4; i++) pk_i64(&call->out[0])[i] = counts[i];
    return PK_OK;
}

PK_OP(precision_recall,
      {"precision_recall.forward(scores: f32, label: i64, state: i64) -> (state_out: i64)", forward});
