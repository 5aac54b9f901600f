/* transpose: dimensions in another order.  Neighbours that stay together become one; then a plain
 * matrix transpose, whole rows, or single elements remain. */
#include "rows.cuh"

namespace {
struct order {
    int32_t n;
    int64_t dim[PK_MAX_DIM]; /* of y */
    int64_t step[PK_MAX_DIM]; /* elements of x from one index of that dimension to the next */
    PK_DEVICE int64_t from(int64_t i) const {
        int64_t at = 0;
        for (int32_t d = n - 1; d >= 0; d--) {
            at += i % dim[d] * step[d];
            i /= dim[d];
        }
        return at;
    }
};
template <class T> struct move {
    order o;
    T *y;
    const T *x;
    PK_DEVICE void operator()(int64_t i) const { y[i] = x[o.from(i)]; }
};
struct move_add {
    order o;
    float *y;
    const float *x;
    PK_DEVICE void operator()(int64_t i) const { y[i] += x[o.from(i)]; }
};

/* Neighbours that stay together become one. */
pk_status find(const pk_call *call, order *o) {
    const pk_view *x = &call->in[0], *y = &call->out[0];
    const int64_t *perm = call->attr[0].list;
    int64_t step[PK_MAX_DIM], size = 1;
    if (perm[0] != x->ndim || y->ndim != x->ndim || x->dtype != y->dtype)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld dimensions named, x has %d, y %d",
                       (long long)perm[0], (int)x->ndim, (int)y->ndim);
    for (int32_t d = x->ndim - 1; d >= 0; d--) step[d] = size, size *= x->dim[d];
    uint32_t seen = 0;
    int64_t before = -2;
    *o = order{};
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

template <class T> pk_status move_as(const pk_call *call, const order &o) {
    return pk_each(call, pk_count(&call->out[0]),
                   move<T>{o, (T *)call->out[0].data, (const T *)call->in[0].data});
}

pk_status transpose_forward(const pk_call *call) {
    order o;
    PK_TRY(find(call, &o));
    PK_TRY(pk_check_add(call, 0));
    if (pk_adds(call, 0))
        return pk_each(call, pk_count(&call->out[0]),
                       move_add{o, pk_f32(&call->out[0]), pk_f32(&call->in[0])});
    switch (pk_element_bytes(call->in[0].dtype)) {
    case 8: return move_as<uint64_t>(call, o);
    case 4: return move_as<uint32_t>(call, o);
    case 2: return move_as<uint16_t>(call, o);
    default: return move_as<uint8_t>(call, o);
    }
}
} /* namespace */

PK_OP(transpose, {"transpose.forward(x: any; perm: list) -> (y: any)", transpose_forward});
