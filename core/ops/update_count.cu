/* update_count: an optimizer's count of updates, raised by one. */
#include "pk_cuda.cuh"

namespace {
struct raise {
    int64_t *out;
    const int64_t *in;
    PK_DEVICE void operator()(int64_t) const { *out = *in + 1; }
};

/* count [1] -> count_out [1], the same memory */
pk_status forward(const pk_call *call) {
    if (pk_count(&call->in[0]) != 1 || pk_count(&call->out[0]) != 1)
        return pk_fail(call, PK_BAD_SHAPE, -1, "count has %lld elements, expected 1",
                       (long long)pk_count(&call->in[0]));
    return pk_each(call, 1, raise{pk_i64(&call->out[0]), pk_i64(&call->in[0])});
}
} /* namespace */

PK_OP(update_count, {"update_count.forward(count: i64) -> (count_out: i64)", forward});
