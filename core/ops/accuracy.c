/* accuracy: counts the rows whose label is among the k largest scores.  State: correct, total.
 *
 * The label's rank is the number of scores above it; of equal scores the first counts as the larger one, and a NaN counts as larger
 * than the label's score (a label whose own score is NaN is wrong). */
#include "pk_kernel.h"
#include "pk_simd.h"

#define MOST_CHUNKS 4096

typedef struct task_data {
    const float *scores;     /* [rows, classes] */
    const int64_t *label;    /* [rows] */
    int64_t rows, classes, k, ignore, chunk;
    int64_t (*counts)[2];    /* [chunks]: correct, total */
} task_data;

static int is_right(const float *scores, int64_t classes, int64_t label, int64_t k) {
    const float own = scores[label];
    if (own != own) return 0;
    const pk_vec v = pk_set1(own);
    int64_t above = 0;
    PK_FOR16(i, c, classes) {
        /* Whole vectors without any score as large are passed over quickly. */
        const pk_mask least = pk_mask_not(pk_lt(pk_load_or(scores + i, c, -__builtin_inff()), v));
        if (!pk_any(least)) continue;
        for (int64_t j = i; j < i + c; j++) above += j < label ? !(scores[j] < own) : j > label && !(scores[j] <= own);
        if (above >= k) return 0;
    }
    return above < k;
}

static void count_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const task_data *k = context;
    for (int64_t i = begin; i < end; i++) {
        int64_t correct = 0, total = 0;
        for (int64_t r = i * k->chunk; r < pk_min_i64((i + 1) * k->chunk, k->rows); r++) {
            if (k->label[r] == k->ignore) continue;
            total++;
            correct += is_right(k->scores + r * k->classes, k->classes, k->label[r], k->k);
        }
        k->counts[i][0] = correct, k->counts[i][1] = total;
    }
}

/* scores [.., classes], label [..] or [.., 1], state [2]; attributes k, ignore_index */
static pk_status forward(const pk_call *call) {
    const pk_view *scores = &call->in[0], *label = &call->in[1];
    const int64_t classes = scores->ndim == 0 ? 0 : scores->dim[scores->ndim - 1];
    task_data k = {pk_f32(scores), pk_i64(label), pk_count(label), classes, call->attr[0].i, call->attr[1].i, 0, NULL};
    if (pk_count(scores) != k.rows * classes)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld labels, %lld scores of %lld classes", (long long)k.rows,
                       (long long)pk_count(scores), (long long)classes);
    for (int64_t r = 0; r < k.rows; r++)
        if (k.label[r] != k.ignore && (k.label[r] < 0 || k.label[r] >= classes))
            return pk_fail(call, PK_BAD_DATA, r, "label %lld is not one of %lld classes",
                           (long long)k.label[r], (long long)classes);
    int64_t counts[MOST_CHUNKS][2];
    k.counts = counts;
    k.chunk = pk_max_i64(pk_max_i64(1, 8192 / pk_max_i64(1, classes)), pk_ceil_div(k.rows, MOST_CHUNKS));
    const int64_t chunks = pk_ceil_div(k.rows, k.chunk);
    pk_parallel(call, chunks, 1, count_task, &k);
    int64_t *state = pk_i64(&call->in[2]), *out = pk_i64(&call->out[0]), correct = 0, total = 0;
    for (int64_t i = 0; i < chunks; i++) correct += counts[i][0], total += counts[i][1];
    out[0] = state[0] + correct, out[1] = state[1] + total;
    return PK_OK;
}

PK_OP(accuracy,
      {"accuracy.forward(scores: f32, label: i64, state: i64; k: int, ignore_index: int) -> (state_out: i64)", forward});
