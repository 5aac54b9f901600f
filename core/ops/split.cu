/* split: a tensor cut into pieces along one dimension. */
#include "rows.cuh"

namespace {
/* x [outer, sum of sizes, inner] -> ys [outer, size, inner].  attr: axis, sizes */
pk_status split_forward(const pk_call *call) {
    const pk_view *x = &call->in[0];
    const int64_t axis = call->attr[0].i < 0 ? call->attr[0].i + x->ndim : call->attr[0].i;
    const int64_t *sizes = call->attr[1].list;
    if (axis < 0 || axis >= x->ndim || sizes[0] != call->n_out)
        return pk_fail(
            call, PK_BAD_SHAPE, -1, "axis %lld of %d dimensions into %d pieces of %lld sizes",
            (long long)call->attr[0].i, (int)x->ndim, (int)call->n_out, (long long)sizes[0]);
    const int64_t size = pk_element_bytes(x->dtype), inner = pk_inner(x, (int32_t)axis + 1) * size,
                  row = x->dim[axis] * inner;
    int64_t outer = 1, sum = 0;
    for (int64_t d = 0; d < axis; d++) outer *= x->dim[d];
    for (int32_t i = 0; i < call->n_out; i++) {
        const pk_view *y = &call->out[i];
        PK_TRY(pk_check_add(call, i));
        sum += sizes[1 + i];
        if (y->dtype != x->dtype || pk_count(y) * size != outer * sizes[1 + i] * inner)
            return pk_fail(call, PK_BAD_SHAPE, -1, "piece %d has %lld elements", (int)i,
                           (long long)pk_count(y));
    }
    if (sum != x->dim[axis])
        return pk_fail(call, PK_BAD_SHAPE, -1, "the pieces have %lld along axis %lld, x %lld",
                       (long long)sum, (long long)axis, (long long)x->dim[axis]);
    const char *at = (const char *)x->data;
    for (int32_t i = 0; i < call->n_out; i++) {
        const int64_t bytes = sizes[1 + i] * inner;
        PK_TRY(pk_move_rows(call, call->out[i].data, bytes, at, row, outer, bytes, size,
                            pk_adds(call, i)));
        at += bytes;
    }
    return PK_OK;
}
} /* namespace */

PK_OP(split, {"split.forward(x: any; axis: int, sizes: list) -> (ys*: any)", split_forward});
