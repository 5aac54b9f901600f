/* dropout2d: a channel of a sample passes, times scale, where its random number lets it, else it is 0.
 *
 * The number belongs to (sample of the whole batch, channel), so neither the cut of the batch nor the
 * order of the pixels changes a mask.  The backward kernel is the same function of dy. */
#include "elementwise.h"
#include "pk_random.h"

typedef struct task_data {
    float *out;
    const float *in;
    pk_random random;
    uint64_t start;   /* the stream's element that the first channel is */
    int64_t inner;
    uint32_t threshold;   /* below it: dropped */
    float scale;
    int add;
} task_data;

static void drop_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const task_data k = *(const task_data *)context;
    for (int64_t plane = begin; plane < end; plane++) {
        const int passes = pk_random_u32(&k.random, k.start + (uint64_t)plane) >= k.threshold;
        const int64_t at = plane * k.inner;
        PK_FOR16(i, n, k.inner) {
            const pk_vec v = pk_mul(pk_load_n(k.in + at + i, n), pk_set1(k.scale));
            pk_put(k.out + at + i, passes ? v : pk_zero(), n, k.add);
        }
    }
}

/* x, y or dy, dx [rows, channels, ...]; attributes rate, upscale */
static pk_status drop(const pk_call *call) {
    const pk_view *x = &call->in[0];
    const double rate = call->attr[0].f;
    if (!(rate >= 0.0 && rate < 1.0))
        return pk_fail(call, PK_BAD_SHAPE, -1, "rate %g is not in [0, 1)", rate);
    if (x->ndim < 2 || pk_count(x) != pk_count(&call->out[0]))
        return pk_fail(call, PK_BAD_SHAPE, -1, "input has %lld elements in %d dimensions, output %lld",
                       (long long)pk_count(x), (int)x->ndim, (long long)pk_count(&call->out[0]));
    const int64_t channels = x->dim[1];
    task_data k = {pk_f32(&call->out[0]), pk_f32(x), call->random,
                   (uint64_t)call->random.first * (uint64_t)channels, pk_inner(x, 2),
                   (uint32_t)(rate * 4294967296.0),
                   call->attr[1].i ? (float)(1.0 / (1.0 - rate)) : 1.0f, pk_adds(call, 0)};
    pk_parallel(call, x->dim[0] * channels, pk_max_i64(1, 8192 / pk_max_i64(1, k.inner)), drop_task, &k);
    return PK_OK;
}

PK_OP(dropout2d, {"dropout2d.forward(x: f32; rate: float, upscale: bool) -> (y: f32)", drop},
      {"dropout2d.backward(dy: f32; rate: float, upscale: bool) -> (dx: f32)", drop});
