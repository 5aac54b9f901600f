/* winograd_products.h: the 36 products of matrices of winograd.h. */
#ifndef PK_WINOGRAD_PRODUCTS_H
#define PK_WINOGRAD_PRODUCTS_H
#include "pk_kernel.h"

#define WINO_CHUNK 64               /* channels that one product sums over */
#define WINO_ROW (WINO_CHUNK + 16)  /* floats of a tile's channels: an odd number of cache lines */
#define WINO_WIDE 32                /* channels that one product makes */

/* c [tiles][WINO_WIDE] (=|+=) a [tiles][WINO_ROW] * b [k][WINO_WIDE] for k <= WINO_CHUNK channels
 * and 16 * vectors columns, one or two. */
#define pk_wino_multiply PK_LEVEL_NAME(pk_wino_multiply)
void pk_wino_multiply(int64_t tiles, int64_t k, int vectors, const float *a, const float *b,
                      float *c, int add);

/* c [rows, c_stride] (=|+=) the sum over tiles of a [tile][row] * b [tile][column], for `columns`
 * in whole vectors.  a and b are read at strides a_stride and b_stride. */
#define pk_wino_multiply_tiles PK_LEVEL_NAME(pk_wino_multiply_tiles)
void pk_wino_multiply_tiles(int64_t tiles, int64_t rows, int64_t columns, const float *a,
                            int64_t a_stride, const float *b, int64_t b_stride, float *c,
                            int64_t c_stride, int add);

#endif
