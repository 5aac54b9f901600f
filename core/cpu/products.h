/* products.h: C = op(A) op(B) in float, with bias and activation.
 *
 * Same bits: an output element is sum over k, cut into chunks of PK_PRODUCT_CHUNK: each chunk
 * starts at 0 and adds a[k]*b[k] by fma in the order of k, and the chunks are added in order (to
 * the old value, where it accumulates).  That depends on k alone, so neither m, n, threads, storage
 * order nor the other rows of a batch change a bit, a row alone gives the bits it has among 64, and
 * all levels with fma agree. */
#ifndef PK_PRODUCTS_H
#define PK_PRODUCTS_H
#include "pk_kernel.h"

#define PK_PRODUCT_CHUNK 256

typedef enum pk_activation {
    PK_ACT_NONE = 0,
    PK_ACT_RELU = 1,
    PK_ACT_TANH = 2,
    PK_ACT_SIGMOID = 3
} pk_activation;

/* All strides are in floats, from one stored row to the next; stored rows are contiguous.  Fields
 * left out of a designated initialiser mean: not transposed, assigned, no bias, no activation. */
typedef struct pk_product {
    int64_t m, n, k; /* C is [m, n]; each may be 0; k = 0 gives zeros (plus bias, activation) */
    const float *a;  /* [m, k], or [k, m] where a_transposed */
    int64_t a_stride;
    const float *b; /* [k, n], or [n, k] where b_transposed */
    int64_t b_stride;
    float *c; /* [m, n]; must not overlap a or b */
    int64_t c_stride;
    int32_t a_transposed, b_transposed;
    int32_t accumulate; /* C is added to */
    int32_t activation; /* pk_activation, applied last */
    const float *bias;  /* n floats added to every row after the sum; or NULL */
    const struct pk_windows *windows; /* A's stored rows are windows (windows.h); or NULL */
} pk_product;

/* Uses per-thread scratch only, allocates nothing, cannot fail.  May be called inside a pk_parallel
 * task (then it runs alone). */
#define pk_multiply PK_LEVEL_NAME(pk_multiply)
void pk_multiply(const pk_call *call, const pk_product *product);

/* c[r, j] = activation(c[r, j] + row_bias[r] + column_bias[j]); each bias may be NULL. */
#define pk_finish PK_LEVEL_NAME(pk_finish)
void pk_finish(float *c, int64_t stride, int64_t rows, int64_t columns, const float *row_bias,
               const float *column_bias, int32_t activation);

#endif
