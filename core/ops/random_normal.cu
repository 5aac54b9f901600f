/* random_normal: normally distributed numbers, a row of them for each row of another tensor.
 *
 * pk_random.h's pairs, sixteen at a time.  The angle 2*pi*v is cut to an eighth of a turn while it
 * is still exact (v has 24 digits), so the result keeps float accuracy without double arithmetic.
 */
#include "random.cuh"

namespace {
struct draw {
    float *out;
    pk_random random;
    uint64_t start; /* element of the stream that out[0] is */
    int64_t n;
    float mean, std;
    int add;
    PK_DEVICE void operator()(int64_t block) const {
        uint32_t bits[4];
        const uint64_t first = start / 4 + (uint64_t)block;
        pk_random_block(&random, first, bits);
        float value[4];
        pk_normal(bits, value);
        pk_normal(bits + 2, value + 2);
        for (int lane = 0; lane < 4; lane++) {
            const int64_t i = (int64_t)(4 * first + (uint64_t)lane - start);
            if (i >= 0 && i < n) pk_put(out + i, fmaf(value[lane], std, mean), add);
        }
    }
};

/* like [rows, ..] any type, y [rows, shape]; attributes shape, mean, std */
pk_status forward(const pk_call *call) {
    const pk_view *y = &call->out[0];
    const uint64_t start = pk_random_start(call, y);
    const int64_t n = pk_count(y);
    return pk_each(call, pk_random_blocks(start, n),
                   draw{pk_f32(y), call->random, start, n, (float)call->attr[1].f,
                        (float)call->attr[2].f, pk_adds(call, 0)});
}
} /* namespace */

PK_OP(random_normal,
      {"random_normal.forward(like: any; shape: list, mean: float, std: float) -> (y: f32)",
       forward});
