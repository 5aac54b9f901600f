/* rows_assign: new values of the rows of a table that have a gradient. */
#include "updates.cuh"

namespace {
struct assign {
    float *x;
    const float *values;
    const int64_t *ids, *rows;
    int64_t width;
    PK_DEVICE void operator()(int64_t i) const {
        const int64_t row = i / width;
        if (row < *rows) x[ids[row] * width + i % width] = values[i];
    }
};

/* x [height, ...], values [room, ...], ids [room], rows [1] -> x_out [height, ...] */
pk_status forward(const pk_call *call) {
    const pk_view *in = call->in;
    if (in[0].ndim < 1) return pk_fail(call, PK_BAD_SHAPE, -1, "x is a single number, expected a table");
    if (call->accumulate)
        return pk_fail(call, PK_BAD_CALL, -1, "an update cannot be added to its outputs");
    const int64_t room = pk_count(&in[2]), width = pk_inner(&in[0], 1);
    PK_TRY(pk_update_size(call, "rows", &in[3], 1));
    PK_TRY(pk_update_size(call, "values", &in[1], room * width));
    PK_TRY(pk_update_size(call, "x_out", &call->out[0], pk_count(&in[0])));
    const pk_gate gate = pk_gate_of(call);
    PK_TRY(pk_each_behind(
        call, gate, pk_max_i64(1, room),
        pk_check_ids_kernel{gate, pk_i64(&in[2]), pk_i64(&in[3]), room, in[0].dim[0]}));
    PK_TRY(pk_take_state(call, 0, 0));
    return pk_each(call, room * width,
                   assign{pk_f32(&call->out[0]), pk_f32(&in[1]), pk_i64(&in[2]), pk_i64(&in[3]), width});
}
} /* namespace */

PK_OP(rows_assign,
      {"rows_assign.forward(x: f32, values: f32, ids: i64, rows: i64) -> (x_out: f32)", forward});
