/* sequence_conv: y[t] = sum over j of x[t + start + j] w_j inside each sequence, as `size` products
 * over the packed rows: a shift of all tokens of a sequence is a shift of the pointer, so nothing is
 * copied and nothing padded. */
#include <string.h>

#include "pk_kernel.h"
#include "pk_simd.h"
#include "products.h"
#include "recurrences.h"

#define TOKENS 128          /* of one task */
#define CHANNELS 64         /* rows of w_j whose gradient is one task */
#define GATHERED PK_PRODUCT_CHUNK /* tokens whose pairs are one product of the weight gradient */

/* x [T, d], w [size*d, m], y [T, m]; offsets[sequences] is T */
typedef struct conv {
    const pk_call *call;
    const int64_t *offsets;
    const float *x, *w, *y; /* y: dy backwards */
    float *out;
    int64_t sequences, d, m, size, start;
    int32_t add;
} conv;

static pk_status find(const pk_call *call, const pk_view *x, const pk_view *w, const pk_view *y,
                      conv *c) {
    if (!x->offsets) return pk_fail(call, PK_BAD_SHAPE, -1, "the tokens come without offsets");
    c->call = call;
    c->offsets = x->offsets, c->sequences = x->sequences;
    c->d = pk_inner(x, 1), c->m = pk_inner(y, 1);
    c->size = call->attr[0].i, c->start = call->attr[1].i;
    c->out = pk_f32(&call->out[0]), c->add = pk_adds(call, 0);
    if (c->size < 1 || c->size > INT32_MAX || c->start < -INT32_MAX || c->start > INT32_MAX)
        return pk_fail(call, PK_BAD_CALL, -1, "size %lld, start %lld", (long long)c->size,
                       (long long)c->start);
    if (w->ndim != 2 || w->dim[0] != c->size * c->d || w->dim[1] != c->m)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "w is [%lld, %lld], %lld tokens of width %lld give width %lld",
                       (long long)w->dim[0], (long long)pk_inner(w, 1), (long long)c->size,
                       (long long)c->d, (long long)c->m);
    if (x->dim[0] != y->dim[0] || c->offsets[c->sequences] != x->dim[0])
        return pk_fail(call, PK_BAD_SHAPE, -1, "x has %lld tokens, y %lld, the sequences %lld",
                       (long long)x->dim[0], (long long)y->dim[0],
                       (long long)c->offsets[c->sequences]);
    return PK_OK;
}

/* Rows first .. last, of one sequence that is begin .. end: what comes from `shift` rows further on
 * is added. The part of the rows for which that lies in the sequence is one product. */
static void add_shifted(const conv *c, int64_t first, int64_t last, int64_t begin, int64_t end,
                        int64_t shift, pk_product p) {
    const int64_t from = pk_max_i64(first, begin - shift), to = pk_min_i64(last, end - shift);
    if (from >= to) return;
    p.m = to - from, p.accumulate = 1;
    p.a += (from + shift) * p.a_stride;
    p.c += from * p.c_stride;
    pk_multiply(c->call, &p);
}

static void clear_rows(const conv *c, int64_t first, int64_t last, int64_t width) {
    if (!c->add) memset(c->out + first * width, 0, (size_t)((last - first) * width) * sizeof(float));
}

static void forward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const conv *c = context;
    (void)thread, (void)scratch;
    const int64_t first = begin * TOKENS,
                  last = pk_min_i64(end * TOKENS, c->offsets[c->sequences]);
    clear_rows(c, first, last, c->m);
    for (int64_t s = pk_sequence_at(c->offsets, c->sequences, first);
         s < c->sequences && c->offsets[s] < last; s++)
        for (int64_t j = 0; j < c->size; j++) {
            const pk_product p = {.n = c->m, .k = c->d, .a = c->x, .a_stride = c->d,
                                  .b = c->w + j * c->d * c->m, .b_stride = c->m, .c = c->out,
                                  .c_stride = c->m};
            add_shifted(c, pk_max_i64(first, c->offsets[s]), pk_min_i64(last, c->offsets[s + 1]),
                        c->offsets[s], c->offsets[s + 1], c->start + j, p);
        }
}

/* dx[t] = sum over j of dy[t - start - j] w_j^T */
static void backward_task(void *context, int64_t begin, int64_t end, int32_t thread,
                          void *scratch) {
    const conv *c = context;
    (void)thread, (void)scratch;
    const int64_t first = begin * TOKENS,
                  last = pk_min_i64(end * TOKENS, c->offsets[c->sequences]);
    clear_rows(c, first, last, c->d);
    for (int64_t s = pk_sequence_at(c->offsets, c->sequences, first);
         s < c->sequences && c->offsets[s] < last; s++)
        for (int64_t j = 0; j < c->size; j++) {
            const pk_product p = {.n = c->d, .k = c->m, .a = c->y, .a_stride = c->m,
                                  .b = c->w + j * c->d * c->m, .b_stride = c->m,
                                  .b_transposed = 1, .c = c->out, .c_stride = c->d};
            add_shifted(c, pk_max_i64(first, c->offsets[s]), pk_min_i64(last, c->offsets[s + 1]),
                        c->offsets[s], c->offsets[s + 1], -(c->start + j), p);
        }
}

/* Channels d0 .. d0 + count of the tokens that tokens first .. last read at this shift; zeros where
 * that lies in another sequence. */
static void gather(const conv *c, int64_t first, int64_t last, int64_t shift, int64_t d0,
                   int64_t count, float *rows) {
    memset(rows, 0, (size_t)((last - first) * count) * sizeof(float));
    for (int64_t s = pk_sequence_at(c->offsets, c->sequences, first);
         s < c->sequences && c->offsets[s] < last; s++) {
        const int64_t begin = c->offsets[s], end = c->offsets[s + 1];
        const int64_t from = pk_max_i64(pk_max_i64(first, begin), begin - shift),
                      to = pk_min_i64(pk_min_i64(last, end), end - shift);
        for (int64_t t = from; t < to; t++)
            memcpy(rows + (t - first) * count, c->x + (t + shift) * c->d + d0,
                   (size_t)count * sizeof(float));
    }
}

/* dw_j = sum over t of x[t + start + j]^T dy[t], some rows of it a task. */
static void weight_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const conv *c = context;
    (void)thread;
    const int64_t parts = pk_ceil_div(c->d, CHANNELS), tokens = c->offsets[c->sequences];
    float *rows = scratch;
    for (int64_t i = begin; i < end; i++) {
        const int64_t j = i / parts, d0 = i % parts * CHANNELS,
                      count = pk_min_i64(CHANNELS, c->d - d0);
        float *dw = c->out + (j * c->d + d0) * c->m;
        if (tokens == 0 && !c->add) memset(dw, 0, (size_t)(count * c->m) * sizeof(float));
        for (int64_t first = 0; first < tokens; first += GATHERED) {
            const int64_t last = pk_min_i64(first + GATHERED, tokens);
            gather(c, first, last, c->start + j, d0, count, rows);
            const pk_product p = {.m = count, .n = c->m, .k = last - first, .a = rows,
                                  .a_stride = count, .a_transposed = 1,
                                  .b = c->y + first * c->m, .b_stride = c->m, .c = dw,
                                  .c_stride = c->m, .accumulate = c->add || first > 0};
            pk_multiply(c->call, &p);
        }
    }
}

static pk_status sequence_conv_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *w = &call->in[1];
    conv c = {.x = pk_f32(x), .w = pk_f32(w)};
    const pk_status bad = find(call, x, w, &call->out[0], &c);
    if (bad) return bad;
    pk_parallel(call, pk_ceil_div(x->dim[0], TOKENS), 1, forward_task, &c);
    return PK_OK;
}

static pk_status sequence_conv_backward_x(const pk_call *call) {
    const pk_view *dy = &call->in[0], *w = &call->in[1], *dx = &call->out[0];
    conv c = {.y = pk_f32(dy), .w = pk_f32(w)};
    const pk_status bad = find(call, dx, w, dy, &c);
    if (bad) return bad;
    pk_parallel(call, pk_ceil_div(dx->dim[0], TOKENS), 1, backward_task, &c);
    return PK_OK;
}

static pk_status sequence_conv_backward_w(const pk_call *call) {
    const pk_view *x = &call->in[0], *dy = &call->in[1];
    conv c = {.x = pk_f32(x), .y = pk_f32(dy)};
    const pk_status bad = find(call, x, &call->out[0], dy, &c);
    if (bad) return bad;
    _Static_assert(GATHERED * CHANNELS * sizeof(float) <= PK_SCRATCH_BYTES, "rows in scratch");
    pk_parallel(call, c.size * pk_ceil_div(c.d, CHANNELS), 1, weight_task, &c);
    return PK_OK;
}

PK_OP(sequence_conv,
      {"sequence_conv.forward(x: f32, w: f32; size: int, start: int) -> (y: f32)",
       sequence_conv_forward},
      {"sequence_conv.backward_x(dy: f32, w: f32; size: int, start: int) -> (dx: f32)",
       sequence_conv_backward_x},
      {"sequence_conv.backward_w(x: f32, dy: f32; size: int, start: int) -> (dw: f32)",
       sequence_conv_backward_w});
