/* gather_rows: rows by index, and the sum that is its gradient. */
#include "sort.cuh"

namespace {
/* large [height, ...], index [n], small [n, ...] */
pk_status check(const pk_call *call, const pk_view *large, const pk_view *index,
                const pk_view *small) {
    if (pk_count(small) != pk_count(index) * pk_inner(large, 1) || small->dtype != large->dtype)
        return pk_fail(
            call, PK_BAD_SHAPE, -1, "%lld indices of rows of %lld give %lld elements, not %lld",
            (long long)pk_count(index), (long long)pk_inner(large, 1),
            (long long)(pk_count(index) * pk_inner(large, 1)), (long long)pk_count(small));
    return pk_check_index(call, pk_i64(index), pk_count(index), large->dim[0], INT64_MIN, 1,
                          "index is %lld, must be below %lld");
}

pk_status gather_rows_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *index = &call->in[1], *y = &call->out[0];
    PK_TRY(check(call, x, index, y));
    PK_TRY(pk_check_add(call, 0));
    return pk_gather_rows(call, y->data, x->data, pk_i64(index), pk_count(index), pk_inner(x, 1),
                          pk_element_bytes(x->dtype), INT64_MIN, pk_adds(call, 0));
}

pk_status gather_rows_backward(const pk_call *call) {
    const pk_view *index = &call->in[0], *dy = &call->in[1], *dx = &call->out[0];
    PK_TRY(check(call, dx, index, dy));
    return pk_add_rows(call, pk_f32(dx), dx->dim[0], pk_f32(dy), pk_i64(index), pk_count(index),
                       pk_inner(dx, 1), INT64_MIN, pk_adds(call, 0));
}
} /* namespace */

PK_OP(gather_rows, {"gather_rows.forward(x: any, index: i64) -> (y: any)", gather_rows_forward},
      {"gather_rows.backward(index: i64, dy: f32) -> (dx: f32)", gather_rows_backward});
