/* crf_decoding: the tag sequence of the largest score; a thread is a sequence. */
#include "elementwise.cuh"
#include "rows.cuh"

namespace {
/* emission [T, tags], transition [tags + 2, tags]; path [T]; from [T, tags]; best [T, tags] */
struct viterbi {
    const int64_t *offsets, *label;
    const float *emission, *transition;
    int64_t *path;
    int32_t *from;
    float *best;
    int64_t tags;
    PK_DEVICE void operator()(int64_t s) const {
        const int64_t first = offsets[s], last = offsets[s + 1];
        if (first == last) return;
        for (int64_t t = first; t < last; t++)
            for (int64_t j = 0; j < tags; j++) best[t * tags + j] = reach(t, j, t == first);
        float top = -INFINITY;
        int64_t tag = 0;
        for (int64_t j = 0; j < tags; j++) {
            const float score = best[(last - 1) * tags + j] + transition[tags + j];
            if (score > top) top = score, tag = j;
        }
        for (int64_t t = last; t-- > first;) {
            path[t] = label ? tag == label[t] : tag;
            if (t > first) tag = from[t * tags + tag];
        }
    }
    PK_DEVICE float reach(int64_t t, int64_t j, int first) const {
        const float e = emission[t * tags + j];
        if (first) return e + transition[j];
        float top = -INFINITY;
        int32_t at = 0;
        for (int64_t i = 0; i < tags; i++) {
            const float score = best[(t - 1) * tags + i] + transition[(2 + i) * tags + j];
            if (score > top) top = score, at = (int32_t)i;
        }
        from[t * tags + j] = at;
        return top + e;
    }
};

pk_status crf_decoding_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *w = &call->in[1], *label = &call->in[2];
    if (!x->offsets) return pk_fail(call, PK_BAD_SHAPE, -1, "the tokens come without offsets");
    viterbi v = {x->offsets, pk_i64(label), pk_f32(x), pk_f32(w), pk_i64(&call->out[0]),
                 pk_i32(&call->out[1]), pk_f32(&call->out[2]), pk_inner(x, 1)};
    if (v.tags < 1 || w->ndim != 2 || w->dim[0] != v.tags + 2 || w->dim[1] != v.tags)
        return pk_fail(call, PK_BAD_SHAPE, -1, "the transition is [%lld, %lld] for %lld tags",
                       (long long)w->dim[0], (long long)pk_inner(w, 1), (long long)v.tags);
    if (pk_count(&call->out[0]) != x->dim[0] || pk_count(&call->out[1]) != pk_count(x) ||
        pk_count(&call->out[2]) != pk_count(x) || (label->data && pk_count(label) != x->dim[0]))
        return pk_fail(call, PK_BAD_SHAPE, -1, "the path has %lld elements for %lld tokens",
                       (long long)pk_count(&call->out[0]), (long long)x->dim[0]);
    if (call->accumulate) return pk_fail(call, PK_BAD_CALL, -1, "a path cannot be added to");
    return pk_each(call, x->sequences, v);
}
} /* namespace */

PK_OP(crf_decoding,
      {"crf_decoding.forward(emission: f32, transition: f32, label?: i64)"
       " -> (path: i64, work_from: i32, work_best: f32)",
       crf_decoding_forward});
