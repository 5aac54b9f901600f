/* concat: tensors side by side along one dimension, and the cut that is its gradient. */
#include "rows.cuh"

namespace {
/* whole [outer, sum of sizes, inner] and parts [outer, size, inner] */
pk_status move_parts(const pk_call *call, const pk_view *whole, const pk_view *parts, int32_t count,
                     int back) {
    const int64_t axis = call->attr[0].i < 0 ? call->attr[0].i + whole->ndim : call->attr[0].i;
    if (axis < 0 || axis >= whole->ndim)
        return pk_fail(call, PK_BAD_SHAPE, -1, "axis %lld of %d dimensions",
                       (long long)call->attr[0].i, (int)whole->ndim);
    const int64_t size = pk_element_bytes(whole->dtype),
                  row = pk_inner(whole, (int32_t)axis) * size;
    const int64_t inner = pk_inner(whole, (int32_t)axis + 1) * size;
    int64_t outer = 1, sum = 0;
    for (int64_t d = 0; d < axis; d++) outer *= whole->dim[d];
    for (int32_t i = 0; i < count; i++) {
        sum += parts[i].ndim > axis ? parts[i].dim[axis] : 0;
        if (parts[i].ndim != whole->ndim || parts[i].dtype != whole->dtype ||
            pk_count(&parts[i]) * size != outer * parts[i].dim[axis] * inner)
            return pk_fail(call, PK_BAD_SHAPE, -1, "part %d does not fit along axis %lld", (int)i,
                           (long long)axis);
    }
    if (sum != whole->dim[axis])
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "the parts have %lld along axis %lld, the whole %lld", (long long)sum,
                       (long long)axis, (long long)whole->dim[axis]);
    char *at = (char *)whole->data;
    for (int32_t i = 0; i < count; i++) {
        const int64_t bytes = parts[i].dim[axis] * inner;
        PK_TRY(back ? pk_move_rows(call, parts[i].data, bytes, at, row, outer, bytes, size,
                                   pk_adds(call, i))
                    : pk_move_rows(call, at, row, parts[i].data, bytes, outer, bytes, size,
                                   pk_adds(call, 0)));
        at += bytes;
    }
    return PK_OK;
}

pk_status concat_forward(const pk_call *call) {
    PK_TRY(pk_check_add(call, 0));
    return move_parts(call, &call->out[0], call->in, call->n_in, 0);
}
pk_status concat_backward(const pk_call *call) {
    for (int32_t i = 0; i < call->n_out; i++) PK_TRY(pk_check_add(call, i));
    return move_parts(call, &call->in[0], call->out, call->n_out, 1);
}
} /* namespace */

PK_OP(concat, {"concat.forward(xs*: any; axis: int) -> (y: any)", concat_forward},
      {"concat.backward(dy: any; axis: int) -> (dxs*: any)", concat_backward});
