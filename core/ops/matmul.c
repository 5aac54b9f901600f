/* matmul: one product, or one for each of equal leading dimensions. */
#include "products.h"

/* z[i] [m, n] = op(x[i]) [m, k] op(y[i]) [k, n] for i < batch; tx, ty: stored transposed. */
typedef struct shape {
    int64_t batch, m, k, n;
    int32_t tx, ty;
} shape;

static int64_t leading(const pk_view *v, int32_t n) {
    int64_t count = 1;
    for (int32_t i = 0; i < n; i++) count *= v->dim[i];
    return count;
}

/* attr: transpose_x, transpose_y, num_flatten_dims */
static pk_status find(const pk_call *call, const pk_view *x, const pk_view *y, const pk_view *z,
                      shape *s) {
    const int64_t kept = call->attr[2].i;
    *s = (shape){.batch = 1, .tx = call->attr[0].i != 0, .ty = call->attr[1].i != 0};
    if (y->ndim < 2 || x->ndim < 2 || kept >= x->ndim)
        return pk_fail(call, PK_BAD_SHAPE, -1, "x has %d dimensions, y %d", (int)x->ndim,
                       (int)y->ndim);
    const int64_t *yd = y->dim + y->ndim - 2, *xd = x->dim + x->ndim - 2;
    int64_t rows = yd[s->ty];
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

typedef struct batch {
    const pk_call *call;
    pk_product p;          /* the first one */
    int64_t a, b, c;       /* floats from one matrix to the next */
} batch;

static void batch_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const batch *t = context;
    (void)thread, (void)scratch;
    for (int64_t i = begin; i < end; i++) {
        pk_product p = t->p;
        p.a += i * t->a, p.b += i * t->b, p.c += i * t->c;
        pk_multiply(t->call, &p);
    }
}

/* c[i] [m, n] = a[i] [m, k] b[i] [k, n] into the output; ta, tb: stored the other way round. */
static pk_status multiply(const pk_call *call, int64_t count, int64_t m, int64_t n, int64_t k,
                          const float *a, int32_t ta, const float *b, int32_t tb) {
    pk_product p = {.m = m, .n = n, .k = k, .a_transposed = ta, .b_transposed = tb};
    p.a = a, p.b = b, p.c = pk_f32(&call->out[0]);
    p.a_stride = ta ? m : k, p.b_stride = tb ? k : n, p.c_stride = n;
    p.accumulate = pk_adds(call, 0);
    if (count == 1) {
        pk_multiply(call, &p);
        return PK_OK;
    }
    batch t = {call, p, m * k, k * n, m * n};
    pk_parallel(call, count, pk_max_i64(1, 65536 / pk_max_i64(1, m * n * k)), batch_task, &t);
    return PK_OK;
}

static pk_status matmul_forward(const pk_call *call) {
    const float *x = pk_f32(&call->in[0]), *y = pk_f32(&call->in[1]);
    shape s;
    const pk_status bad = find(call, &call->in[0], &call->in[1], &call->out[0], &s);
    return bad ? bad : multiply(call, s.batch, s.m, s.n, s.k, x, s.tx, y, s.ty);
}

/* dx = dz op(y)^T, or its transpose op(y) dz^T where x is stored transposed */
static pk_status matmul_backward_x(const pk_call *call) {
    const float *dz = pk_f32(&call->in[0]), *y = pk_f32(&call->in[1]);
    shape s;
    const pk_status bad = find(call, &call->out[0], &call->in[1], &call->in[0], &s);
    if (bad) return bad;
    if (s.tx) return multiply(call, s.batch, s.k, s.m, s.n, y, s.ty, dz, 1);
    return multiply(call, s.batch, s.m, s.k, s.n, dz, 0, y, !s.ty);
}

/* dy = op(x)^T dz, or its transpose dz^T op(x) where y is stored transposed */
static pk_status matmul_backward_y(const pk_call *call) {
    const float *x = pk_f32(&call->in[0]), *dz = pk_f32(&call->in[1]);
    shape s;
    const pk_status bad = find(call, &call->in[0], &call->out[0], &call->in[1], &s);
    if (bad) return bad;
    if (s.ty) return multiply(call, s.batch, s.n, s.k, s.m, dz, 1, x, s.tx);
    return multiply(call, s.batch, s.k, s.n, s.m, x, !s.tx, dz, 0);
}

/* The attributes of all three. */
#define ATTRS "transpose_x: bool, transpose_y: bool, num_flatten_dims: int"
PK_OP(matmul, {"matmul.forward(x: f32, y: f32; " ATTRS ") -> (z: f32)", matmul_forward},
      {"matmul.backward_x(dz: f32, y: f32; " ATTRS ") -> (dx: f32)", matmul_backward_x},
      {"matmul.backward_y(x: f32, dz: f32; " ATTRS ") -> (dy: f32)", matmul_backward_y});
