/* pixel_shuffle: channel (c*f + i)*f + j of x [rows, channels*f*f, h, w] is pixels (i, j), (i + f, j) ...
 * of channel c of y [rows, channels, h*f, w*f]. */
#include "pk_kernel.h"

typedef struct shuffle {
    const float *in;
    float *out;
    int64_t h, w, f;
    int add, back;
} shuffle;

/* Piece p is row p % (h*f) of plane p / (h*f) of y; it meets one row of each of f channels of x. */
static void row_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const shuffle k = *(const shuffle *)context;
    (void)thread, (void)scratch;
    for (int64_t p = begin; p < end; p++) {
        const int64_t plane = p / (k.h * k.f), row = p % (k.h * k.f), wide = p * k.w * k.f;
        for (int64_t j = 0; j < k.f; j++) {
            const int64_t channel = (plane * k.f + row % k.f) * k.f + j;
            const int64_t narrow = (channel * k.h + row / k.f) * k.w;
            for (int64_t i = 0; i < k.w; i++) {
                float *out = k.out + (k.back ? narrow + i : wide + i * k.f + j);
                const float v = k.in[k.back ? wide + i * k.f + j : narrow + i];
                *out = k.add ? *out + v : v;
            }
        }
    }
}

static pk_status run(const pk_call *call, const pk_view *x, const pk_view *y, int back) {
    const int64_t f = call->attr[0].i;
    if (x->ndim != 4 || y->ndim != 4 || f < 1 || x->dim[0] != y->dim[0] ||
        x->dim[1] != y->dim[1] * f * f || y->dim[2] != x->dim[2] * f || y->dim[3] != x->dim[3] * f)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "factor %lld: %lld channels of %lld x %lld do not become %lld of %lld x %lld",
                       (long long)f, (long long)x->dim[1], (long long)x->dim[2], (long long)x->dim[3],
                       (long long)y->dim[1], (long long)y->dim[2], (long long)y->dim[3]);
    shuffle k = {pk_f32(&call->in[0]), pk_f32(&call->out[0]), x->dim[2], x->dim[3], f,
                 pk_adds(call, 0), back};
    pk_parallel(call, y->dim[0] * y->dim[1] * y->dim[2], pk_max_i64(1, 16384 / pk_max_i64(1, y->dim[3])),
                row_task, &k);
    return PK_OK;
}

static pk_status forward(const pk_call *call) { return run(call, &call->in[0], &call->out[0], 0); }
static pk_status backward(const pk_call *call) { return run(call, &call->out[0], &call->in[0], 1); }

PK_OP(pixel_shuffle, {"pixel_shuffle.forward(x: f32; factor: int) -> (y: f32)", forward},
      {"pixel_shuffle.backward(dy: f32; factor: int) -> (dx: f32)", backward});
