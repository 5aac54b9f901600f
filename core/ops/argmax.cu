/* argmax: where the largest element stands; the first of equal ones, a NaN is the largest. */
#include "pk_cuda.cuh"

namespace {
/* x [outer, n, inner] -> y [outer, inner] */
struct search {
    int64_t *y;
    const float *x;
    int64_t n, inner;
    PK_DEVICE void operator()(int64_t i) const {
        const float *from = x + i / inner * n * inner + i % inner;
        int64_t best = 0;
        for (int64_t k = 1; k < n; k++) {
            const float v = from[k * inner], top = from[best * inner];
            if (v > top || (v != v && top == top)) best = k;
        }
        y[i] = best;
    }
};

pk_status argmax_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *y = &call->out[0];
    const int64_t axis = call->attr[0].i < 0 ? call->attr[0].i + x->ndim : call->attr[0].i;
    if (axis < 1 || axis >= x->ndim || x->dim[axis] < 1 ||
        pk_count(y) * x->dim[axis] != pk_count(x))
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "axis %lld of %d dimensions with %lld elements gives %lld",
                       (long long)call->attr[0].i, (int)x->ndim, (long long)pk_count(x),
                       (long long)pk_count(y));
    if (pk_adds(call, 0)) return pk_fail(call, PK_BAD_CALL, -1, "an index cannot be added to");
    return pk_each(call, pk_count(y),
                   search{pk_i64(y), pk_f32(x), x->dim[axis], pk_inner(x, (int32_t)axis + 1)});
}
} /* namespace */

PK_OP(argmax, {"argmax.forward(x: f32; axis: int) -> (y: i64)", argmax_forward});
