/* embedding: rows of a table by id, and their gradients added up. */
#include "sort.cuh"

namespace {
/* ids [n] in any shape, w [height, width], rows of y [n, width].  attr: padding_idx (-1: none) */
pk_status check(const pk_call *call, const pk_view *ids, const pk_view *w, const pk_view *y) {
    if (w->ndim != 2 || pk_count(y) != pk_count(ids) * w->dim[1])
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "%lld ids in a table of width %lld give %lld elements, not %lld",
                       (long long)pk_count(ids), (long long)w->dim[1],
                       (long long)(pk_count(ids) * w->dim[1]), (long long)pk_count(y));
    /* -1 stands for no padding and is no id: nothing to let through */
    const int64_t skip = call->attr[0].i < 0 ? 0 : call->attr[0].i;
    return pk_check_index(call, pk_i64(ids), pk_count(ids), w->dim[0],
                          w->dim[0] > 0 ? skip : INT64_MIN, 1, "id is %lld, must be below %lld");
}

pk_status embedding_forward(const pk_call *call) {
    const pk_view *ids = &call->in[0], *w = &call->in[1], *y = &call->out[0];
    PK_TRY(check(call, ids, w, y));
    return pk_gather_rows(call, y->data, w->data, pk_i64(ids), pk_count(ids), w->dim[1], 4,
                          call->attr[0].i, pk_adds(call, 0));
}

pk_status embedding_backward_w(const pk_call *call) {
    const pk_view *ids = &call->in[0], *dy = &call->in[1], *dw = &call->out[0];
    PK_TRY(check(call, ids, dw, dy));
    return pk_add_rows(call, pk_f32(dw), dw->dim[0], pk_f32(dy), pk_i64(ids), pk_count(ids),
                       dw->dim[1], call->attr[0].i, pk_adds(call, 0));
}

struct list_ids {
    int64_t *rows;
    const int64_t *ids;
    int64_t padding;
    PK_DEVICE void operator()(int64_t i) const { rows[i] = ids[i] == padding ? -1 : ids[i]; }
};

/* The ids as a list, with -1 (no row) for padding. */
pk_status embedding_row_ids(const pk_call *call) {
    const pk_view *ids = &call->in[0], *rows = &call->out[0];
    if (pk_count(rows) != pk_count(ids))
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld ids, %lld rows", (long long)pk_count(ids),
                       (long long)pk_count(rows));
    if (pk_adds(call, 0)) return pk_fail(call, PK_BAD_CALL, -1, "an id cannot be added to");
    return pk_each(call, pk_count(ids), list_ids{pk_i64(rows), pk_i64(ids), call->attr[0].i});
}
} /* namespace */

PK_OP(embedding,
      {"embedding.forward(ids: i64, w: f32; padding_idx: int, sparse: bool) -> (y: f32)",
       embedding_forward},
      {"embedding.backward_w(ids: i64, dy: f32; padding_idx: int) -> (dw: f32)",
       embedding_backward_w},
      {"embedding.row_ids(ids: i64; padding_idx: int) -> (rows: i64)", embedding_row_ids});
