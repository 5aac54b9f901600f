/* moving_average: an average over the updates of a training.  Each step is an IEEE operation of its own (no fma), so all
 * instruction-set levels agree. */
#include "pk_kernel.h"

typedef struct average_data {
    float *out;                /* [n], may be `average` itself */
    const float *average, *value;
    float part;                /* what a new value gets: 1 - decay */
} average_data;

static void piece(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const average_data k = *(const average_data *)context;
    for (int64_t i = begin; i < end; i++) {
        const float gap = k.value[i] - k.average[i];
        k.out[i] = k.average[i] + k.part * gap;
    }
}

/* average, value, average_out [n]; count [1].  Attributes: decay, warmup. */
static pk_status forward(const pk_call *call) {
    const pk_view *average = &call->in[0], *value = &call->in[1], *count = &call->in[2], *out = &call->out[0];
    const int64_t n = pk_count(average);
    if (pk_count(value) != n || pk_count(out) != n || pk_count(count) != 1)
        return pk_fail(call, PK_BAD_SHAPE, -1, "average has %lld elements, the value %lld, count %lld",
                       (long long)n, (long long)pk_count(value), (long long)pk_count(count));
    const double t = (double)*pk_i64(count), early = (1.0 + t) / (10.0 + t);
    const double decay = call->attr[1].i && early < call->attr[0].f ? early : call->attr[0].f;
    average_data k = {pk_f32(out), pk_f32(average), pk_f32(value), (float)(1.0 - decay)};
    if (n > 0) pk_parallel(call, n, 4096, piece, &k);
    return PK_OK;
}

PK_OP(moving_average,
      {"moving_average.forward(average: f32, value: f32, count: i64; decay: float, warmup: bool) -> (average_out: f32)",
       forward});
