/* sequence_scatter: a sequence of places and values added to each row. */
#include "packed.cuh"

namespace {
/* x, y [sequences, width]; ids, updates [tokens] */
struct scatter_row {
    const float *x, *updates;
    float *y;
    const int64_t *ids, *offsets;
    int64_t width;
    int add;
    PK_DEVICE void operator()(int64_t s) const {
        float *row = y + s * width;
        for (int64_t i = 0; i < width; i++) pk_put(row + i, x[s * width + i], add);
        for (int64_t t = offsets[s]; t < offsets[s + 1]; t++) row[ids[t]] += updates[t];
    }
};
struct gather_each {
    float *updates;
    const float *dy;
    const int64_t *ids, *offsets;
    int64_t sequences, width;
    int add;
    PK_DEVICE void operator()(int64_t t) const {
        const int64_t s = pk_sequence_of(offsets, sequences, t);
        pk_put(updates + t, dy[s * width + ids[t]], add);
    }
};

pk_status check(const pk_call *call, const pk_view *rows, const pk_view *ids,
                const pk_view *updates) {
    PK_TRY(pk_check_packed(call, "ids", ids));
    PK_TRY(pk_check_size(call, "ids", ids, ids->dim[0]));
    PK_TRY(pk_check_size(call, "updates", updates, ids->dim[0]));
    if (rows->ndim != 2 || rows->dim[0] != ids->sequences)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld rows for %lld sequences",
                       (long long)rows->dim[0], (long long)ids->sequences);
    return pk_check_index(call, pk_i64(ids), ids->dim[0], rows->dim[1], INT64_MIN, 1,
                          "id is %lld, must be below %lld");
}

pk_status sequence_scatter_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *ids = &call->in[1], *updates = &call->in[2];
    PK_TRY(check(call, x, ids, updates));
    PK_TRY(pk_check_size(call, "y", &call->out[0], pk_count(x)));
    return pk_each(call, x->dim[0],
                   scatter_row{pk_f32(x), pk_f32(updates), pk_f32(&call->out[0]), pk_i64(ids),
                               ids->offsets, x->dim[1], pk_adds(call, 0)});
}
pk_status sequence_scatter_backward_updates(const pk_call *call) {
    const pk_view *dy = &call->in[0], *ids = &call->in[1], *out = &call->out[0];
    PK_TRY(check(call, dy, ids, out));
    return pk_each(call, ids->dim[0],
                   gather_each{pk_f32(out), pk_f32(dy), pk_i64(ids), ids->offsets, ids->sequences,
                               dy->dim[1], pk_adds(call, 0)});
}
} /* namespace */

PK_OP(sequence_scatter,
      {"sequence_scatter.forward(x: f32, ids: i64, updates: f32) -> (y: f32)",
       sequence_scatter_forward},
      {"sequence_scatter.backward_updates(dy: f32, ids: i64) -> (dupdates: f32)",
       sequence_scatter_backward_updates});
