/* gather_rows: rows by index, and the sum that is its gradient. */
#include "rows.h"

/* large [height, ...], index [n], small [n, ...] */
static pk_status check(const pk_call *call, const pk_view *large, const pk_view *index,
                       const pk_view *small) {
    if (pk_count(small) != pk_count(index) * pk_inner(large, 1) || small->dtype != large->dtype)
        return pk_fail(
            call, PK_BAD_SHAPE, -1, "%lld indices of rows of %lld give %lld elements, not %lld",
            (long long)pk_count(index), (long long)pk_inner(large, 1),
            (long long)(pk_count(index) * pk_inner(large, 1)), (long long)pk_count(small));
    return pk_check_index(call, pk_i64(index), pk_count(index), large->dim[0], INT64_MIN, "index");
}

static pk_status gather_rows_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *index = &call->in[1], *y = &call->out[0];
    pk_status bad = check(call, x, index, y);
    if (!bad) bad = pk_check_add(call, 0);
    if (bad) return bad;
    pk_gather_rows(call, y->data, x->data, pk_i64(index), pk_count(index),
                   pk_inner(x, 1) * pk_element_bytes(x->dtype), INT64_MIN, pk_adds(call, 0));
    return PK_OK;
}

static pk_status gather_rows_backward(const pk_call *call) {
    const pk_view *index = &call->in[0], *dy = &call->in[1], *dx = &call->out[0];
    const pk_status bad = check(call, dx, index, dy);
    if (bad) return bad;
    pk_add_rows(call, pk_f32(dx), dx->dim[0], pk_f32(dy), pk_i64(index), pk_count(index),
                pk_inner(dx, 1), INT64_MIN, pk_adds(call, 0));
    return PK_OK;
}

PK_OP(gather_rows, {"gather_rows.forward(x: any, index: i64) -> (y: any)", gather_rows_forward},
      {"gather_rows.backward(index: i64, dy: f32) -> (dx: f32)", gather_rows_backward});
