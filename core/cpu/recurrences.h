/* recurrences.h: what recurrent kernels share: sequences ordered by length, and products with one
 * matrix that is packed once for all steps.
 *
 * Sequences run longest first, so those that still run at step t are the first n_t of them and a
 * step is one product of n_t rows. They are dealt out to as many groups as there are threads; a group
 * runs through all its steps alone, without meeting the others. A row's bits do not depend on the
 * rows beside it (products.h), so neither does a sequence on its group. */
#ifndef PK_RECURRENCES_H
#define PK_RECURRENCES_H
#include "pk_kernel.h"
#include "pk_simd.h"

typedef struct pk_steps {
    const int64_t *offsets; /* [sequences + 1] */
    const int64_t *order;   /* [running] sequences that have tokens, longest first */
    int64_t sequences, running;
    int64_t groups;
    int32_t reverse; /* from each sequence's end */
} pk_steps;

/* order: room for an id of each sequence.  Equal lengths stay in their old order. */
#define pk_steps_find PK_LEVEL_NAME(pk_steps_find)
pk_steps pk_steps_find(const pk_call *call, const pk_view *tokens, int32_t reverse, int64_t *order);

/* One group: its row i is the sequence `steps->order[first + i * stride]`. */
typedef struct pk_group {
    const pk_steps *steps;
    int64_t first, stride, rows;
    int64_t base; /* rows of the groups before it: where its part of a buffer [sequences, ...] starts */
} pk_group;

PK_INLINE pk_group pk_group_of(const pk_steps *s, int64_t group) {
    const int64_t each = s->running / s->groups, more = s->running % s->groups;
    return (pk_group){s, group, s->groups, each + (group < more),
                      group * each + pk_min_i64(group, more)};
}
PK_INLINE int64_t pk_group_sequence(const pk_group *g, int64_t row) {
    return g->steps->order[g->first + row * g->stride];
}
PK_INLINE int64_t pk_group_length(const pk_group *g, int64_t row) {
    const int64_t s = pk_group_sequence(g, row);
    return g->steps->offsets[s + 1] - g->steps->offsets[s];
}
/* The token of a row at a step. */
PK_INLINE int64_t pk_group_token(const pk_group *g, int64_t row, int64_t step) {
    const int64_t s = pk_group_sequence(g, row), *offsets = g->steps->offsets;
    return g->steps->reverse ? offsets[s + 1] - 1 - step : offsets[s] + step;
}
/* How many rows run at a step, of those `rows` that ran at the step before. */
PK_INLINE int64_t pk_group_running(const pk_group *g, int64_t step, int64_t rows) {
    while (rows > 0 && pk_group_length(g, rows - 1) <= step) rows--;
    return rows;
}

/* Floats of a packed matrix [k, n] on any machine. */
PK_INLINE int64_t pk_panels_floats(int64_t k, int64_t n) { return pk_ceil_div(n, 32) * 32 * k; }

/* transposed: w is stored [n, k]. */
#define pk_panels_pack PK_LEVEL_NAME(pk_panels_pack)
void pk_panels_pack(const pk_call *call, const float *w, int64_t stride, int32_t transposed,
                    int64_t k, int64_t n, float *panels);
/* c [rows, n] (=|+=) a [rows, k] * packed; alone, in the order of k that products.h states.
 * scratch: what a task is given. */
#define pk_panels_multiply PK_LEVEL_NAME(pk_panels_multiply)
void pk_panels_multiply(const float *a, int64_t a_stride, int64_t rows, int64_t k,
                        const float *panels, int64_t n, float *c, int64_t c_stride,
                        int32_t accumulate, float *scratch);

/* dw [k, n] (=|+=) sum over tokens of before(token)^T dz(token): before is the row of h [tokens, k]
 * one step earlier in its sequence; at the first step the sequence's row of h0, or nothing where
 * that is NULL; times the token's row of `times` where that is given.  In chunks of PK_PRODUCT_CHUNK
 * tokens, in their order. */
typedef struct pk_recurrent {
    const pk_view *tokens; /* for its offsets */
    int32_t reverse, accumulate;
    const float *h, *h0, *times, *dz;
    int64_t k, n, times_stride, dz_stride, dw_stride;
    float *dw;
} pk_recurrent;
#define pk_recurrent_weights PK_LEVEL_NAME(pk_recurrent_weights)
void pk_recurrent_weights(const pk_call *call, const pk_recurrent *product);

/* Rows of a step lie far apart, where the machine does not look ahead by itself. */
PK_INLINE void pk_prefetch(const float *row, int64_t n) {
    for (int64_t j = 0; j < n; j += 16) __builtin_prefetch(row + j, 0, 2);
}
PK_INLINE void pk_prefetch_write(const float *row, int64_t n) {
    for (int64_t j = 0; j < n; j += 16) __builtin_prefetch(row + j, 1, 2);
}

/* Rows by sequence to the rows of a group, in its order, and back; zeros where there are none. */
PK_INLINE void pk_group_start(const pk_group *g, const float *from, int64_t width, float *rows) {
    for (int64_t i = 0; i < g->rows; i++) {
        float *row = rows + i * width;
        const float *source = from ? from + pk_group_sequence(g, i) * width : NULL;
        PK_FOR16(j, n, width) pk_store_n(row + j, source ? pk_load_n(source + j, n) : pk_zero(), n);
    }
}
PK_INLINE void pk_group_finish(const pk_group *g, const float *rows, int64_t width, float *to,
                               int32_t add) {
    for (int64_t i = 0; i < g->rows; i++) {
        float *row = to + pk_group_sequence(g, i) * width;
        PK_FOR16(j, n, width) {
            const pk_vec v = pk_load_n(rows + i * width + j, n);
            pk_store_n(row + j, add ? pk_add(pk_load_n(row + j, n), v) : v, n);
        }
    }
}
/* Sequences without tokens have no step that would write their start's gradient. */
PK_INLINE void pk_steps_clear_empty(const pk_steps *s, float *rows, int64_t width, int32_t add) {
    for (int64_t i = 0; i < s->sequences && !add; i++)
        if (s->offsets[i] == s->offsets[i + 1])
            PK_FOR16(j, n, width) pk_store_n(rows + i * width + j, pk_zero(), n);
}

/* The last sequence that begins at or before a token; it holds it. */
PK_INLINE int64_t pk_sequence_at(const int64_t *offsets, int64_t sequences, int64_t token) {
    int64_t low = 0, high = sequences;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (offsets[middle] <= token) low = middle;
        else high = middle;
    }
    return low;
}

/* In the order of ACTIVATIONS in paddlecli/ops/_recurrent.py. */
enum { PK_CELL_SIGMOID, PK_CELL_TANH, PK_CELL_RELU, PK_CELL_IDENTITY, PK_CELL_ACTIVATIONS };
PK_INLINE pk_vec pk_cell_activate(pk_vec x, int64_t kind) {
    switch (kind) {
    case PK_CELL_SIGMOID: return pk_sigmoid(x);
    case PK_CELL_TANH: return pk_tanh(x);
    case PK_CELL_RELU: return pk_relu(x);
    default: return x;
    }
}
/* dx from dy and y = activate(x) */
PK_INLINE pk_vec pk_cell_derive(pk_vec y, pk_vec dy, int64_t kind) {
    switch (kind) {
    case PK_CELL_SIGMOID: return pk_mul(dy, pk_mul(y, pk_sub(pk_set1(1.0f), y)));
    case PK_CELL_TANH: return pk_mul(dy, pk_fnma(y, y, pk_set1(1.0f)));
    case PK_CELL_RELU: return pk_select(pk_gt(y, pk_zero()), dy, pk_zero());
    default: return dy;
    }
}

#endif
