/* embedding: rows of a table by id, and their gradients added up. */
#include "rows.h"

/* ids [n] in any shape, w [height, width], rows of y [n, width].  attr: padding_idx (-1: none) */
static pk_status check(const pk_call *call, const pk_view *ids, const pk_view *w,
                       const pk_view *y) {
    if (w->ndim != 2 || pk_count(y) != pk_count(ids) * w->dim[1])
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "%lld ids in a table of width %lld give %lld elements, not %lld",
                       (long long)pk_count(ids), (long long)w->dim[1],
                       (long long)(pk_count(ids) * w->dim[1]), (long long)pk_count(y));
    /* -1 stands for no padding and is no id: nothing to let through */
    const int64_t skip = call->attr[0].i < 0 ? 0 : call->attr[0].i;
    return pk_check_index(call, pk_i64(ids), pk_count(ids), w->dim[0],
                          w->dim[0] > 0 ? skip : INT64_MIN, "id");
}

static pk_status embedding_forward(const pk_call *call) {
    const pk_view *ids = &call->in[0], *w = &call->in[1], *y = &call->out[0];
    const pk_status bad = check(call, ids, w, y);
    if (bad) return bad;
    pk_gather_rows(call, y->data, w->data, pk_i64(ids), pk_count(ids), w->dim[1] * 4,
                   call->attr[0].i, pk_adds(call, 0));
    return PK_OK;
}

static pk_status embedding_backward_w(const pk_call *call) {
    const pk_view *ids = &call->in[0], *dy = &call->in[1], *dw = &call->out[0];
    const pk_status bad = check(call, ids, dw, dy);
    if (bad) return bad;
    pk_add_rows(call, pk_f32(dw), dw->dim[0], pk_f32(dy), pk_i64(ids), pk_count(ids), dw->dim[1],
                call->attr[0].i, pk_adds(call, 0));
    return PK_OK;
}

/* The ids as a list, with -1 (no row) for padding. */
static pk_status embedding_row_ids(const pk_call *call) {
    const pk_view *ids = &call->in[0], *rows = &call->out[0];
    const int64_t n = pk_count(ids), padding = call->attr[0].i;
    if (pk_count(rows) != n)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld ids, %lld rows", (long long)n,
                       (long long)pk_count(rows));
    if (pk_adds(call, 0)) return pk_fail(call, PK_BAD_CALL, -1, "an id cannot be added to");
    for (int64_t i = 0; i < n; i++)
        pk_i64(rows)[i] = pk_i64(ids)[i] == padding ? -1 : pk_i64(ids)[i];
    return PK_OK;
}

PK_OP(embedding,
      {"embedding.forward(ids: i64, w: f32; padding_idx: int, sparse: bool) -> (y: f32)",
       embedding_forward},
      {"embedding.backward_w(ids: i64, dy: f32; padding_idx: int) -> (dw: f32)",
       embedding_backward_w},
      {"embedding.row_ids(ids: i64; padding_idx: int) -> (rows: i64)", embedding_row_ids});
