/* sequence_pool: one row for each sequence. */
#include <math.h>

#include "pk_simd.h"
#include "pk_kernel.h"

/* In the order of MODES in paddlecli/ops/sequence_pool.py. */
enum { SUM, AVERAGE, SQRT, MAX, FIRST, LAST, MODES };

/* tokens [offsets[sequences], width], pooled [sequences, width] */
typedef struct pool {
    const int64_t *offsets;
    const float *in, *x, *y;   /* in: tokens forwards, dy backwards */
    float *out;
    int64_t width, sequences;
    int64_t mode;
    float pad;
    int add;
} pool;

static pk_status find(const pk_call *call, const pk_view *tokens, const pk_view *pooled, pool *p) {
    if (!tokens->offsets)
        return pk_fail(call, PK_BAD_SHAPE, -1, "the tokens come without offsets");
    p->offsets = tokens->offsets;
    p->sequences = tokens->sequences;
    p->width = pk_inner(tokens, 1);
    p->add = pk_adds(call, 0);
    p->out = pk_f32(&call->out[0]);
    if (pooled->dim[0] != p->sequences || pk_inner(pooled, 1) != p->width ||
        p->offsets[p->sequences] != tokens->dim[0])
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "%lld sequences of %lld tokens and width %lld, pooled %lld of width %lld",
                       (long long)p->sequences, (long long)tokens->dim[0], (long long)p->width,
                       (long long)pooled->dim[0], (long long)pk_inner(pooled, 1));
    return PK_OK;
}

/* What a token counts in its sequence's row. */
static float share(int64_t mode, int64_t length) {
    if (mode == AVERAGE) return (float)(1.0 / (double)length);
    return mode == SQRT ? (float)(1.0 / sqrt((double)length)) : 1.0f;
}

static void forward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const pool *p = context;
    (void)thread, (void)scratch;
    for (int64_t s = begin; s < end; s++) {
        const int64_t length = p->offsets[s + 1] - p->offsets[s], d = p->width;
        const int64_t start = p->mode == LAST ? length - 1 : 0,
                      stop = p->mode == FIRST ? 1 : length;
        const float *x = p->in + p->offsets[s] * d;
        float *y = p->out + s * d;
        PK_FOR16(i, c, d) {
            pk_vec v = pk_set1(p->pad);
            if (length > 0) {
                v = pk_load_n(x + start * d + i, c);
                for (int64_t t = start + 1; t < stop; t++) {
                    const pk_vec w = pk_load_n(x + t * d + i, c);
                    /* the second operand wins where one is NaN */
                    v = p->mode == MAX ? pk_select(pk_is_nan(v), v, pk_max(v, w)) : pk_add(v, w);
                }
                if (p->mode == AVERAGE || p->mode == SQRT)
                    v = pk_mul(v, pk_set1(share(p->mode, length)));
            }
            pk_store_n(y + i, p->add ? pk_add(pk_load_n(y + i, c), v) : v, c);
        }
    }
}

static void backward_task(void *context, int64_t begin, int64_t end, int32_t thread,
                          void *scratch) {
    const pool *p = context;
    (void)thread, (void)scratch;
    for (int64_t s = begin; s < end; s++) {
        const int64_t length = p->offsets[s + 1] - p->offsets[s], d = p->width;
        const float *dy = p->in + s * d;
        for (int64_t t = 0; t < length; t++) {
            const int no = (p->mode == FIRST && t > 0) || (p->mode == LAST && t < length - 1);
            const pk_vec factor = pk_set1(no ? 0.0f : share(p->mode, length));
            float *dx = p->out + (p->offsets[s] + t) * d;
            PK_FOR16(i, c, d) {
                const pk_vec v = no ? pk_zero() : pk_mul(pk_load_n(dy + i, c), factor);
                pk_store_n(dx + i, p->add ? pk_add(pk_load_n(dx + i, c), v) : v, c);
            }
        }
    }
}

/* The first token that equals y takes dy. */
static void max_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const pool *p = context;
    (void)thread, (void)scratch;
    for (int64_t s = begin; s < end; s++) {
        const int64_t first = p->offsets[s], last = p->offsets[s + 1], d = p->width;
        PK_FOR16(i, c, d) {
            const pk_vec y = pk_load_n(p->y + s * d + i, c);
            pk_vec rest = pk_load_n(p->in + s * d + i, c);   /* dy, until it is given away */
            for (int64_t t = first; t < last; t++) {
                const pk_mask here = pk_eq(pk_load_n(p->x + t * d + i, c), y);
                const pk_vec v = pk_select(here, rest, pk_zero());
                rest = pk_select(here, pk_zero(), rest);
                float *dx = p->out + t * d + i;
                pk_store_n(dx, p->add ? pk_add(pk_load_n(dx, c), v) : v, c);
            }
        }
    }
}

/* Sequences differ in length: a small grain keeps the threads even. */
static void run(const pk_call *call, pool *p, pk_task task) {
    const int64_t each = p->sequences > 0 ? p->offsets[p->sequences] * p->width / p->sequences : 0;
    pk_parallel(call, p->sequences, pk_max_i64(1, 8192 / pk_max_i64(1, each)), task, p);
}

static pk_status sequence_pool_forward(const pk_call *call) {
    const pk_view *x = &call->in[0];
    pool p = {.in = pk_f32(x), .mode = call->attr[0].i, .pad = (float)call->attr[1].f};
    const pk_status bad = find(call, x, &call->out[0], &p);
    if (bad) return bad;
    if (p.mode < 0 || p.mode >= MODES)
        return pk_fail(call, PK_BAD_CALL, -1, "mode %lld", (long long)p.mode);
    run(call, &p, forward_task);
    return PK_OK;
}

static pk_status sequence_pool_backward(const pk_call *call) {
    const pk_view *dy = &call->in[0];
    pool p = {.in = pk_f32(dy), .mode = call->attr[0].i};
    const pk_status bad = find(call, &call->out[0], dy, &p);
    if (bad) return bad;
    if (p.mode < 0 || p.mode >= MODES || p.mode == MAX)
        return pk_fail(call, PK_BAD_CALL, -1, "mode %lld", (long long)p.mode);
    run(call, &p, backward_task);
    return PK_OK;
}

static pk_status sequence_pool_backward_max(const pk_call *call) {
    const pk_view *x = &call->in[0], *y = &call->in[1], *dy = &call->in[2];
    pool p = {.in = pk_f32(dy), .x = pk_f32(x), .y = pk_f32(y), .mode = MAX};
    pk_status bad = find(call, &call->out[0], dy, &p);
    if (!bad && (pk_count(x) != pk_count(&call->out[0]) || pk_count(y) != pk_count(dy)))
        bad = pk_fail(call, PK_BAD_SHAPE, -1, "x has %lld elements, dx %lld",
                      (long long)pk_count(x), (long long)pk_count(&call->out[0]));
    if (bad) return bad;
    run(call, &p, max_task);
    return PK_OK;
}

PK_OP(sequence_pool,
      {"sequence_pool.forward(x: f32; mode: int, pad_value: float) -> (y: f32)",
       sequence_pool_forward},
      {"sequence_pool.backward(dy: f32; mode: int) -> (dx: f32)", sequence_pool_backward},
      {"sequence_pool.backward_max(x: f32, y: f32, dy: f32) -> (dx: f32)",
       sequence_pool_backward_max});
