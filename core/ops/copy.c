/* copy: the same values in another buffer. */
#include "rows.h"

static pk_status copy_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *y = &call->out[0];
    const int64_t bytes = pk_count(x) * pk_element_bytes(x->dtype);
    if (x->dtype != y->dtype || pk_count(x) != pk_count(y))
        return pk_fail(call, PK_BAD_SHAPE, -1, "x has %lld elements, y %lld, or their types differ",
                       (long long)pk_count(x), (long long)pk_count(y));
    const pk_status bad = pk_check_add(call, 0);
    if (bad) return bad;
    pk_move_rows(call, y->data, bytes, x->data, bytes, 1, bytes, pk_adds(call, 0));
    return PK_OK;
}

PK_OP(copy, {"copy.forward(x: any) -> (y: any)", copy_forward});
