/* row_conv: y[t] = sum over j of x[t + j] w[j] inside each sequence, column by column. */
#include "elementwise.h"
#include "packed.h"
#include "reductions.h"

/* x, y [T, d], w [size, d]; direction 1 reads ahead, -1 (backwards) behind */
typedef struct conv {
    const int64_t *offsets;
    const float *x, *w, *dy;
    float *out;
    int64_t sequences, tokens, d, size, direction;
    int add;
} conv;

static pk_status find(const pk_call *call, const pk_view *tokens, const pk_view *other,
                      const pk_view *w, conv *c) {
    c->offsets = tokens->offsets, c->sequences = tokens->sequences, c->tokens = tokens->dim[0];
    c->d = pk_inner(tokens, 1), c->size = w->dim[0];
    c->out = pk_f32(&call->out[0]), c->add = pk_adds(call, 0);
    if (w->ndim != 2 || w->dim[1] != c->d)
        return pk_fail(call, PK_BAD_SHAPE, -1, "w has %lld columns, the tokens %lld",
                       (long long)pk_inner(w, 1), (long long)c->d);
    const pk_status bad = pk_check_packed(call, "the tokens", tokens);
    return bad ? bad : pk_check_size(call, "y", other, pk_count(tokens));
}

static void rows_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const conv *k = context;
    (void)thread, (void)scratch;
    for (int64_t s = begin; s < end; s++)
        for (int64_t t = k->offsets[s]; t < k->offsets[s + 1]; t++) {
            const int64_t reach = k->direction > 0 ? k->offsets[s + 1] - t : t - k->offsets[s] + 1,
                          size = pk_min_i64(k->size, reach);
            PK_FOR16(i, c, k->d) {
                pk_vec sum = pk_zero();
                for (int64_t j = 0; j < size; j++)
                    sum = pk_fma(pk_load_n(k->x + (t + j * k->direction) * k->d + i, c),
                                 pk_load_n(k->w + j * k->d + i, c), sum);
                pk_put(k->out + t * k->d + i, sum, c, k->add);
            }
        }
}

static void run(const pk_call *call, conv *c) {
    const int64_t each = c->tokens * c->d / pk_max_i64(1, c->sequences) * c->size;
    pk_parallel(call, c->sequences, pk_max_i64(1, 8192 / pk_max_i64(1, each)), rows_task, c);
}

static pk_status row_conv_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *w = &call->in[1];
    conv c = {.x = pk_f32(x), .w = pk_f32(w), .direction = 1};
    const pk_status bad = find(call, x, &call->out[0], w, &c);
    if (bad) return bad;
    run(call, &c);
    return PK_OK;
}

static pk_status row_conv_backward_x(const pk_call *call) {
    const pk_view *dy = &call->in[0], *w = &call->in[1];
    conv c = {.x = pk_f32(dy), .w = pk_f32(w), .direction = -1};
    const pk_status bad = find(call, dy, &call->out[0], w, &c);
    if (bad) return bad;
    run(call, &c);
    return PK_OK;
}

/* dw[j] = sum over t of x[t + j] dy[t]: columns in chunks of PK_ROW_CHUNK tokens, in order. */
static void weight_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const conv *k = context;
    (void)thread, (void)scratch;
    const int64_t strips = pk_ceil_div(k->d, 16);
    for (int64_t u = begin; u < end; u++) {
        const int64_t j = u / strips, i = u % strips * 16, c = pk_min_i64(16, k->d - i);
        pk_vec total = pk_zero(), sum = pk_zero();
        for (int64_t s = 0, t = 0; t < k->tokens; t++) {
            while (k->offsets[s + 1] <= t) s++;
            if (t % PK_ROW_CHUNK == 0) total = pk_add(total, sum), sum = pk_zero();
            if (t + j < k->offsets[s + 1])
                sum = pk_fma(pk_load_n(k->x + (t + j) * k->d + i, c),
                             pk_load_n(k->dy + t * k->d + i, c), sum);
        }
        pk_put(k->out + j * k->d + i, pk_add(total, sum), c, k->add);
    }
}

static pk_status row_conv_backward_w(const pk_call *call) {
    const pk_view *x = &call->in[0], *dy = &call->in[1];
    conv c = {.x = pk_f32(x), .dy = pk_f32(dy)};
    const pk_status bad = find(call, x, dy, &call->out[0], &c);
    if (bad) return bad;
    pk_parallel(call, c.size * pk_ceil_div(c.d, 16), 1, weight_task, &c);
    return PK_OK;
}

PK_OP(row_conv, {"row_conv.forward(x: f32, w: f32) -> (y: f32)", row_conv_forward},
      {"row_conv.backward_x(dy: f32, w: f32) -> (dx: f32)", row_conv_backward_x},
      {"row_conv.backward_w(x: f32, dy: f32) -> (dw: f32)", row_conv_backward_w});
