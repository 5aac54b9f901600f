/* matmul: one product, or one for each of equal leading dimensions. */
#include "products.cuh"

namespace {
/* z[i] [m, n] = op(x[i]) [m, k] op(y[i]) [k, n] for i < batch; tx, ty: stored the other way round.
 */
struct shape {
    int64_t batch, m, k, n;
    int tx, ty;
};

int64_t leading(const pk_view *v, int32_t n) {
    int64_t count = 1;
    for (int32_t i = 0; i < n; i++) count *= v->dim[i];
    return count;
}

/* attr: transpose_x, transpose_y, num_flatten_dims */
pk_status find(const pk_call *call, const pk_view *x, const pk_view *y, const pk_view *z,
               shape *s) {
    const int64_t kept = call->attr[2].i;
    *s = shape{1, 0, 0, 0, call->attr[0].i != 0, call->attr[1].i != 0};
    if (y->ndim < 2 || x->ndim < 2 || kept >= x->ndim)
        return pk_fail(call, PK_BAD_SHAPE, -1, "x has %d dimensions, y %d", (int)x->ndim,
                       (int)y->ndim);
    const int64_t *yd = y->dim + y->ndim - 2, *xd = x->dim + x->ndim - 2;
    const int64_t rows = yd[s->ty];
    s->n = yd[!s->ty];
    if (kept > 0) {
        s->m = leading(x, (int32_t)kept);
        s->k = pk_inner(x, (int32_t)kept);
    } else if (y->ndim == 2 && !s->tx) {
        s->m = leading(x, x->ndim - 1);
        s->k = xd[1];
    } else {
        s->batch = leading(x, x->ndim - 2);
        s->m = xd[s->tx];
        s->k = xd[!s->tx];
        if (leading(y, y->ndim - 2) != s->batch)
            return pk_fail(call, PK_BAD_SHAPE, -1, "x holds %lld matrices, y %lld",
                           (long long)s->batch, (long long)leading(y, y->ndim - 2));
    }
    if (rows != s->k)
        return pk_fail(call, PK_BAD_SHAPE, -1, "y has %lld rows, x has %lld columns",
                       (long long)rows, (long long)s->k);
    if (pk_count(z) != s->batch * s->m * s->n)
        return pk_fail(call, PK_BAD_SHAPE, -1, "z has %lld elements, the product %lld",
                       (long long)pk_count(z), (long long)(s->batch * s->m * s->n));
    return PK_OK;
}

pk_status multiply(const pk_call *call, int64_t batch, int64_t m, int64_t n, int64_t k,
                   const pk_view *a, int ta, const pk_view *b, int tb) {
    return pk_multiply(call, batch, m, n, k, pk_f32(a), ta, pk_f32(b), tb, pk_f32(&call->out[0]),
                       NULL, PK_ACT_NONE, pk_adds(call, 0));
}

pk_status matmul_forward(const pk_call *call) {
    shape s;
    PK_TRY(find(call, &call->in[0], &call->in[1], &call->out[0], &s));
    return multiply(call, s.batch, s.m, s.n, s.k, &call->in[0], s.tx, &call->in[1], s.ty);
}

/* dx = dz op(y)^T, or its transpose op(y) dz^T where x is stored transposed */
pk_status matmul_backward_x(const pk_call *call) {
    const pk_view *dz = &call->in[0], *y = &call->in[1];
    shape s;
    PK_TRY(find(call, &call->out[0], y, dz, &s));
    if (!s.tx) return multiply(call, s.batch, s.m, s.k, s.n, dz, 0, y, !s.ty);
    return multiply(call, s.batch, s.k, s.m, s.n, y, s.ty, dz, 1);
}

/* dy = op(x)^T dz, or its transpose dz^T op(x) where y is stored transposed */
pk_status matmul_backward_y(const pk_call *call) {
    const pk_view *x = &call->in[0], *dz = &call->in[1];
    shape s;
    PK_TRY(find(call, x, &call->out[0], dz, &s));
    if (!s.ty) return multiply(call, s.batch, s.k, s.n, s.m, x, !s.tx, dz, 0);
    return multiply(call, s.batch, s.n, s.k, s.m, dz, 1, x, s.tx);
}
} /* namespace */

#define ATTRS "transpose_x: bool, transpose_y: bool, num_flatten_dims: int"
PK_OP(matmul, {"matmul.forward(x: f32, y: f32; " ATTRS ") -> (z: f32)", matmul_forward},
      {"matmul.backward_x(dz: f32, y: f32; " ATTRS ") -> (dx: f32)", matmul_backward_x},
      {"matmul.backward_y(x: f32, dz: f32; " ATTRS ") -> (dy: f32)", matmul_backward_y});
