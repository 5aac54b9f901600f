/* auc: histograms of the scores of rows with label 1 and label 0; the area under the curve is made
 * from them. */
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

const int64_t BUCKETS =
    4095; /* bucket of a score: floor(score * BUCKETS), so there are BUCKETS + 1 */

struct check_score {
    pk_gate gate;
    const float *s;
    int64_t width;
    PK_DEVICE void operator()(int64_t r) const {
        if (!(s[r * width] >= 0.0f && s[r * width] <= 1.0f))
            pk_fault_at(gate, "a score is not between 0 and 1", r, 0, 0);
    }
};
struct count_row {
    int64_t *out;
    const float *s;
    const int64_t *label;
    int64_t width;
    PK_DEVICE void operator()(int64_t r) const {
        pk_atomic_add(
            out + (label[r] == 1 ? 0 : BUCKETS + 1) + (int64_t)((double)s[r * width] * BUCKETS), 1);
    }
};

/* state [2, BUCKETS + 1]: ones first.  All is checked before anything is counted: the state is
 * changed in place. */
pk_status forward(const pk_call *call) {
    const float *scores;
    int64_t rows, width;
    PK_TRY(find(call, &scores, &rows, &width));
    const pk_gate gate = pk_gate_of(call);
    PK_TRY(pk_each_behind(call, gate, rows, check_score{gate, scores, width}));
    PK_TRY(pk_take_state(call, 2, 0));
    return pk_each(call, rows,
                   count_row{pk_i64(&call->out[0]), scores, pk_i64(&call->in[1]), width});
}
} /* namespace */

PK_OP(auc, {"auc.forward(scores: f32, label: i64, state: i64) -> (state_out: i64)", forward});
