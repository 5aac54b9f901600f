/* rows_take: the rows of a table that have a gradient. */
#include "updates.cuh"

namespace {
struct take {
    float *y;
    const float *x;
    const int64_t *ids, *rows;
    int64_t width;
    PK_DEVICE void operator()(int64_t i) const {
        const int64_t row = i / width;
        y[i] = row < *rows ? x[ids[row] * width + i % width] : 0.0f;
    }
};

/* x [height, ...], ids [room], rows [1] -> y [room, ...] */
pk_status forward(const pk_call *call) {
    const pk_view *in = call->in;
    if (in[0].ndim < 1) return pk_fail(call, PK_BAD_SHAPE, -1, "x is a single number, expected a table");
    if (call->accumulate)
        return pk_fail(call, PK_BAD_CALL, -1, "rows for an update are not added to");
    const int64_t room = pk_count(&in[1]), width = pk_inner(&in[0], 1);
    PK_TRY(pk_update_size(call, "rows", &in[2], 1));
    PK_TRY(pk_update_size(call, "y", &call->out[0], room * width));
    const pk_gate gate = pk_gate_of(call);
    PK_TRY(pk_each_behind(
        call, gate, pk_max_i64(1, room),
        pk_check_ids_kernel{gate, pk_i64(&in[1]), pk_i64(&in[2]), room, in[0].dim[0]}));
    return pk_each(call, room * width,
                   take{pk_f32(&call->out[0]), pk_f32(&in[0]), pk_i64(&in[1]), pk_i64(&in[2]), width});
}
} /* namespace */

PK_OP(rows_take, {"rows_take.forward(x: f32, ids: i64, rows: i64) -> (y: f32)", forward});
