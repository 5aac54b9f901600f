/* tile_rows: every row several times, one behind the other. */
#include <string.h>

#include "rows.h"

typedef struct tile {
    uint8_t *y;
    const uint8_t *x;
    int64_t bytes, times;
} tile;

static void tile_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const tile *t = context;
    (void)thread, (void)scratch;
    for (int64_t i = begin; i < end; i++)
        memcpy(t->y + i * t->bytes, t->x + i / t->times * t->bytes, (size_t)t->bytes);
}

/* x [rows, ...], y [rows * times, ...] */
static pk_status tile_rows_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *y = &call->out[0];
    const int64_t times = call->attr[0].i, rows = x->dim[0];
    const tile t = {y->data, x->data, pk_inner(x, 1) * pk_element_bytes(x->dtype), times};
    if (times < 1 || y->dtype != x->dtype || y->dim[0] != rows * times ||
        pk_inner(y, 1) != pk_inner(x, 1))
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "[tile_rows] %lld rows of %lld, %lld times, are not %lld of %lld",
                       (long long)rows, (long long)pk_inner(x, 1), (long long)times,
                       (long long)y->dim[0], (long long)pk_inner(y, 1));
    if (pk_adds(call, 0))
        return pk_fail(call, PK_BAD_CALL, -1, "[tile_rows] cannot add to its output");
    if (t.bytes > 0)
        pk_parallel(call, y->dim[0], pk_max_i64(1, 65536 / t.bytes), tile_task, (void *)&t);
    return PK_OK;
}

PK_OP(tile_rows, {"tile_rows.forward(x: any; times: int) -> (y: any)", tile_rows_forward});
