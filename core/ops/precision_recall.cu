/* precision_recall: binary counts at the threshold 0.5.
 *
 * State: right and wrong among the scores >= 0.5 (precision), then found and missed among the
 * labels of 1, found meaning a score > 0.5 (recall).  A score of exactly 0.5 is treated differently
 * by the two, as the original's two metrics do. */
#include "rows.cuh"

namespace {
/* scores [rows], [rows, 1] or [rows, 2] (then the second column), label [rows] of 0 and 1 */
pk_status find(const pk_call *call, const float **scores, int64_t *rows, int64_t *width) {
    const pk_view *s = &call->in[0];
    *rows = pk_count(&call->in[1]), *width = s->ndim == 0 ? 1 : pk_inner(s, 1);
    if (pk_count(s) != *rows * *width || *width < 1 || *width > 2)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld labels, %lld scores in rows of %lld",
                       (long long)*rows, (long long)pk_count(s), (long long)*width);
    *scores = pk_f32(s) + *width - 1;
    return pk_check_index(call, pk_i64(&call->in[1]), *rows, 2, 0, 1, "label %lld is not 0 or 1");
}

struct count_row {
    int64_t *out;
    const float *s;
    const int64_t *label;
    int64_t width;
    PK_DEVICE void operator()(int64_t r) const {
        if (s[r * width] >= 0.5f) pk_atomic_add(out + (label[r] == 1 ? 0 : 1), 1);
        if (label[r] == 1) pk_atomic_add(out + (s[r * width] > 0.5f ? 2 : 3), 1);
    }
};

/* state [4] */
pk_status forward(const pk_call *call) {
    const float *scores;
    int64_t rows, width;
    PK_TRY(find(call, &scores, &rows, &width));
    PK_TRY(pk_take_state(call, 2, 0));
    return pk_each(call, rows,
                   count_row{pk_i64(&call->out[0]), scores, pk_i64(&call->in[1]), width});
}
} /* namespace */

PK_OP(precision_recall,
      {"precision_recall.forward(scores: f32, label: i64, state: i64) -> (state_out: i64)",
       forward});
