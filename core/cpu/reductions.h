/* reductions.h: sums and maxima with a fixed order, and what else runs over whole matrices.
 *
 * Row sums use the 16 lanes of pk_simd.h.  Sums over rows go in chunks of PK_ROW_CHUNK rows: each
 * chunk adds its rows in order from 0, and the chunks are added in order.  Sums over flat buffers
 * go in chunks of PK_FLAT_CHUNK floats. */
#ifndef PK_REDUCTIONS_H
#define PK_REDUCTIONS_H
#include "pk_kernel.h"

#define PK_ROW_CHUNK 256
#define PK_FLAT_CHUNK 16384

/* out[r] (=|+=) sum of x[r, 0..columns). */
#define pk_sum_rows PK_LEVEL_NAME(pk_sum_rows)
void pk_sum_rows(const pk_call *call, const float *x, int64_t stride, int64_t rows, int64_t columns,
                 int32_t accumulate, float *out);

/* out[r] = largest of x[r, 0..columns); -inf where columns is 0. */
#define pk_max_rows PK_LEVEL_NAME(pk_max_rows)
void pk_max_rows(const pk_call *call, const float *x, int64_t stride, int64_t rows, int64_t columns,
                 float *out);

/* out[j] (=|+=) sum over rows of x[r, j]: the bias gradient of a product. */
#define pk_sum_columns PK_LEVEL_NAME(pk_sum_columns)
void pk_sum_columns(const pk_call *call, const float *x, int64_t stride, int64_t rows,
                    int64_t columns, int32_t accumulate, float *out);

/* Sum of n floats, and of their squares: 16 double lanes per chunk, chunks added in order. */
#define pk_sum_flat PK_LEVEL_NAME(pk_sum_flat)
double pk_sum_flat(const pk_call *call, const float *x, int64_t n);
#define pk_sum_squares PK_LEVEL_NAME(pk_sum_squares)
double pk_sum_squares(const pk_call *call, const float *x, int64_t n);

#endif
