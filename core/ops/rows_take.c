/* rows_take: the rows of a table that have a gradient. */
#include <string.h>

#include "pk_kernel.h"

#define GRAIN 16

typedef struct take {
    float *y;
    const float *x;
    const int64_t *ids;
    int64_t rows, width;
} take;

static void take_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const take *k = context;
    const size_t bytes = (size_t)k->width * sizeof(float);
    for (int64_t i = begin; i < end; i++) {
        float *y = k->y + i * k->width;
        if (i < k->rows) memcpy(y, k->x + k->ids[i] * k->width, bytes);
        else memset(y, 0, bytes);
    }
}

/* x [height, ...], ids [room], rows [1] -> y [room, ...] */
static pk_status forward(const pk_call *call) {
    const pk_view *in = call->in;
    if (in[0].ndim < 1 || pk_count(&in[2]) != 1)
        return pk_fail(call, PK_BAD_SHAPE, -1, "x has %d dimensions, rows %lld elements: expected a table and one number",
                       (int)in[0].ndim, (long long)pk_count(&in[2]));
    if (call->accumulate) return pk_fail(call, PK_BAD_CALL, -1, "rows for an update are not added to");
    const int64_t room = pk_count(&in[1]), width = pk_inner(&in[0], 1), height = in[0].dim[0];
    const int64_t rows = pk_i64(&in[2])[0], *ids = pk_i64(&in[1]);
    if (pk_count(&call->out[0]) != room * width)
        return pk_fail(call, PK_BAD_SHAPE, -1, "y has %lld elements, expected %lld", (long long)pk_count(&call->out[0]),
                       (long long)(room * width));
    if (rows < 0 || rows > room)
        return pk_fail(call, PK_BAD_DATA, -1, "rows says %lld, there is room for %lld", (long long)rows, (long long)room);
    for (int64_t i = 0; i < rows; i++)
        if (ids[i] < 0 || ids[i] >= height)
            return pk_fail(call, PK_BAD_DATA, i, "row id %lld at place %lld of a table of %lld rows", (long long)ids[i],
                           (long long)i, (long long)height);
    take k = {pk_f32(&call->out[0]), pk_f32(&in[0]), ids, rows, width};
    pk_parallel(call, room, GRAIN, take_task, &k);
    return PK_OK;
}

PK_OP(rows_take, {"rows_take.forward(x: f32, ids: i64, rows: i64) -> (y: f32)", forward});
