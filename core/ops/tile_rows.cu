/* tile_rows: every row several times, one behind the other. */
#include "rows.cuh"

namespace {
template <class T> struct tile {
    T *y;
    const T *x;
    int64_t width, times;
    PK_DEVICE void operator()(int64_t e) const {
        y[e] = x[e / width / times * width + e % width];
    }
};
template <class T> pk_status tile_as(const pk_call *call, int64_t times) {
    const pk_view *x = &call->in[0], *y = &call->out[0];
    const int64_t width = pk_inner(x, 1);
    return pk_each(call, y->dim[0] * width,
                   tile<T>{(T *)y->data, (const T *)x->data, width, times});
}

/* x [rows, ...], y [rows * times, ...] */
pk_status tile_rows_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *y = &call->out[0];
    const int64_t times = call->attr[0].i, rows = x->dim[0], size = pk_element_bytes(x->dtype);
    if (times < 1 || y->dtype != x->dtype || y->dim[0] != rows * times ||
        pk_inner(y, 1) != pk_inner(x, 1))
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "[tile_rows] %lld rows of %lld, %lld times, are not %lld of %lld",
                       (long long)rows, (long long)pk_inner(x, 1), (long long)times,
                       (long long)y->dim[0], (long long)pk_inner(y, 1));
    if (pk_adds(call, 0))
        return pk_fail(call, PK_BAD_CALL, -1, "[tile_rows] cannot add to its output");
    if (size == 8) return tile_as<uint64_t>(call, times);
    if (size == 4) return tile_as<uint32_t>(call, times);
    return size == 2 ? tile_as<uint16_t>(call, times) : tile_as<uint8_t>(call, times);
}
} /* namespace */

PK_OP(tile_rows, {"tile_rows.forward(x: any; times: int) -> (y: any)", tile_rows_forward});
