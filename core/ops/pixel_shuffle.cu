/* pixel_shuffle: channel (c*f + i)*f + j of x [rows, channels*f*f, h, w] is pixels (i, j), (i + f, j) ...
 * of channel c of y [rows, channels, h*f, w*f]. */
#include "pk_cuda.cuh"

namespace {
/* Element e of y. */
struct shuffle {
    const float *in;
    float *out;
    int64_t h, w, f;
    int add, back;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t column = e % (w * f), row = e / (w * f) % (h * f), plane = e / (w * f * h * f);
        const int64_t channel = (plane * f + row % f) * f + column % f;
        const int64_t at = (channel * h + row / f) * w + column / f;
        pk_put(out + (back ? at : e), in[back ? e : at], add);
    }
};

pk_status run(const pk_call *call, const pk_view *x, const pk_view *y, int back) {
    const int64_t f = call->attr[0].i;
    if (x->ndim != 4 || y->ndim != 4 || f < 1 || x->dim[0] != y->dim[0] ||
        x->dim[1] != y->dim[1] * f * f || y->dim[2] != x->dim[2] * f || y->dim[3] != x->dim[3] * f)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "factor %lld: %lld channels of %lld x %lld do not become %lld of %lld x %lld",
                       (long long)f, (long long)x->dim[1], (long long)x->dim[2], (long long)x->dim[3],
                       (long long)y->dim[1], (long long)y->dim[2], (long long)y->dim[3]);
    return pk_each(call, pk_count(y),
                   shuffle{pk_f32(&call->in[0]), pk_f32(&call->out[0]), x->dim[2], x->dim[3], f,
                           pk_adds(call, 0), back});
}

pk_status forward(const pk_call *call) { return run(call, &call->in[0], &call->out[0], 0); }
pk_status backward(const pk_call *call) { return run(call, &call->out[0], &call->in[0], 1); }
} /* namespace */

PK_OP(pixel_shuffle, {"pixel_shuffle.forward(x: f32; factor: int) -> (y: f32)", forward},
      {"pixel_shuffle.backward(dy: f32; factor: int) -> (dx: f32)", backward});
