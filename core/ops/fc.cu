/* fc: y = act(x w + b), and its gradients (through the activation is the activation's own kernel).
 */
#include "products.cuh"
#include "reductions.cuh"

namespace {
/* x [m, k], w [k, n], whatever leading dimensions x has: w and the size of x say the rest. */
pk_status find(const pk_call *call, const pk_view *x, const pk_view *w, const pk_view *y,
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

pk_status forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *w = &call->in[1], *b = &call->in[2];
    int64_t m;
    PK_TRY(find(call, x, w, &call->out[0], &m));
    if (b->data && pk_count(b) != w->dim[1])
        return pk_fail(call, PK_BAD_SHAPE, -1, "b has %lld elements, w has %lld columns",
                       (long long)pk_count(b), (long long)w->dim[1]);
    return pk_multiply(call, 1, m, w->dim[1], w->dim[0], pk_f32(x), 0, pk_f32(w), 0,
                       pk_f32(&call->out[0]), pk_f32(b), (int)call->attr[1].i, pk_adds(call, 0));
}

/* dx [m, k] = dy [m, n] w^T */
pk_status backward_x(const pk_call *call) {
    const pk_view *dy = &call->in[0], *w = &call->in[1], *dx = &call->out[0];
    int64_t m;
    PK_TRY(find(call, dx, w, dy, &m));
    return pk_multiply(call, 1, m, w->dim[0], w->dim[1], pk_f32(dy), 0, pk_f32(w), 1, pk_f32(dx),
                       NULL, PK_ACT_NONE, pk_adds(call, 0));
}

/* dw [k, n] = x^T dy */
pk_status backward_w(const pk_call *call) {
    const pk_view *x = &call->in[0], *dy = &call->in[1], *dw = &call->out[0];
    int64_t m;
    PK_TRY(find(call, x, dw, dy, &m));
    return pk_multiply(call, 1, dw->dim[0], dw->dim[1], m, pk_f32(x), 1, pk_f32(dy), 0, pk_f32(dw),
                       NULL, PK_ACT_NONE, pk_adds(call, 0));
}

/* The same, and db [n] = sum of dy's rows */
pk_status backward_wb(const pk_call *call) {
    const pk_view *dy = &call->in[1], *db = &call->out[1];
    PK_TRY(backward_w(call));
    const int64_t n = call->out[0].dim[1];
    if (pk_count(db) != n)
        return pk_fail(call, PK_BAD_SHAPE, -1, "db has %lld elements, dw has %lld columns",
                       (long long)pk_count(db), (long long)n);
    if (n == 0) return PK_OK;
    const int64_t dim[2] = {pk_count(dy) / n, n};
    return pk_sum_dims(call, pk_f32(db), pk_f32(dy), 2, dim, 1u, 1.0f, pk_adds(call, 1));
}
}

PK_OP(fc,
      {"fc.forward(x: f32, w: f32, b?: f32; num_flatten_dims: int, activation: int) -> (y: f32)",
       forward},
      {"fc.backward_x(dy: f32, w: f32) -> (dx: f32)", backward_x},
      {"fc.backward_w(x: f32, dy: f32) -> (dw: f32)", backward_w},
      {"fc.backward_wb(x: f32, dy: f32) -> (dw: f32, db: f32)", backward_wb});
