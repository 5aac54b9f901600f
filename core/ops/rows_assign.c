/* rows_assign: new values of the rows of a table that have a gradient. */
#include <string.h>

#include "pk_kernel.h"

#define GRAIN 16

typedef struct rows_values {
    float *x;
    const float *values;
    const int64_t *ids;
    int64_t width;
} rows_values;

/* Every id occurs once, so the rows are independent. */
static void assign_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const rows_values *k = context;
    for (int64_t i = begin; i < end; i++)
        memcpy(k->x + k->ids[i] * k->width, k->values + i * k->width, (size_t)k->width * sizeof(float));
}

/* A bad id would write outside the table, so all are looked at before anything moves. */
static pk_status check_ids(const pk_call *call, const int64_t *ids, int64_t rows, int64_t height) {
    for (int64_t i = 0; i < rows; i++)
        if (ids[i] < 0 || ids[i] >= height || (i > 0 && ids[i] <= ids[i - 1]))
            return pk_fail(call, PK_BAD_DATA, i, "row id %lld at place %lld: ids must ascend without repeats below %lld",
                           (long long)ids[i], (long long)i, (long long)height);
    return PK_OK;
}

/* x [height, ...], values [room, ...], ids [room], rows [1] -> x_out [height, ...], the same memory as x in a plan */
static pk_status forward(const pk_call *call) {
    const pk_view *in = call->in, *x = &call->out[0];
    if (in[0].ndim < 1 || pk_count(&in[3]) != 1)
        return pk_fail(call, PK_BAD_SHAPE, -1, "x has %d dimensions, rows %lld elements: expected a table and one number",
                       (int)in[0].ndim, (long long)pk_count(&in[3]));
    if (call->accumulate) return pk_fail(call, PK_BAD_CALL, -1, "an update cannot be added to its outputs");
    const int64_t n = pk_count(&in[0]), room = pk_count(&in[2]), width = pk_inner(&in[0], 1), rows = pk_i64(&in[3])[0];
    if (pk_count(x) != n || pk_count(&in[1]) != room * width)
        return pk_fail(call, PK_BAD_SHAPE, -1, "x has %lld elements, x_out %lld; values %lld, expected %lld",
                       (long long)n, (long long)pk_count(x), (long long)pk_count(&in[1]), (long long)(room * width));
    if (rows < 0 || rows > room)
        return pk_fail(call, PK_BAD_DATA, -1, "rows says %lld, there is room for %lld", (long long)rows, (long long)room);
    const pk_status status = check_ids(call, pk_i64(&in[2]), rows, in[0].dim[0]);
    if (status != PK_OK) return status;
    if (x->data != in[0].data && n > 0) memcpy(x->data, in[0].data, (size_t)n * sizeof(float));
    rows_values k = {pk_f32(x), pk_f32(&in[1]), pk_i64(&in[2]), width};
    pk_parallel(call, rows, GRAIN, assign_task, &k);
    return PK_OK;
}

PK_OP(rows_assign, {"rows_assign.forward(x: f32, values: f32, ids: i64, rows: i64) -> (x_out: f32)", forward});
