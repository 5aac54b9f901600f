/* reductions.h: sums over whole matrices and buffers with a fixed order.
 *
 * Sums over rows go in chunks of PK_ROW_CHUNK rows: each chunk adds its rows in order from 0, and
 * the chunks are added in order (to the old value, where it accumulates).  Sums over flat buffers
 * go in chunks of PK_FLAT_CHUNK floats. */
#ifndef PK_REDUCTIONS_H
#define PK_REDUCTIONS_H
#include "pk_kernel.h"

#define PK_ROW_CHUNK 256
#define PK_FLAT_CHUNK 16384

/* out[j] (=|+=) sum over rows of x[r, j]: the bias gradient of a product. */
#define pk_sum_columns PK_LEVEL_NAME(pk_sum_columns)
void pk_sum_columns(const pk_call *call, const float *x, int64_t stride, int64_t rows,
                    int64_t columns, int32_t accumulate, float *out);

/* Sum of n floats: 16 double lanes per chunk, chunks added in order. */
#define pk_sum_flat PK_LEVEL_NAME(pk_sum_flat)
double pk_sum_flat(const pk_call *call, const float *x, int64_t n);

#endif
