/* sequence_softmax: over the tokens of each sequence, each column by itself. */
#include "elementwise.h"

/* x, y, dy [offsets[sequences], width] */
typedef struct work {
    const int64_t *offsets;
    const float *x, *dy; /* x: y, backwards */
    float *out;
    int64_t width;
    int32_t add;
} work;

/* One column: the sixteen lanes go along the tokens, which lie next to each other. */
static void forward_line(const work *w, int64_t first, int64_t n) {
    const float *x = w->x + first;
    float *y = w->out + first;
    const pk_vec m = pk_set1(pk_row_max(x, n));
    pk_vec s = pk_zero();
    PK_FOR16(t, c, n) s = pk_add(s, pk_exp(pk_sub(pk_load_or(x + t, c, -__builtin_inff()), m)));
    const pk_vec factor = pk_set1(1.0f / pk_sum16(s));
    PK_FOR16(t, c, n)
        pk_put(y + t, pk_mul(pk_exp(pk_sub(pk_load_n(x + t, c), m)), factor), c, w->add);
}

/* Several columns: a lane is a column. */
static void forward_columns(const work *w, int64_t first, int64_t last) {
    const int64_t d = w->width;
    PK_FOR16(j, c, d) {
        const float *x = w->x + j;
        pk_vec m = pk_set1(-__builtin_inff()), s = pk_zero();
        for (int64_t t = first; t < last; t++) m = pk_max(m, pk_load_n(x + t * d, c));
        for (int64_t t = first; t < last; t++)
            s = pk_add(s, pk_exp(pk_sub(pk_load_n(x + t * d, c), m)));
        const pk_vec factor = pk_div(pk_set1(1.0f), s);
        for (int64_t t = first; t < last; t++)
            pk_put(w->out + t * d + j, pk_mul(pk_exp(pk_sub(pk_load_n(x + t * d, c), m)), factor),
                   c, w->add);
    }
}

static void forward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const work *w = context;
    (void)thread, (void)scratch;
    for (int64_t s = begin; s < end; s++) {
        const int64_t first = w->offsets[s], last = w->offsets[s + 1];
        if (w->width == 1) forward_line(w, first, last - first);
        else forward_columns(w, first, last);
    }
}

static void backward_task(void *context, int64_t begin, int64_t end, int32_t thread,
                          void *scratch) {
    const work *w = context;
    (void)thread, (void)scratch;
    const int64_t d = w->width;
    for (int64_t s = begin; s < end; s++) {
        const int64_t first = w->offsets[s], last = w->offsets[s + 1];
        if (d == 1) {
            const float *y = w->x + first, *dy = w->dy + first;
            const pk_vec dot = pk_set1(pk_row_dot(y, dy, last - first));
            PK_FOR16(t, c, last - first)
                pk_put(w->out + first + t,
                       pk_mul(pk_load_n(y + t, c), pk_sub(pk_load_n(dy + t, c), dot)), c, w->add);
            continue;
        }
        PK_FOR16(j, c, d) {
            pk_vec dot = pk_zero();
            for (int64_t t = first; t < last; t++)
                dot = pk_fma(pk_load_n(w->x + t * d + j, c), pk_load_n(w->dy + t * d + j, c), dot);
            for (int64_t t = first; t < last; t++)
                pk_put(w->out + t * d + j,
                       pk_mul(pk_load_n(w->x + t * d + j, c),
                              pk_sub(pk_load_n(w->dy + t * d + j, c), dot)),
                       c, w->add);
        }
    }
}

static pk_status run(const pk_call *call, const pk_view *dy, pk_task task) {
    const pk_view *x = &call->in[0], *out = &call->out[0];
    if (!x->offsets) return pk_fail(call, PK_BAD_SHAPE, -1, "the tokens come without offsets");
    if (pk_count(out) != pk_count(x) || (dy && pk_count(dy) != pk_count(x)) ||
        x->offsets[x->sequences] != x->dim[0])
        return pk_fail(call, PK_BAD_SHAPE, -1, "the output has %lld elements, the input %lld",
                       (long long)pk_count(out), (long long)pk_count(x));
    work w = {x->offsets, pk_f32(x), dy ? pk_f32(dy) : NULL, pk_f32(out), pk_inner(x, 1),
              pk_adds(call, 0)};
    const int64_t each = x->sequences > 0 ? pk_count(x) / x->sequences : 0;
    pk_parallel(call, x->sequences, pk_max_i64(1, 4096 / pk_max_i64(1, each)), task, &w);
    return PK_OK;
}

static pk_status sequence_softmax_forward(const pk_call *call) {
    return run(call, NULL, forward_task);
}
static pk_status sequence_softmax_backward(const pk_call *call) {
    return run(call, &call->in[1], backward_task);
}

PK_OP(sequence_softmax,
      {"sequence_softmax.forward(x: f32) -> (y: f32)", sequence_softmax_forward},
      {"sequence_softmax.backward(y: f32, dy: f32) -> (dx: f32)", sequence_softmax_backward});
