/* crf_decoding: the tag sequence of the largest score, by Viterbi. Of equal scores the smaller tag
 * wins. */
#include <math.h>

#include "elementwise.h"

/* emission [T, tags], transition [tags + 2, tags]; path [T]; from [T, tags]: the best tag before */
typedef struct viterbi {
    const int64_t *offsets, *label;
    const float *emission, *transition;
    int64_t *path;
    int32_t *from;
    int64_t tags;
} viterbi;

/* best[j] = e[j] + the largest before[i] + w[i, j] */
static void step(const viterbi *v, int64_t token, const float *before, float *best) {
    const int64_t tags = v->tags;
    const float *e = v->emission + token * tags;
    for (int64_t j = 0; j < tags; j++) {
        float top = -INFINITY;
        int32_t at = 0;
        for (int64_t i = 0; i < tags; i++) {
            const float score = before[i] + v->transition[(2 + i) * tags + j];
            if (score > top) top = score, at = (int32_t)i;
        }
        best[j] = top + e[j];
        v->from[token * tags + j] = at;
    }
}

static void decode_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const viterbi *v = context;
    (void)thread;
    const int64_t tags = v->tags;
    float *rows[2] = {scratch, (float *)scratch + tags};
    for (int64_t s = begin; s < end; s++) {
        const int64_t first = v->offsets[s], last = v->offsets[s + 1];
        if (first == last) continue;
        for (int64_t t = first; t < last; t++) {
            float *best = rows[t & 1];
            if (t > first) step(v, t, rows[(t - 1) & 1], best);
            else
                for (int64_t j = 0; j < tags; j++)
                    best[j] = v->emission[t * tags + j] + v->transition[j];
        }
        const float *best = rows[(last - 1) & 1];
        float top = -INFINITY;
        int64_t tag = 0;
        for (int64_t j = 0; j < tags; j++)
            if (best[j] + v->transition[tags + j] > top)
                top = best[j] + v->transition[tags + j], tag = j;
        for (int64_t t = last; t-- > first;) {
            v->path[t] = tag;
            if (t > first) tag = v->from[t * tags + tag];
        }
        for (int64_t t = first; t < last && v->label; t++) v->path[t] = v->path[t] == v->label[t];
    }
}

static pk_status crf_decoding_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *w = &call->in[1], *label = &call->in[2];
    if (!x->offsets) return pk_fail(call, PK_BAD_SHAPE, -1, "the tokens come without offsets");
    viterbi v = {x->offsets, pk_i64(label), pk_f32(x), pk_f32(w), pk_i64(&call->out[0]),
                 pk_i32(&call->out[1]), pk_inner(x, 1)};
    if (v.tags < 1 || w->ndim != 2 || w->dim[0] != v.tags + 2 || w->dim[1] != v.tags ||
        2 * v.tags * (int64_t)sizeof(float) > (int64_t)PK_SCRATCH_BYTES)
        return pk_fail(call, PK_BAD_SHAPE, -1, "the transition is [%lld, %lld] for %lld tags",
                       (long long)w->dim[0], (long long)pk_inner(w, 1), (long long)v.tags);
    if (pk_count(&call->out[0]) != x->dim[0] || pk_count(&call->out[1]) != pk_count(x) ||
        (label->data && pk_count(label) != x->dim[0]))
        return pk_fail(call, PK_BAD_SHAPE, -1, "the path has %lld elements for %lld tokens",
                       (long long)pk_count(&call->out[0]), (long long)x->dim[0]);
    if (call->accumulate) return pk_fail(call, PK_BAD_CALL, -1, "a path cannot be added to");
    pk_parallel(call, x->sequences, 1, decode_task, &v);
    return PK_OK;
}

PK_OP(crf_decoding,
      {"crf_decoding.forward(emission: f32, transition: f32, label?: i64)"
       " -> (path: i64, work_from: i32, work_best: f32)",
       crf_decoding_forward});
