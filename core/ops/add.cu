/* add: x + y with broadcasting, and the sum of a gradient back to an operand's shape. */
#include "elementwise.cuh"
#include "reductions.cuh"

namespace {
struct add_of {
    PK_DEVICE float operator()(float x, float y) const { return x + y; }
};
pk_status add_forward(const pk_call *call) { return pk_broadcast<0>(call, add_of{}); }

/* d = scale * sum of dz over the dimensions in which d has size 1 or none.  attr: axis, scale */
pk_status add_reduce(const pk_call *call) {
    const pk_view *dz = &call->in[0], *d = &call->out[0];
    const int32_t first = pk_spread_first(d, dz, call->attr[0].i);
    if (first < 0 || first + d->ndim > dz->ndim)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "%d dimensions cannot be summed to %d from axis %lld on", (int)dz->ndim,
                       (int)d->ndim, (long long)call->attr[0].i);
    uint32_t summed = 0;
    for (int32_t i = 0; i < dz->ndim; i++) {
        const int64_t n = pk_spread_dim(d, first, i);
        if (n == dz->dim[i]) continue;
        if (n != 1)
            return pk_fail(call, PK_BAD_SHAPE, -1,
                           "size %lld cannot be summed to %lld in dimension %d",
                           (long long)dz->dim[i], (long long)n, (int)i);
        summed |= 1u << i;
    }
    return pk_sum_dims(call, pk_f32(d), pk_f32(dz), dz->ndim, dz->dim, summed,
                       (float)call->attr[1].f, pk_adds(call, 0));
}
} /* namespace */

PK_OP(add, {"add.forward(x: f32, y: f32; axis: int) -> (z: f32)", add_forward},
      {"add.reduce(dz: f32; axis: int, scale: float) -> (d: f32)", add_reduce});
