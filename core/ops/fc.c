/* fc: y = act(x w + b) in one pass over y, and its gradients (through the activation is the
 * activation's own kernel). */
#include "elementwise.h"
#include "products.h"
#include "reductions.h"

/* x [m, k], w [k, n], whatever leading dimensions x has: w and the size of x say the rest. */
static pk_status find(const pk_call *call, const pk_view *x, const pk_view *w, const pk_view *y,
                      int64_t *m) {
    const int64_t k = w->dim[0], n = w->dim[1];
    int64_t last = 1;
    int32_t d = x->ndim;
    while (d > 1 && last != k) last *= x->dim[--d];
    if (w->ndim != 2 || last != k)
        return pk_fail(call, PK_BAD_SHAPE, -1, "w has %lld rows, x has %lld in its last axes",
                       (long long)k, (long long)pk_inner(x, 1));
    *m = 1;
    for (int32_t i = 0; i < d; i++) *m *= x->dim[i];
    if (pk_count(y) != *m * n)
        return pk_fail(call, PK_BAD_SHAPE, -1, "y has %lld elements, %lld rows of %lld are %lld",
                       (long long)pk_count(y), (long long)*m, (long long)n, (long long)(*m * n));
    return PK_OK;
}

/* Adding an activated result, which is made before it is added: a piece of a row at a time, in scratch. */
#define ADD_COLUMNS 4096
typedef struct add_result {
    const pk_call *call;
    pk_product p;
} add_result;
static void add_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const add_result *t = context;
    (void)thread;
    float *row = scratch;
    for (int64_t r = begin; r < end; r++)
        for (int64_t j = 0; j < t->p.n; j += ADD_COLUMNS) {
            pk_product p = t->p;
            p.m = 1, p.n = pk_min_i64(ADD_COLUMNS, t->p.n - j), p.a += r * p.a_stride, p.b += j,
            p.c = row;
            p.bias = p.bias ? p.bias + j : NULL;
            pk_multiply(t->call, &p);
            float *out = t->p.c + r * t->p.c_stride + j;
            PK_FOR16(i, c, p.n) pk_put(out + i, pk_load_n(row + i, c), c, 1);
        }
}

static pk_status fc_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *w = &call->in[1], *b = &call->in[2];
    int64_t m = 0;
    const pk_status bad = find(call, x, w, &call->out[0], &m);
    if (bad) return bad;
    if (b->data && pk_count(b) != w->dim[1])
        return pk_fail(call, PK_BAD_SHAPE, -1, "b has %lld elements, w has %lld columns",
                       (long long)pk_count(b), (long long)w->dim[1]);
    add_result t = {.call = call, .p = {.m = m, .n = w->dim[1], .k = w->dim[0]}};
    t.p.a = pk_f32(x), t.p.a_stride = t.p.k;
    t.p.b = pk_f32(w), t.p.b_stride = t.p.n;
    t.p.c = pk_f32(&call->out[0]), t.p.c_stride = t.p.n;
    t.p.bias = pk_f32(b), t.p.activation = (int32_t)call->attr[1].i;
    t.p.accumulate = pk_adds(call, 0) && t.p.activation == PK_ACT_NONE;
    if (pk_adds(call, 0) && !t.p.accumulate) pk_parallel(call, m, 16, add_task, &t);
    else pk_multiply(call, &t.p);
    return PK_OK;
}

/* dx [m, k] = dy [m, n] w^T */
static pk_status fc_backward_x(const pk_call *call) {
    const pk_view *dy = &call->in[0], *w = &call->in[1], *dx = &call->out[0];
    int64_t m = 0;
    const pk_status bad = find(call, dx, w, dy, &m);
    if (bad) return bad;
    pk_product p = {.m = m, .n = w->dim[0], .k = w->dim[1], .b_transposed = 1};
    p.a = pk_f32(dy), p.a_stride = p.k;
    p.b = pk_f32(w), p.b_stride = p.k;
    p.c = pk_f32(dx), p.c_stride = p.n, p.accumulate = pk_adds(call, 0);
    pk_multiply(call, &p);
    return PK_OK;
}

/* dw [k, n] = x^T dy */
static pk_status fc_backward_w(const pk_call *call) {
    const pk_view *x = &call->in[0], *dy = &call->in[1], *dw = &call->out[0];
    int64_t m = 0;
    const pk_status bad = find(call, x, dw, dy, &m);
    if (bad) return bad;
    pk_product p = {.m = dw->dim[0], .n = dw->dim[1], .k = m, .a_transposed = 1};
    p.a = pk_f32(x), p.a_stride = p.m;
    p.b = pk_f32(dy), p.b_stride = p.n;
    p.c = pk_f32(dw), p.c_stride = p.n, p.accumulate = pk_adds(call, 0);
    pk_multiply(call, &p);
    return PK_OK;
}

/* The same, and db [n] = sum of dy's rows */
static pk_status fc_backward_wb(const pk_call *call) {
    const pk_view *dy = &call->in[1], *db = &call->out[1];
    const pk_status bad = fc_backward_w(call);
    if (bad) return bad;
    const int64_t n = call->out[0].dim[1];
    if (pk_count(db) != n)
        return pk_fail(call, PK_BAD_SHAPE, -1, "db has %lld elements, dw has %lld columns",
                       (long long)pk_count(db), (long long)n);
    if (n > 0)
        pk_sum_columns(call, pk_f32(dy), n, pk_count(dy) / n, n, pk_adds(call, 1), pk_f32(db));
    return PK_OK;
}

PK_OP(fc,
      {"fc.forward(x: f32, w: f32, b?: f32; num_flatten_dims: int, activation: int) -> (y: f32)",
       fc_forward},
      {"fc.backward_x(dy: f32, w: f32) -> (dx: f32)", fc_backward_x},
      {"fc.backward_w(x: f32, dy: f32) -> (dw: f32)", fc_backward_w},
      {"fc.backward_wb(x: f32, dy: f32) -> (dw: f32, db: f32)", fc_backward_wb});
