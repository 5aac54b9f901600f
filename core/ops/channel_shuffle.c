/* channel_shuffle: channel j*groups + i of y is channel i*each + j of x. */
#include "elementwise.h"

/* x, y [rows, groups * each, inner] */
typedef struct shuffle {
    const float *x;
    float *y;
    int64_t groups, each, inner;
    int add;
} shuffle;

static void plane_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const shuffle *k = context;
    (void)thread, (void)scratch;
    const int64_t channels = k->groups * k->each;
    for (int64_t plane = begin; plane < end; plane++) {
        const int64_t row = plane / channels, c = plane % channels;
        const int64_t from = c % k->groups * k->each + c / k->groups;
        const float *x = k->x + (row * channels + from) * k->inner;
        float *y = k->y + plane * k->inner;
        PK_FOR16(i, n, k->inner) pk_put(y + i, pk_load_n(x + i, n), n, k->add);
    }
}

static pk_status forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *y = &call->out[0];
    const int64_t groups = call->attr[0].i, channels = x->ndim < 2 ? 0 : x->dim[1];
    if (groups < 1 || channels == 0 || channels % groups)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld channels do not divide into %lld groups",
                       (long long)channels, (long long)groups);
    if (pk_count(x) != pk_count(y))
        return pk_fail(call, PK_BAD_SHAPE, -1, "x has %lld elements, y %lld",
                       (long long)pk_count(x), (long long)pk_count(y));
    shuffle k = {pk_f32(x), pk_f32(y), groups, channels / groups, pk_inner(x, 2), pk_adds(call, 0)};
    pk_parallel(call, x->dim[0] * channels, pk_max_i64(1, PK_MAP_GRAIN / pk_max_i64(1, k.inner)),
                plane_task, &k);
    return PK_OK;
}

PK_OP(channel_shuffle, {"channel_shuffle.forward(x: f32; groups: int) -> (y: f32)", forward});
