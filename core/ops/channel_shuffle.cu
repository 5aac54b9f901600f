/* channel_shuffle: channel j*groups + i of y is channel i*each + j of x. */
#include "pk_cuda.cuh"

namespace {
/* x, y [rows, groups * each, inner] */
struct shuffle {
    const float *x;
    float *y;
    int64_t groups, each, inner;
    int add;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t plane = e / inner, channels = groups * each, c = plane % channels;
        const int64_t from = plane - c + c % groups * each + c / groups;
        pk_put(y + e, x[from * inner + e % inner], add);
    }
};

pk_status forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *y = &call->out[0];
    const int64_t groups = call->attr[0].i, channels = x->ndim < 2 ? 0 : x->dim[1];
    if (groups < 1 || channels == 0 || channels % groups)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld channels do not divide into %lld groups",
                       (long long)channels, (long long)groups);
    if (pk_count(x) != pk_count(y))
        return pk_fail(call, PK_BAD_SHAPE, -1, "x has %lld elements, y %lld",
                       (long long)pk_count(x), (long long)pk_count(y));
    return pk_each(call, pk_count(x),
                   shuffle{pk_f32(x), pk_f32(y), groups, channels / groups, pk_inner(x, 2),
                           pk_adds(call, 0)});
}
} /* namespace */

PK_OP(channel_shuffle, {"channel_shuffle.forward(x: f32; groups: int) -> (y: f32)", forward});
