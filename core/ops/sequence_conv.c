/* sequence_conv: y[t] = act(sum over j of x[t + start + j] w_j + b) inside each sequence, and its
 * gradients (through the activation is the activation's own kernel).
 *
 * The rows that a token reads lie one after the other: they are one row of a product, and rows
 * overlap (windows.h).  Nothing is copied side by side and nothing padded. */
#include "elementwise.h"
#include "sequence_window.h"

/* Adding an activated result: a piece of a row at a time, in scratch. */
#define ADD_COLUMNS 4096
typedef struct add_result {
    const pk_conv_windows *c;
    pk_product p;
} add_result;
static void add_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const add_result *t = context;
    (void)thread;
    float *row = scratch;
    for (int64_t r = begin; r < end; r++)
        for (int64_t j = 0; j < t->p.n; j += ADD_COLUMNS) {
            pk_windows here = t->c->windows;
            here.row = r;
            pk_product p = t->p;
            p.m = 1, p.n = pk_min_i64(ADD_COLUMNS, t->p.n - j), p.b += j, p.c = row;
            p.windows = &here, p.bias = p.bias ? p.bias + j : NULL;
            pk_multiply(t->c->call, &p);
            float *out = t->p.c + r * t->p.n + j;
            PK_FOR16(i, n, p.n) pk_put(out + i, pk_load_n(row + i, n), n, 1);
        }
}

static pk_status sequence_conv_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *w = &call->in[1], *b = &call->in[2];
    pk_conv_windows c;
    const pk_status bad = pk_find_conv(call, x, w, &call->out[0], &c);
    if (bad) return bad;
    if (b->data && pk_count(b) != c.m)
        return pk_fail(call, PK_BAD_SHAPE, -1, "b has %lld elements, w has %lld columns",
                       (long long)pk_count(b), (long long)c.m);
    pk_product p = {.m = c.tokens, .n = c.m, .k = c.size * c.d, .windows = &c.windows};
    p.a = pk_f32(x), p.a_stride = c.d, p.b = pk_f32(w), p.b_stride = c.m;
    p.c = pk_f32(&call->out[0]), p.c_stride = c.m;
    p.bias = pk_f32(b), p.activation = (int32_t)call->attr[2].i;
    if (pk_adds(call, 0)) {
        add_result t = {&c, p};
        pk_parallel(call, c.tokens, 16, add_task, &t);
    } else {
        pk_multiply(call, &p);
    }
    return PK_OK;
}

/* dx[t] = sum over j of dy[t - start - j] w_j^T: one product for each j. */
static pk_status sequence_conv_backward_x(const pk_call *call) {
    const pk_view *dy = &call->in[0], *w = &call->in[1], *dx = &call->out[0];
    pk_conv_windows c;
    const pk_status bad = pk_find_conv(call, dx, w, dy, &c);
    if (bad) return bad;
    const int64_t start = c.windows.first;
    for (int64_t j = 0; j < c.size; j++) {
        c.windows.first = -(start + j);
        pk_product p = {.m = c.tokens, .n = c.d, .k = c.m, .windows = &c.windows};
        p.a = pk_f32(dy), p.a_stride = c.m;
        p.b = pk_f32(w) + j * c.d * c.m, p.b_stride = c.m, p.b_transposed = 1;
        p.c = pk_f32(dx), p.c_stride = c.d, p.accumulate = j > 0 || pk_adds(call, 0);
        pk_multiply(call, &p);
    }
    return PK_OK;
}

/* dw [size*d, m] = sum over t of the window of t as a column, times dy[t]. */
static pk_status sequence_conv_backward_w(const pk_call *call) {
    const pk_view *x = &call->in[0], *dy = &call->in[1], *dw = &call->out[0];
    pk_conv_windows c;
    const pk_status bad = pk_find_conv(call, x, dw, dy, &c);
    if (bad) return bad;
    pk_product p = {.m = c.size * c.d, .n = c.m, .k = c.tokens, .windows = &c.windows};
    p.a = pk_f32(x), p.a_stride = c.d, p.a_transposed = 1;
    p.b = pk_f32(dy), p.b_stride = c.m;
    p.c = pk_f32(dw), p.c_stride = c.m, p.accumulate = pk_adds(call, 0);
    pk_multiply(call, &p);
    return PK_OK;
}

PK_OP(sequence_conv,
      {"sequence_conv.forward(x: f32, w: f32, b?: f32; size: int, start: int, activation: int) -> "
       "(y: f32)",
       sequence_conv_forward},
      {"sequence_conv.backward_x(dy: f32, w: f32; size: int, start: int) -> (dx: f32)",
       sequence_conv_backward_x},
      {"sequence_conv.backward_w(x: f32, dy: f32; size: int, start: int) -> (dw: f32)",
       sequence_conv_backward_w});
