/* random_uniform: numbers spread evenly over [low, high), a row of them for each row of another
 * tensor. */
#include "random.cuh"

namespace {
struct draw {
    float *out;
    pk_random random;
    uint64_t start; /* element of the stream that out[0] is */
    int64_t n;
    float low, range;
    int add;
    PK_DEVICE void operator()(int64_t block) const {
        uint32_t bits[4];
        const uint64_t first = start / 4 + (uint64_t)block;
        pk_random_block(&random, first, bits);

        for (int lane = 0; lane < 4; lane++) {
            const int64_t i = (int64_t)(4 * first + (uint64_t)lane - start);
            if (i >= 0 && i < n) pk_put(out + i, low + range * pk_uniform(bits[lane]), add);
        }
    }
};

/* like [rows, ..] any type, y [rows, shape]; attributes shape, low, high */
pk_status forward(const pk_call *call) {
    const pk_view *y = &call->out[0];
    const uint64_t start = pk_random_start(call, y);
    const int64_t n = pk_count(y);
    return pk_each(call, pk_random_blocks(start, n),
                   draw{pk_f32(y), call->random, start, n, (float)call->attr[1].f,
                        (float)(call->attr[2].f - call->attr[1].f), pk_adds(call, 0)});
}
} /* namespace */

PK_OP(random_uniform,
      {"random_uniform.forward(like: any; shape: list, low: float, high: float) -> (y: f32)",
       forward});
