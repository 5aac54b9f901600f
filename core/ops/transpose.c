/* transpose: dimensions in another order.  Neighbours that stay together become one; then a plain
 * matrix transpose, whole rows, or single elements remain. */
#include <string.h>

#include "packing.h"
#include "rows.h"

typedef struct order {
    int32_t n;
    int64_t dim[PK_MAX_DIM];    /* of y */
    int64_t step[PK_MAX_DIM];   /* elements of x from one index of that dimension to the next */
    int64_t size;               /* bytes of an element */
    const char *x;
    char *y;
    int add;
} order;

static pk_status find(const pk_call *call, order *o) {
    const pk_view *x = &call->in[0], *y = &call->out[0];
    const int64_t *perm = call->attr[0].list;
    int64_t step[PK_MAX_DIM], size = 1;
    if (perm[0] != x->ndim || y->ndim != x->ndim || x->dtype != y->dtype)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld dimensions named, x has %d, y %d",
                       (long long)perm[0], (int)x->ndim, (int)y->ndim);
    for (int32_t d = x->ndim - 1; d >= 0; d--) step[d] = size, size *= x->dim[d];
    uint32_t seen = 0;
    int64_t before = -2;
    *o = (order){
        .size = pk_element_bytes(x->dtype), .x = x->data, .y = y->data, .add = pk_adds(call, 0)};
    for (int32_t d = 0; d < y->ndim; d++) {
        const int64_t p = perm[1 + d];
        if (p < 0 || p >= x->ndim || (seen >> p & 1u) || y->dim[d] != x->dim[p])
            return pk_fail(call, PK_BAD_SHAPE, -1,
                           "dimension %lld of x cannot be dimension %d of y", (long long)p, (int)d);
        seen |= 1u << p;
        if (p == before + 1) {
            o->dim[o->n - 1] *= y->dim[d];
            o->step[o->n - 1] = step[p];
        } else {
            o->dim[o->n] = y->dim[d];
            o->step[o->n++] = step[p];
        }
        before = p;
    }
    return PK_OK;
}

/* Where row `row` of y (all dimensions but the last one) begins in x, in elements. */
static int64_t row_start(const order *o, int64_t row) {
    int64_t at = 0;
    for (int32_t i = o->n - 2; i >= 0; i--) {
        at += row % o->dim[i] * o->step[i];
        row /= o->dim[i];
    }
    return at;
}

static void row_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const order *o = context;
    (void)thread, (void)scratch;
    const int64_t n = o->dim[o->n - 1], step = o->step[o->n - 1];
    for (int64_t row = begin; row < end; row++) {
        const char *x = o->x + row_start(o, row) * o->size;
        char *y = o->y + row * n * o->size;
        if (o->add) {
            for (int64_t i = 0; i < n; i++) ((float *)y)[i] += ((const float *)x)[i * step];
        } else if (step == 1) {
            memcpy(y, x, (size_t)(n * o->size));
        } else if (o->size == 4) {
            for (int64_t i = 0; i < n; i++) ((uint32_t *)y)[i] = ((const uint32_t *)x)[i * step];
        } else {
            for (int64_t i = 0; i < n; i++)
                memcpy(y + i * o->size, x + i * step * o->size, (size_t)o->size);
        }
    }
}

static pk_status transpose_forward(const pk_call *call) {
    order o;
    pk_status bad = find(call, &o);
    if (!bad) bad = pk_check_add(call, 0);
    if (bad) return bad;
    const int64_t total = pk_count(&call->out[0]);
    if (total == 0) return PK_OK;
    const int32_t last = o.n - 1;
    /* y [.., c, r] from x [.., r, c] of floats: the blocked transpose, matrix by matrix */
    const int matrix = last >= 1 && last <= 2 && o.size == 4 && !o.add && o.step[last - 1] == 1 &&
                       o.step[last] == o.dim[last - 1] &&
                       (last == 1 || o.step[0] == o.dim[1] * o.dim[2]);
    if (matrix) {
        const int64_t rows = o.dim[last], columns = o.dim[last - 1],
                      count = last == 2 ? o.dim[0] : 1;
        for (int64_t i = 0; i < count; i++)
            pk_transpose(call, (const float *)o.x + i * rows * columns, columns, rows, columns,
                         (float *)o.y + i * rows * columns, rows);
        return PK_OK;
    }
    pk_parallel(call, total / o.dim[last], pk_max_i64(1, 16384 / o.dim[last]), row_task, &o);
    return PK_OK;
}

PK_OP(transpose, {"transpose.forward(x: any; perm: list) -> (y: any)", transpose_forward});
