/* sequence_conv_pool: sequence_conv whose result is pooled block by block, so that what every token
 * gives is never held: memory follows the sequences, not their tokens times the filters. */
#include <math.h>

#include "elementwise.h"
#include "sequence_window.h"

#define TOKENS 256 /* of one product */
#define COLUMNS 128 /* filters of one task */

/* In the order of MODES in paddlecli/ops/sequence_pool.py. */
enum { SUM, AVERAGE, SQRT, MAX, MODES };

typedef struct pooled {
    const pk_conv_windows *c;
    pk_product p;
    float *out;        /* [sequences, m] */
    int64_t group;     /* sequences of one task */
    int64_t mode;
    float pad;
    int add;
} pooled;

/* What a sequence has come to, for the columns of one task. */
typedef struct strip {
    int64_t column, columns;
    float sums[COLUMNS];
} strip;

static void put_sequence(const pooled *q, int64_t s, strip *sum) {
    const int64_t length = q->c->windows.offsets[s + 1] - q->c->windows.offsets[s];
    const float share = q->mode == AVERAGE ? (float)(1.0 / (double)length)
                        : q->mode == SQRT  ? (float)(1.0 / sqrt((double)length))
                                           : 1.0f;
    float *out = q->out + s * q->c->m + sum->column;
    PK_FOR16(j, n, sum->columns) {
        pk_vec v = length > 0 ? pk_load_n(sum->sums + j, n) : pk_set1(q->pad);
        if (length > 0 && (q->mode == AVERAGE || q->mode == SQRT)) v = pk_mul(v, pk_set1(share));
        pk_put(out + j, v, n, q->add);
    }
}

/* Adds rows of one sequence; the same operations in the same order as sequence_pool's. */
static void take_rows(const pooled *q, const float *rows, int64_t count, int first, strip *sum) {
    PK_FOR16(j, n, sum->columns) {
        pk_vec v = pk_load_n(first ? rows + j : sum->sums + j, n);
        for (int64_t r = first; r < count; r++) {
            const pk_vec w = pk_load_n(rows + r * COLUMNS + j, n);
            v = q->mode == MAX ? pk_select(pk_is_nan(v), v, pk_max(v, w)) : pk_add(v, w);
        }
        pk_store_n(sum->sums + j, v, n);
    }
}

/* Sequences s .. last: blocks of tokens, whichever sequences they belong to. */
static void pool_sequences(const pooled *q, int64_t s, int64_t last, strip *sum, float *block) {
    const int64_t *offsets = q->c->windows.offsets, end = offsets[last];
    for (int64_t t = offsets[s], rows; t < end; t += rows) {
        rows = pk_min_i64(TOKENS, end - t);
        pk_windows here = q->c->windows;
        here.row = t;
        pk_product p = q->p;
        p.m = rows, p.n = sum->columns, p.b += sum->column, p.c = block, p.windows = &here;
        p.bias = p.bias ? p.bias + sum->column : NULL;
        pk_multiply(q->c->call, &p);
        for (int64_t r = 0, count; r < rows; r += count) {
            while (offsets[s + 1] <= t + r) put_sequence(q, s++, sum); /* empty ones */
            count = pk_min_i64(rows, offsets[s + 1] - t) - r;
            take_rows(q, block + r * COLUMNS, count, t + r == offsets[s], sum);
            if (t + r + count == offsets[s + 1]) put_sequence(q, s++, sum);
        }
    }
    while (s < last) put_sequence(q, s++, sum);
}

static void pool_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const pooled *q = context;
    const int64_t strips = pk_ceil_div(q->c->m, COLUMNS);
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const int64_t s = i / strips * q->group, column = i % strips * COLUMNS;
        strip sum = {.column = column, .columns = pk_min_i64(COLUMNS, q->c->m - column)};
        pool_sequences(q, s, pk_min_i64(s + q->group, q->c->windows.sequences), &sum, scratch);
    }
}

static pk_status sequence_conv_pool_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *w = &call->in[1], *b = &call->in[2], *y = &call->out[0];
    /* The result of the convolution alone, which is nowhere. */
    pk_view wide = *x;
    wide.ndim = 2, wide.dim[1] = pk_inner(y, 1);
    pk_conv_windows c;
    const pk_status bad = pk_find_conv(call, x, w, &wide, &c);
    if (bad) return bad;
    if (y->dim[0] != x->sequences || (b->data && pk_count(b) != c.m))
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "%lld sequences, %lld rows; b has %lld elements, w has %lld columns",
                       (long long)x->sequences, (long long)y->dim[0], (long long)pk_count(b),
                       (long long)c.m);
    pooled q = {.c = &c, .out = pk_f32(y), .mode = call->attr[3].i,
                .pad = (float)call->attr[4].f, .add = pk_adds(call, 0)};
    if (q.mode < 0 || q.mode >= MODES)
        return pk_fail(call, PK_BAD_CALL, -1, "mode %lld", (long long)q.mode);
    q.p = (pk_product){.k = c.size * c.d, .a = pk_f32(x), .a_stride = c.d, .b = pk_f32(w),
                       .b_stride = c.m, .c_stride = COLUMNS, .bias = pk_f32(b),
                       .activation = (int32_t)call->attr[2].i};
    q.group = pk_max_i64(1, TOKENS * x->sequences / pk_max_i64(1, c.tokens));
    _Static_assert(TOKENS * COLUMNS * sizeof(float) <= PK_SCRATCH_BYTES, "a block in scratch");
    pk_parallel(call, pk_ceil_div(x->sequences, q.group) * pk_ceil_div(c.m, COLUMNS), 1, pool_task,
                &q);
    return PK_OK;
}

PK_OP(sequence_conv_pool,
      {"sequence_conv_pool.forward(x: f32, w: f32, b?: f32; size: int, start: int, "
       "activation: int, mode: int, pad_value: float) -> (y: f32)",
       sequence_conv_pool_forward});
