/* attention_rows.h: what attention kernels share: rows that ask, packed source tokens that answer.
 *
 * Row r asks the tokens of one sequence: `sequence[r]` where that is given, else the one it lies in
 * where the rows are packed themselves, else rows are dealt out evenly, rows / sequences to each
 * sequence in order.  Weights are a softmax over that sequence's
 * tokens; they are not kept, the gradients compute them anew.  A row's result depends on the row
 * and its sequence alone, so neither its batch nor the other rows of a step change a bit. */
#ifndef PK_ATTENTION_ROWS_H
#define PK_ATTENTION_ROWS_H
#include "elementwise.h"
#include "packed.h"
#include "recurrences.h"
#include "reductions.h"

#define PK_ATTENTION_CHUNK 2048   /* tokens whose weights are held at a time */
#define PK_ATTENTION_KEPT                                                                        \
    196608 /* floats of tanh kept between two uses; with the weights they fit a thread's scratch \
            */

typedef enum { PK_SCORE_LINEAR, PK_SCORE_TANH, PK_SCORE_DOT } pk_score;

/* query, dquery [rows, width]; keys, dkeys [T, width]; values, dvalues [T, depth]; v [width];
 * context, dcontext [rows, depth].  With heads, head h owns the h-th part of width and of depth. */
typedef struct pk_attention {
    const float *query, *keys, *values, *v, *context, *dcontext;
    const int64_t *sequence, *own, *offsets; /* own: of packed rows; offsets: of the tokens */
    int64_t rows, sequences, width, depth, heads;
    float scale;
    pk_score kind;
    int32_t causal; /* row r is token r of the keys' axis and sees the tokens up to itself */
    float *out;                /* context or dquery */
    float *dkeys, *dvalues, *dv; /* dv: a row for each sequence */
    const int64_t *row_list, *row_start;
    int32_t add[2];
} pk_attention;

PK_INLINE int64_t pk_attention_sequence(const pk_attention *a, int64_t row) {
    if (a->sequence) return a->sequence[row];
    return a->own ? pk_sequence_at(a->own, a->sequences, row) : row / (a->rows / a->sequences);
}

/* The tokens that a row sees: from first up to, not including, last. */
typedef struct pk_span {
    int64_t first, last;
} pk_span;
PK_INLINE pk_span pk_attention_span(const pk_attention *a, int64_t row, int64_t sequence) {
    const int64_t last = a->offsets[sequence + 1];
    return (pk_span){a->offsets[sequence], a->causal ? pk_min_i64(last, row + 1) : last};
}

/* Scores of n tokens from `first` on; kept [n, width], where given, gets their tanh.  A score that
 * is linear in the query adds the same to all tokens of a row, which the softmax takes away again:
 * the query is left out. */
static void pk_attention_scores(const pk_attention *a, int64_t row, int64_t head, int64_t first,
                                int64_t n, float *scores, float *kept) {
    const int64_t w = a->width / a->heads;
    const float *q = a->query + row * a->width + head * w;
    for (int64_t t = 0; t < n; t++) {
        const float *k = a->keys + (first + t) * a->width + head * w;
        if (a->kind == PK_SCORE_DOT) {
            scores[t] = a->scale * pk_row_dot(q, k, w);
        } else if (a->kind == PK_SCORE_LINEAR) {
            scores[t] = pk_row_dot(a->v, k, w);
        } else {
            pk_vec s = pk_zero();
            PK_FOR16(j, c, w) {
                const pk_vec y = pk_tanh(pk_add(pk_load_n(q + j, c), pk_load_n(k + j, c)));
                s = pk_fma(pk_load_n(a->v + j, c), y, s);
                if (kept) pk_store_n(kept + t * w + j, y, c);
            }
            scores[t] = pk_sum16(s);
        }
    }
}

/* Largest score of a row and the sum of exp(score - largest), by which its weights are made. */
typedef struct pk_softmax_state {
    float largest, sum;
} pk_softmax_state;
static void pk_attention_meet(pk_softmax_state *s, const float *scores, int64_t n) {
    const float largest = __builtin_fmaxf(s->largest, pk_row_max(scores, n));
    pk_vec sum = pk_zero();
    const pk_vec m = pk_set1(largest);
    PK_FOR16(t, c, n)
        sum = pk_add(sum, pk_exp(pk_sub(pk_load_or(scores + t, c, -__builtin_inff()), m)));
    const float before = s->sum == 0.0f ? 0.0f : s->sum * pk_exp1(s->largest - largest);
    *s = (pk_softmax_state){largest, before + pk_sum16(sum)};
}
static void pk_attention_weigh(const pk_softmax_state *s, float *scores, int64_t n) {
    const pk_vec m = pk_set1(s->largest), factor = pk_set1(1.0f / s->sum);
    PK_FOR16(t, c, n)
        pk_store_n(scores + t, pk_mul(pk_exp(pk_sub(pk_load_n(scores + t, c), m)), factor), c);
}

/* The weights of a row, chunk by chunk: one walk for a sequence of at most a chunk, else one that
 * finds the sum and one that makes the weights. */
typedef struct pk_weights {
    pk_span span;
    pk_softmax_state state;
    float *weights;   /* [PK_ATTENTION_CHUNK] */
    float *kept;      /* [PK_ATTENTION_KEPT] */
    int64_t first, n; /* the present chunk */
    int32_t is_kept;
} pk_weights;
static void pk_weights_begin(const pk_attention *a, pk_weights *w, int64_t row, int64_t sequence,
                             int64_t head, float *scratch) {
    w->span = pk_attention_span(a, row, sequence);
    w->state = (pk_softmax_state){-__builtin_inff(), 0.0f};
    w->weights = scratch, w->kept = scratch + PK_ATTENTION_CHUNK;
    w->first = w->span.first, w->n = 0;
    if (w->span.last - w->span.first <= PK_ATTENTION_CHUNK) return;
    for (int64_t t = w->span.first; t < w->span.last; t += PK_ATTENTION_CHUNK) {
        const int64_t n = pk_min_i64(PK_ATTENTION_CHUNK, w->span.last - t);
        pk_attention_scores(a, row, head, t, n, w->weights, NULL);
        pk_attention_meet(&w->state, w->weights, n);
    }
}
/* The next chunk; 0 behind the last one. */
static int pk_weights_next(const pk_attention *a, pk_weights *w, int64_t row, int64_t head,
                           int keep) {
    w->first += w->n;
    w->n = pk_min_i64(PK_ATTENTION_CHUNK, w->span.last - w->first);
    if (w->n <= 0) return 0;
    w->is_kept = keep && w->n * a->width <= PK_ATTENTION_KEPT;
    pk_attention_scores(a, row, head, w->first, w->n, w->weights, w->is_kept ? w->kept : NULL);
    if (w->span.last - w->span.first <= PK_ATTENTION_CHUNK)
        pk_attention_meet(&w->state, w->weights, w->n);
    pk_attention_weigh(&w->state, w->weights, w->n);
    return 1;
}

/* The context of rows begin..end; a sequence without tokens gives zeros. */
static void pk_attention_forward_task(void *context, int64_t begin, int64_t end, int32_t thread,
                                      void *scratch) {
    const pk_attention *a = context;
    const int64_t d = a->depth / a->heads;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = i / a->heads, head = i % a->heads;
        float *y = a->out + row * a->depth + head * d;
        int add = a->add[0];
        pk_weights w;
        pk_weights_begin(a, &w, row, pk_attention_sequence(a, row), head, scratch);
        while (pk_weights_next(a, &w, row, head, 0)) {
            const float *values = a->values + w.first * a->depth + head * d;
            PK_FOR16(j, c, d) {
                pk_vec sum = pk_zero();
                for (int64_t t = 0; t < w.n; t++)
                    sum =
                        pk_fma(pk_set1(w.weights[t]), pk_load_n(values + t * a->depth + j, c), sum);
                pk_put(y + j, sum, c, add);
            }
            add = 1;
        }
        if (!add) PK_FOR16(j, c, d) pk_store_n(y + j, pk_zero(), c);
    }
}

/* Weights to the gradients of the scores: weight * (dcontext . value - dcontext . context). */
static void pk_attention_dscores(const pk_attention *a, const pk_weights *w, int64_t row,
                                 int64_t head, float *dscores) {
    const int64_t d = a->depth / a->heads;
    const float *dy = a->dcontext + row * a->depth + head * d;
    const float mean = pk_row_dot(dy, a->context + row * a->depth + head * d, d);
    const float *values = a->values + w->first * a->depth + head * d;
    for (int64_t t = 0; t < w->n; t++)
        dscores[t] = w->weights[t] * (pk_row_dot(dy, values + t * a->depth, d) - mean);
}

/* tanh(query + key) of a token of the chunk */
PK_INLINE pk_vec pk_attention_tanh(const pk_attention *a, const pk_weights *w, int64_t row,
                                   int64_t t, int64_t j, int64_t c) {
    if (w->is_kept) return pk_load_n(w->kept + t * a->width + j, c);
    return pk_tanh(pk_add(pk_load_n(a->query + row * a->width + j, c),
                          pk_load_n(a->keys + (w->first + t) * a->width + j, c)));
}

static void pk_attention_query_task(void *context, int64_t begin, int64_t end, int32_t thread,
                                    void *scratch) {
    const pk_attention *a = context;
    const int64_t width = a->width / a->heads;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = i / a->heads, head = i % a->heads;
        float *dq = a->out + row * a->width + head * width;
        int add = a->add[0];
        pk_weights w;
        pk_weights_begin(a, &w, row, pk_attention_sequence(a, row), head, scratch);
        while (a->kind != PK_SCORE_LINEAR && pk_weights_next(a, &w, row, head, 1)) {
            pk_attention_dscores(a, &w, row, head, w.weights);
            const float *keys = a->keys + w.first * a->width + head * width;
            PK_FOR16(j, c, width) {
                pk_vec sum = pk_zero();
                for (int64_t t = 0; t < w.n; t++) {
                    const pk_vec ds = pk_set1(w.weights[t]);
                    if (a->kind == PK_SCORE_DOT) {
                        sum = pk_fma(ds, pk_load_n(keys + t * a->width + j, c), sum);
                    } else {
                        const pk_vec y = pk_attention_tanh(a, &w, row, t, j, c);
                        sum = pk_fma(ds, pk_fnma(y, y, pk_set1(1.0f)), sum);
                    }
                }
                const pk_vec factor =
                    a->kind == PK_SCORE_DOT ? pk_set1(a->scale) : pk_load_n(a->v + j, c);
                pk_put(dq + j, pk_mul(sum, factor), c, add);
            }
            add = 1;
        }
        if (!add) PK_FOR16(j, c, width) pk_store_n(dq + j, pk_zero(), c);
    }
}

/* What one chunk of one row adds to the gradients of keys, values and v. */
static void pk_attention_add_source(const pk_attention *a, const pk_weights *w, int64_t row,
                                    int64_t head, const float *dscores, float *dv) {
    const int64_t width = a->width / a->heads, d = a->depth / a->heads;
    const float *dy = a->dcontext + row * a->depth + head * d;
    const float *q = a->query + row * a->width + head * width;
    for (int64_t t = 0; t < w->n; t++) {
        const pk_vec weight = pk_set1(w->weights[t]), ds = pk_set1(dscores[t]),
                     scaled = pk_set1(dscores[t] * a->scale);
        float *dvalues = a->dvalues + (w->first + t) * a->depth + head * d;
        PK_FOR16(j, c, d) pk_put(dvalues + j, pk_mul(weight, pk_load_n(dy + j, c)), c, 1);
        const int64_t at = (w->first + t) * a->width + head * width;
        PK_FOR16(j, c, width) {
            pk_vec dk, y;
            if (a->kind == PK_SCORE_DOT) {
                pk_put(a->dkeys + at + j, pk_mul(scaled, pk_load_n(q + j, c)), c, 1);
                continue;
            }
            dk = pk_mul(ds, pk_load_n(a->v + j, c));
            if (a->kind == PK_SCORE_TANH) {
                y = pk_attention_tanh(a, w, row, t, j, c);
                dk = pk_mul(dk, pk_fnma(y, y, pk_set1(1.0f)));
            } else {
                y = pk_load_n(a->keys + at + j, c);
            }
            pk_put(a->dkeys + at + j, dk, c, 1);
            pk_store_n(dv + j, pk_fma(ds, y, pk_load_n(dv + j, c)), c);
        }
    }
}

/* Sequences begin..end: their rows in order, each adding to the sequence's tokens. */
static void pk_attention_source_task(void *context, int64_t begin, int64_t end, int32_t thread,
                                     void *scratch) {
    const pk_attention *a = context;
    float *dscores = (float *)scratch + PK_ATTENTION_CHUNK + PK_ATTENTION_KEPT;
    (void)thread;
    for (int64_t s = begin; s < end; s++) {
        const int64_t first = a->offsets[s], n = a->offsets[s + 1] - first;
        float *dv = a->dv ? a->dv + s * a->width : NULL;
        if (!a->add[0])
            PK_FOR16(j, c, n * a->width) pk_store_n(a->dkeys + first * a->width + j, pk_zero(), c);
        if (!a->add[1])
            PK_FOR16(j, c, n * a->depth)
                pk_store_n(a->dvalues + first * a->depth + j, pk_zero(), c);
        if (dv) PK_FOR16(j, c, a->width) pk_store_n(dv + j, pk_zero(), c);
        for (int64_t i = a->row_start[s]; i < a->row_start[s + 1]; i++)
            for (int64_t head = 0; head < a->heads; head++) {
                const int64_t row = a->row_list[i];
                pk_weights w;
                pk_weights_begin(a, &w, row, s, head, scratch);
                while (pk_weights_next(a, &w, row, head, 1)) {
                    pk_attention_dscores(a, &w, row, head, dscores);
                    pk_attention_add_source(a, &w, row, head, dscores, dv);
                }
            }
    }
}

/* The rows of each sequence, in their order; work [rows + sequences + 1]. */
static void pk_attention_rows_of(pk_attention *a, int64_t *work) {
    int64_t *start = work, *list = work + a->sequences + 1;
    for (int64_t s = 0; s <= a->sequences; s++) start[s] = 0;
    for (int64_t r = 0; r < a->rows; r++) start[pk_attention_sequence(a, r)]++;
    int64_t before = 0;
    for (int64_t s = 0; s <= a->sequences; s++) {
        const int64_t own = start[s];
        start[s] = before;
        before += own;
    }
    for (int64_t r = 0; r < a->rows; r++) list[start[pk_attention_sequence(a, r)]++] = r;
    for (int64_t s = a->sequences; s > 0; s--) start[s] = start[s - 1];
    start[0] = 0;
    a->row_start = start, a->row_list = list;
}

/* Sets what views say and checks that they fit each other and that every row's sequence is there.
 */
static pk_status pk_attention_of(const pk_call *call, const pk_view *query, const pk_view *keys,
                                 const pk_view *values, const pk_view *sequence, pk_attention *a) {
    if (!keys->offsets) return pk_fail(call, PK_BAD_SHAPE, -1, "the keys come without offsets");
    a->query = pk_f32(query), a->keys = pk_f32(keys), a->values = pk_f32(values);
    a->offsets = keys->offsets, a->sequences = keys->sequences;
    a->rows = query->dim[0], a->width = pk_inner(query, 1), a->depth = pk_inner(values, 1);
    a->sequence = pk_i64(sequence), a->own = query->offsets;
    if (a->heads < 1 || a->width % a->heads || a->depth % a->heads ||
        pk_inner(keys, 1) != a->width || values->dim[0] != keys->dim[0] ||
        a->offsets[a->sequences] != keys->dim[0])
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "queries of %lld, %lld keys of %lld, %lld values of %lld, %lld heads",
                       (long long)a->width, (long long)keys->dim[0], (long long)pk_inner(keys, 1),
                       (long long)values->dim[0], (long long)a->depth, (long long)a->heads);
    const int fits = a->own ? query->sequences == a->sequences && a->own[a->sequences] == a->rows
                            : a->rows == 0 || (a->sequences > 0 && a->rows % a->sequences == 0);
    if (!sequence->data && !fits)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld rows for %lld sequences", (long long)a->rows,
                       (long long)a->sequences);
    if (a->causal && a->rows != keys->dim[0])
        return pk_fail(call, PK_BAD_SHAPE, -1, "causal: %lld rows for %lld tokens",
                       (long long)a->rows, (long long)keys->dim[0]);
    if (sequence->data && pk_count(sequence) != a->rows)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld sequences named for %lld rows",
                       (long long)pk_count(sequence), (long long)a->rows);
    for (int64_t r = 0; sequence->data && r < a->rows; r++)
        if (a->sequence[r] < 0 || a->sequence[r] >= a->sequences)
            return pk_fail(call, PK_BAD_DATA, r, "sequence %lld of %lld", (long long)a->sequence[r],
                           (long long)a->sequences);
    return PK_OK;
}

/* About how many rows are work enough for a task. */
PK_INLINE int64_t pk_attention_grain(const pk_attention *a) {
    const int64_t tokens = a->sequences ? pk_ceil_div(a->offsets[a->sequences], a->sequences) : 1;
    const int64_t each = pk_max_i64(1, tokens) * (a->width + a->depth) / a->heads;
    return pk_max_i64(1, 16384 / pk_max_i64(1, each));
}

/* The context and its gradient: inputs `at` and the one behind it. */
static pk_status pk_attention_behind(const pk_call *call, int32_t at, pk_attention *a) {
    const pk_view *context = &call->in[at], *dcontext = &call->in[at + 1];
    a->context = pk_f32(context), a->dcontext = pk_f32(dcontext);
    pk_status bad = pk_check_size(call, "context", context, a->rows * a->depth);
    if (!bad) bad = pk_check_size(call, "dcontext", dcontext, a->rows * a->depth);
    return bad;
}

/* The kernels with one output: the context, and the gradient of the queries. */
static pk_status pk_attention_run(const pk_call *call, pk_attention *a, int64_t width,
                                  pk_task task) {
    const pk_view *out = &call->out[0];
    a->out = pk_f32(out), a->add[0] = pk_adds(call, 0);
    const pk_status bad = pk_check_size(call, "the result", out, a->rows * width);
    if (!bad) pk_parallel(call, a->rows * a->heads, pk_attention_grain(a), task, a);
    return bad;
}
static pk_status pk_attention_forward(const pk_call *call, pk_attention *a) {
    return pk_attention_run(call, a, a->depth, pk_attention_forward_task);
}
static pk_status pk_attention_query(const pk_call *call, pk_attention *a) {
    return pk_attention_run(call, a, a->width, pk_attention_query_task);
}

/* dkeys, dvalues, and for scores with v the gradient of v from its parts [sequences, width]. */
static pk_status pk_attention_source(const pk_call *call, pk_attention *a,
                                     const pk_view *work_rows) {
    a->dkeys = pk_f32(&call->out[0]), a->dvalues = pk_f32(&call->out[1]);
    a->add[0] = pk_adds(call, 0), a->add[1] = pk_adds(call, 1);
    const int64_t tokens = a->offsets[a->sequences];
    pk_status bad = pk_check_size(call, "dkeys", &call->out[0], tokens * a->width);
    if (!bad) bad = pk_check_size(call, "dvalues", &call->out[1], tokens * a->depth);
    if (!bad && pk_count(work_rows) < a->rows + a->sequences + 1)
        bad = pk_fail(call, PK_BAD_SHAPE, -1, "the scratch is too small for %lld rows",
                      (long long)a->rows);
    if (bad) return bad;
    pk_attention_rows_of(a, pk_i64(work_rows));
    pk_parallel(call, a->sequences, 1, pk_attention_source_task, a);
    return PK_OK;
}

#endif
