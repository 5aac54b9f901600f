/* dropout2d: a channel of a sample passes, times scale, where its random number lets it, else it is 0.
 *
 * The number belongs to (sample of the whole batch, channel), so neither the cut of the batch nor the
 * order of the pixels changes a mask.  The backward kernel is the same function of dy. */
#include "random.cuh"

namespace {
struct drop_some {
    float *out;
    const float *in;
    pk_random random;
    uint64_t start; /* the stream's element that the first channel is */
    int64_t inner;
    uint32_t threshold; /* below it: dropped */
    float scale;
    int add;
    PK_DEVICE void operator()(int64_t i) const {
        const uint32_t bits = pk_random_u32(&random, start + (uint64_t)(i / inner));
        pk_put(out + i, bits >= threshold ? in[i] * scale : 0.0f, add);
    }
};

/* x, y or dy, dx [rows, channels, ...]; attributes rate, upscale */
pk_status drop(const pk_call *call) {
    const pk_view *x = &call->in[0];
    const double rate = call->attr[0].f;
    if (!(rate >= 0.0 && rate < 1.0))
        return pk_fail(call, PK_BAD_SHAPE, -1, "rate %g is not in [0, 1)", rate);
    if (x->ndim < 2 || pk_count(x) != pk_count(&call->out[0]))
        return pk_fail(call, PK_BAD_SHAPE, -1, "input has %lld elements in %d dimensions, output %lld",
                       (long long)pk_count(x), (int)x->ndim, (long long)pk_count(&call->out[0]));
    return pk_each(call, pk_count(x),
                   drop_some{pk_f32(&call->out[0]), pk_f32(x), call->random,
                             (uint64_t)call->random.first * (uint64_t)x->dim[1], pk_inner(x, 2),
                             (uint32_t)(rate * 4294967296.0),
                             call->attr[1].i ? (float)(1.0 / (1.0 - rate)) : 1.0f, pk_adds(call, 0)});
}
} /* namespace */

PK_OP(dropout2d, {"dropout2d.forward(x: f32; rate: float, upscale: bool) -> (y: f32)", drop},
      {"dropout2d.backward(dy: f32; rate: float, upscale: bool) -> (dx: f32)", drop});
