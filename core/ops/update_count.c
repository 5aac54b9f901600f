/* update_count: an optimizer's count of updates, raised by one. */
#include "pk_kernel.h"

/* count [1] -> count_out [1], the same memory */
static pk_status forward(const pk_call *call) {
    if (pk_count(&call->in[0]) != 1 || pk_count(&call->out[0]) != 1)
        return pk_fail(call, PK_BAD_SHAPE, -1, "count has %lld elements, expected 1",
                       (long long)pk_count(&call->in[0]));
    *pk_i64(&call->out[0]) = *pk_i64(&call->in[0]) + 1;
    return PK_OK;
}

PK_OP(update_count, {"update_count.forward(count: i64) -> (count_out: i64)", forward});
