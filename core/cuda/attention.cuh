/* attention.cuh: attention as core/ops/attention_rows.h has it, a warp for each row and head, and
 * backwards for each sequence and head. */
#ifndef PK_ATTENTION_CUH
#define PK_ATTENTION_CUH
#include "reductions.cuh"
#include "sort.cuh"

enum pk_score { PK_SCORE_LINEAR, PK_SCORE_TANH, PK_SCORE_DOT };

/* query, dquery [rows, width]; keys, dkeys [T, width]; values, dvalues [T, depth]; v [width];
 * context, dcontext [rows, depth]; dv [sequences, width] */
struct pk_attention {
    const float *query, *keys, *values, *v, *context, *dcontext;
    const int64_t *sequence, *own, *offsets;
    int64_t rows, sequences, width, depth, heads;
    float scale;
    int kind, causal;
    float *out, *dkeys, *dvalues, *dv;
    int add[2];

    PK_DEVICE int64_t sequence_of(int64_t row) const {
        if (sequence) return sequence[row];
        return own ? pk_sequence_of(own, sequences, row) : row / (rows / sequences);
    }
    PK_DEVICE int64_t last_of(int64_t row, int64_t s) const {
        const int64_t last = offsets[s + 1];
        return causal && row + 1 < last ? row + 1 : last;
    }
    PK_DEVICE float score(int64_t row, int64_t token, int64_t head, int lane) const {
        const int64_t w = width / heads;
        const float *q = query + row * width + head * w, *k = keys + token * width + head * w;
        float sum = 0.0f;
        for (int64_t j = lane; j < w; j += PK_WARP) {
            if (kind == PK_SCORE_DOT) sum = fmaf(q[j], k[j], sum);
            else sum = fmaf(v[j], kind == PK_SCORE_TANH ? tanhf(q[j] + k[j]) : k[j], sum);
        }
        sum = pk_warp_sum(sum);
        return kind == PK_SCORE_DOT ? scale * sum : sum;
    }
    PK_DEVICE float dot(const float *x, const float *y, int64_t n, int lane) const {
        float sum = 0.0f;
        for (int64_t j = lane; j < n; j += PK_WARP) sum = fmaf(x[j], y[j], sum);
        return pk_warp_sum(sum);
    }
};

/* The weights of one row and head: made by all lanes of its warp, the same in each. */
struct pk_weights {
    int64_t first, last;
    float largest, sum, mean;
    PK_DEVICE float of(const pk_attention &a, int64_t row, int64_t token, int64_t head,
                       int lane) const {
        return expf(a.score(row, token, head, lane) - largest) / sum;
    }
    /* weight * (dcontext . value - dcontext . context) */
    PK_DEVICE float dscore(const pk_attention &a, float weight, int64_t row, int64_t token,
                           int64_t head, int lane) const {
        const int64_t d = a.depth / a.heads;
        const float *dy = a.dcontext + row * a.depth + head * d;
        return weight * (a.dot(dy, a.values + token * a.depth + head * d, d, lane) - mean);
    }
};
PK_DEVICE pk_weights pk_weights_of(const pk_attention &a, int64_t row, int64_t s, int64_t head,
                                   int lane) {
    pk_weights w = {a.offsets[s], a.last_of(row, s), -INFINITY, 0.0f, 0.0f};
    for (int64_t t = w.first; t < w.last; t++) {
        const float score = a.score(row, t, head, lane), most = fmaxf(w.largest, score);
        w.sum = (w.sum == 0.0f ? 0.0f : w.sum * expf(w.largest - most)) + expf(score - most);
        w.largest = most;
    }
    const int64_t d = a.depth / a.heads, at = row * a.depth + head * d;
    if (a.dcontext) w.mean = a.dot(a.dcontext + at, a.context + at, d, lane);
    return w;
}

struct pk_attention_forward {
    pk_attention a;
    PK_DEVICE void operator()() const {
        const int64_t row = blockIdx.x / a.heads, head = blockIdx.x % a.heads;
        const int lane = (int)threadIdx.x;
        const int64_t d = a.depth / a.heads;
        const pk_weights w = pk_weights_of(a, row, a.sequence_of(row), head, lane);
        float *y = a.out + row * a.depth + head * d;
        for (int64_t j = lane; j < d && !a.add[0]; j += PK_WARP) y[j] = 0.0f;
        for (int64_t t = w.first; t < w.last; t++) {
            const float weight = w.of(a, row, t, head, lane);
            const float *value = a.values + t * a.depth + head * d;
            for (int64_t j = lane; j < d; j += PK_WARP) y[j] = fmaf(weight, value[j], y[j]);
        }
    }
};
struct pk_attention_query {
    pk_attention a;
    PK_DEVICE void operator()() const {
        const int64_t row = blockIdx.x / a.heads, head = blockIdx.x % a.heads;
        const int lane = (int)threadIdx.x;
        const int64_t width = a.width / a.heads;
        float *dq = a.out + row * a.width + head * width;
        for (int64_t j = lane; j < width && !a.add[0]; j += PK_WARP) dq[j] = 0.0f;
        if (a.kind == PK_SCORE_LINEAR) return;
        const pk_weights w = pk_weights_of(a, row, a.sequence_of(row), head, lane);
        for (int64_t t = w.first; t < w.last; t++) {
            const float ds = w.dscore(a, w.of(a, row, t, head, lane), row, t, head, lane);
            const float *k = a.keys + t * a.width + head * width;
            for (int64_t j = lane; j < width; j += PK_WARP) {
                if (a.kind == PK_SCORE_DOT) {
                    dq[j] = fmaf(ds * a.scale, k[j], dq[j]);
                } else {
                    const float y = tanhf(a.query[row * a.width + j] + k[j]);
                    dq[j] = fmaf(ds * a.v[j], 1.0f - y * y, dq[j]);
                }
            }
        }
    }
};
/* A lane owns columns: nobody else adds to them. */
struct pk_attention_source_kernel {
    pk_attention a;
    PK_DEVICE void operator()() const {
        const int64_t s = blockIdx.x / a.heads, head = blockIdx.x % a.heads;
        const int lane = (int)threadIdx.x;
        const int64_t width = a.width / a.heads, d = a.depth / a.heads;
        for (int64_t t = a.offsets[s]; t < a.offsets[s + 1]; t++) {
            for (int64_t j = lane; j < width && !a.add[0]; j += PK_WARP)
                a.dkeys[t * a.width + head * width + j] = 0.0f;
            for (int64_t j = lane; j < d && !a.add[1]; j += PK_WARP)
                a.dvalues[t * a.depth + head * d + j] = 0.0f;
        }
        if (a.dv)
            for (int64_t j = lane; j < width; j += PK_WARP) a.dv[s * a.width + j] = 0.0f;
        for (int64_t row = 0; row < a.rows; row++) {
            if (a.sequence_of(row) != s) continue;
            const pk_weights w = pk_weights_of(a, row, s, head, lane);
            for (int64_t t = w.first; t < w.last; t++) add(w, s, row, t, head, lane);
        }
    }
    PK_DEVICE void add(const pk_weights &w, int64_t s, int64_t row, int64_t t, int64_t head,
                       int lane) const {
        const int64_t width = a.width / a.heads, d = a.depth / a.heads;
        const float weight = w.of(a, row, t, head, lane);
        const float ds = w.dscore(a, weight, row, t, head, lane);
        const float *dy = a.dcontext + row * a.depth + head * d;
        float *dvalue = a.dvalues + t * a.depth + head * d;
        for (int64_t j = lane; j < d; j += PK_WARP) dvalue[j] = fmaf(weight, dy[j], dvalue[j]);
        const float *q = a.query + row * a.width + head * width;
        const float *k = a.keys + t * a.width + head * width;
        float *dk = a.dkeys + t * a.width + head * width;
        for (int64_t j = lane; j < width; j += PK_WARP) {
            if (a.kind == PK_SCORE_DOT) {
                dk[j] = fmaf(ds * a.scale, q[j], dk[j]);
                continue;
            }
            const float y = a.kind == PK_SCORE_TANH ? tanhf(q[j] + k[j]) : k[j];
            dk[j] = fmaf(ds * a.v[j], a.kind == PK_SCORE_TANH ? 1.0f - y * y : 1.0f, dk[j]);
            a.dv[s * a.width + j] = fmaf(ds, y, a.dv[s * a.width + j]);
        }
    }
};

/* Sets what views say and checks that they fit each other; the ids of sequences on the device. */
static inline pk_status pk_attention_of(const pk_call *call, const pk_view *query,
                                        const pk_view *keys, const pk_view *values,
                                        const pk_view *sequence, pk_attention *a) {
    if (!keys->offsets) return pk_fail(call, PK_BAD_SHAPE, -1, "the keys come without offsets");
    a->query = pk_f32(query), a->keys = pk_f32(keys), a->values = pk_f32(values);
    a->offsets = keys->offsets, a->sequences = keys->sequences;
    a->rows = query->dim[0], a->width = pk_inner(query, 1), a->depth = pk_inner(values, 1);
    a->sequence = pk_i64(sequence), a->own = query->offsets;
    if (a->heads < 1 || a->width % a->heads || a->depth % a->heads ||
        pk_inner(keys, 1) != a->width || values->dim[0] != keys->dim[0])
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "queries of %lld, %lld keys of %lld, %lld values of %lld, %lld heads",
                       (long long)a->width, (long long)keys->dim[0], (long long)pk_inner(keys, 1),
                       (long long)values->dim[0], (long long)a->depth, (long long)a->heads);
    const int fits = a->own ? query->sequences == a->sequences
                            : a->rows == 0 || (a->sequences > 0 && a->rows % a->sequences == 0);
    if (!sequence->data && !fits)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld rows for %lld sequences", (long long)a->rows,
                       (long long)a->sequences);
    if (a->causal && a->rows != keys->dim[0])
        return pk_fail(call, PK_BAD_SHAPE, -1, "causal: %lld rows for %lld tokens",
                       (long long)a->rows, (long long)keys->dim[0]);
    if (!sequence->data) return PK_OK;
    if (pk_count(sequence) != a->rows)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld sequences named for %lld rows",
                       (long long)pk_count(sequence), (long long)a->rows);
    return pk_check_index(call, a->sequence, a->rows, a->sequences, INT64_MIN, 1,
                          "sequence %lld of %lld");
}

static inline pk_status pk_attention_seen(const pk_call *call, const pk_view *context,
                                          const pk_view *dcontext, pk_attention *a) {
    a->context = pk_f32(context), a->dcontext = pk_f32(dcontext);
    if (pk_count(context) == a->rows * a->depth && pk_count(dcontext) == a->rows * a->depth)
        return PK_OK;
    return pk_fail(call, PK_BAD_SHAPE, -1,
                   "context and its gradient have %lld and %lld elements, expected %lld",
                   (long long)pk_count(context), (long long)pk_count(dcontext),
                   (long long)(a->rows * a->depth));
}

template <class K>
pk_status pk_attention_run(const pk_call *call, const pk_attention &a, int64_t each,
                           int64_t elements, const K &kernel) {
    if (pk_count(&call->out[0]) != elements)
        return pk_fail(call, PK_BAD_SHAPE, -1, "the output has %lld elements, expected %lld",
                       (long long)pk_count(&call->out[0]), (long long)elements);
    if (each == 0) return PK_OK;
    return PK_LAUNCH(call, pk_dim((unsigned)(each * a.heads)), pk_dim(PK_WARP), kernel);
}
static inline pk_status pk_attention_source(const pk_call *call, pk_attention *a, int64_t tokens) {
    a->dkeys = pk_f32(&call->out[0]), a->dvalues = pk_f32(&call->out[1]);
    a->add[0] = pk_adds(call, 0), a->add[1] = pk_adds(call, 1);
    if (pk_count(&call->out[1]) != tokens * a->depth)
        return pk_fail(call, PK_BAD_SHAPE, -1, "the values' gradient has %lld elements",
                       (long long)pk_count(&call->out[1]));
    return pk_attention_run(call, *a, a->sequences, tokens * a->width,
                            pk_attention_source_kernel{*a});
}
#endif
