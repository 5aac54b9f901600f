/* dropout: y = x*scale where a random number lets it pass, else 0.
 *
 * Nothing is stored: the backward kernel has the same stream and draws the same numbers, so it is
 * the same function of dy. */
#include "random.cuh"

namespace {
struct drop_some {
    float *out;
    const float *in;
    pk_random random;
    uint64_t start; /* element of the stream that in[0] is */
    int64_t n;
    uint32_t threshold; /* below it: dropped */
    float scale;
    int add;
    /* Four elements of the stream come together. */
    PK_DEVICE void operator()(int64_t block) const {
        uint32_t bits[4];
        const uint64_t first = start / 4 + (uint64_t)block;
        pk_random_block(&random, first, bits);
        for (int lane = 0; lane < 4; lane++) {
            const int64_t i = (int64_t)(4 * first + (uint64_t)lane - start);
            if (i >= 0 && i < n)
                pk_put(out + i, bits[lane] >= threshold ? in[i] * scale : 0.0f, add);
        }
    }
};

/* x, y or dy, dx: any equal shape; attributes rate, upscale */
pk_status drop(const pk_call *call) {
    const double rate = call->attr[0].f;
    if (!(rate >= 0.0 && rate < 1.0))
        return pk_fail(call, PK_BAD_SHAPE, -1, "rate %g is not in [0, 1)", rate);
    const int64_t n = pk_count(&call->out[0]);
    if (pk_count(&call->in[0]) != n)
        return pk_fail(call, PK_BAD_SHAPE, -1, "input has %lld elements, output %lld",
                       (long long)pk_count(&call->in[0]), (long long)n);
    const uint64_t start = pk_random_start(call, &call->in[0]);
    return pk_each(call, pk_random_blocks(start, n),
                   drop_some{pk_f32(&call->out[0]), pk_f32(&call->in[0]), call->random, start, n,
                             (uint32_t)(rate * 4294967296.0),
                             call->attr[1].i ? (float)(1.0 / (1.0 - rate)) : 1.0f,
                             pk_adds(call, 0)});
}
} /* namespace */

PK_OP(dropout, {"dropout.forward(x: f32; rate: float, upscale: bool) -> (y: f32)", drop},
      {"dropout.backward(dy: f32; rate: float, upscale: bool) -> (dx: f32)", drop});
