/* random_uniform: numbers spread evenly over [low, high), a row of them for each row of another tensor. */
#include "elementwise.h"
#include "random_rows.h"

typedef struct task_data {
    float *out;
    pk_random random;
    uint64_t start;
    int64_t count;
    float low, range;
    int add;
} task_data;

static void fill_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const task_data k = *(const task_data *)context;
    uint32_t bits[RANDOM_PIECE];
    for (int64_t piece = begin; piece < end; piece++) {
        const int64_t first = piece * RANDOM_PIECE, n = pk_min_i64(RANDOM_PIECE, k.count - first);
        float *out = k.out + first;
        random_bits(&k.random, k.start + (uint64_t)first, n, bits);
        for (int64_t i = 0; i < n; i++) {
            const float v = k.low + k.range * pk_uniform(bits[i]);
            out[i] = k.add ? out[i] + v : v;
        }
    }
}

/* like [rows, ..] any type, y [rows, shape]; attributes shape, low, high */
static pk_status forward(const pk_call *call) {
    const pk_view *y = &call->out[0];
    task_data k = {pk_f32(y), call->random, random_start(call, y), pk_count(y), (float)call->attr[1].f,
                   (float)(call->attr[2].f - call->attr[1].f), pk_adds(call, 0)};
    pk_parallel(call, pk_ceil_div(k.count, RANDOM_PIECE), 8, fill_task, &k);
    return PK_OK;
}

PK_OP(random_uniform,
      {"random_uniform.forward(like: any; shape: list, low: float, high: float) -> (y: f32)", forward});
