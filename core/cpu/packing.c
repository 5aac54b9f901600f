/* Transposes: sixteen rows become the lanes of one vector, four columns at a time. */
#include "packing.h"

#include "transpose.h"

#define TRANSPOSE_ROWS 64
#define TRANSPOSE_SMALL 16384 /* floats that one thread moves at once */

void pk_transpose_block(const float *in, int64_t in_stride, int64_t rows, int64_t columns,
                        float *out, int64_t out_stride) {
    PK_FOR16(r, c, rows) {
        const float *p = in + r * in_stride;
        int64_t j = 0;
        for (; c == 16 && j + 4 <= columns; j += 4) {
            pk_vec v[4];
            pk_columns_of_16(p + j, in_stride, v);
            for (int q = 0; q < 4; q++) pk_store(out + (j + q) * out_stride + r, v[q]);
        }
        for (; j < columns; j++)
            pk_store_n(out + j * out_stride + r, pk_column_of(p + j, in_stride, c), c);
    }
}

typedef struct {
    const float *in;
    float *out;
    int64_t in_stride, out_stride, rows, columns;
} transpose_work;

static void transpose_task(void *context, int64_t begin, int64_t end, int32_t thread,
                           void *scratch) {
    const transpose_work *w = context;
    (void)thread;
    (void)scratch;
    for (int64_t b = begin; b < end; b++) {
        const int64_t r = b * TRANSPOSE_ROWS;
        pk_transpose_block(w->in + r * w->in_stride, w->in_stride,
                           pk_min_i64(TRANSPOSE_ROWS, w->rows - r), w->columns, w->out + r,
                           w->out_stride);
    }
}

void pk_transpose(const pk_call *call, const float *in, int64_t in_stride, int64_t rows,
                  int64_t columns, float *out, int64_t out_stride) {
    transpose_work w = {in, out, in_stride, out_stride, rows, columns};
    const int64_t grain = pk_ceil_div(TRANSPOSE_SMALL, TRANSPOSE_ROWS * pk_max_i64(columns, 1));
    pk_parallel(call, pk_ceil_div(rows, TRANSPOSE_ROWS), grain, transpose_task, &w);
}
