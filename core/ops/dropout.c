/* dropout: y = x*scale where a random number lets it pass, else 0.
 *
 * Nothing is stored: the backward kernel has the same stream and draws the same numbers, so it is the same function of dy. */
#include "random_rows.h"

typedef struct task_data {
    float *out;
    const float *in;
    pk_random random;
    uint64_t start;
    int64_t count;
    uint32_t threshold;   /* below it: dropped */
    float scale;
    int add;
} task_data;

static void drop_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const task_data k = *(const task_data *)context;
    uint32_t bits[RANDOM_PIECE];
    for (int64_t piece = begin; piece < end; piece++) {
        const int64_t first = piece * RANDOM_PIECE, n = pk_min_i64(RANDOM_PIECE, k.count - first);
        const float *in = k.in + first;
        float *out = k.out + first;
        random_bits(&k.random, k.start + (uint64_t)first, n, bits);
        if (k.add)
            for (int64_t i = 0; i < n; i++) out[i] += bits[i] >= k.threshold ? in[i] * k.scale : 0.0f;
        else
            for (int64_t i = 0; i < n; i++) out[i] = bits[i] >= k.threshold ? in[i] * k.scale : 0.0f;
    }
}

/* x, y or dy, dx: any equal shape; attributes rate, upscale */
static pk_status drop(const pk_call *call) {
    const double rate = call->attr[0].f;
    if (!(rate >= 0.0 && rate < 1.0))
        return pk_fail(call, PK_BAD_SHAPE, -1, "rate %g is not in [0, 1)", rate);
    const int64_t n = pk_count(&call->out[0]);
    if (pk_count(&call->in[0]) != n)
        return pk_fail(call, PK_BAD_SHAPE, -1, "input has %lld elements, output %lld",
                       (long long)pk_count(&call->in[0]), (long long)n);
    task_data k = {pk_f32(&call->out[0]), pk_f32(&call->in[0]), call->random, random_start(call, &call->in[0]), n,
                   (uint32_t)(rate * 4294967296.0), call->attr[1].i ? (float)(1.0 / (1.0 - rate)) : 1.0f,
                   pk_adds(call, 0)};
    pk_parallel(call, pk_ceil_div(n, RANDOM_PIECE), 8, drop_task, &k);
    return PK_OK;
}

PK_OP(dropout,
      {"dropout.forward(x: f32; rate: float, upscale: bool) -> (y: f32)", drop},
      {"dropout.backward(dy: f32; rate: float, upscale: bool) -> (dx: f32)", drop});
