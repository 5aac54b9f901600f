/* sum: several tensors of one shape, added in their order. */
#include "pk_cuda.cuh"

namespace {
/* Up to MOST tensors of a launch; later launches add. */
const int MOST = 16;
struct add_up {
    float *out;
    const float *in[MOST];
    int count, add;
    PK_DEVICE void operator()(int64_t i) const {
        float v = in[0][i];
        for (int j = 1; j < count; j++) v += in[j][i];
        pk_put(out + i, v, add);
    }
};

pk_status sum_forward(const pk_call *call) {
    const int64_t n = pk_count(&call->out[0]);
    if (call->n_in < 1) return pk_fail(call, PK_BAD_SHAPE, -1, "needs at least one tensor");
    for (int32_t i = 0; i < call->n_in; i++)
        if (pk_count(&call->in[i]) != n)
            return pk_fail(call, PK_BAD_SHAPE, -1, "input %d has %lld elements, the output %lld",
                           (int)i, (long long)pk_count(&call->in[i]), (long long)n);
    for (int32_t first = 0; first < call->n_in; first += MOST) {
        add_up s = {pk_f32(&call->out[0]), {}, 0, first > 0 || pk_adds(call, 0)};
        for (; s.count < MOST && first + s.count < call->n_in; s.count++)
            s.in[s.count] = pk_f32(&call->in[first + s.count]);
        PK_TRY(pk_each(call, n, s));
    }
    return PK_OK;
}
} /* namespace */

PK_OP(sum, {"sum.forward(xs*: f32) -> (y: f32)", sum_forward});
