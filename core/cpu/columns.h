/* columns.h: pieces of the im2col matrix of a convolution, made when they are needed.
 *
 * The matrix has a row for each (channel of the group, kernel row, kernel column) and a column for
 * each (sample, output row, output column), samples outermost.  A range of columns is a list of
 * runs; a run is a stretch of one output row. */
#ifndef PK_COLUMNS_H
#define PK_COLUMNS_H
#include "convolutions.h"
#include "products.h"

#define PK_COLUMN_BLOCK 256 /* columns taken at once */

typedef struct pk_run {
    int64_t base; /* of x: the sample's first value of the group, plus row and column of the first
                     tap */
    int32_t at;   /* first column, counted from the range's begin */
    int32_t count;
    int32_t row, column; /* of x under the first tap of the first output; negative in the padding */
} pk_run;

typedef struct pk_runs {
    int32_t count;
    int32_t inside; /* every tap of every column lies in x */
    pk_run run[PK_COLUMN_BLOCK];
} pk_runs;

/* Runs of columns begin..end (at most PK_COLUMN_BLOCK) for one group. */
#define pk_find_runs PK_LEVEL_NAME(pk_find_runs)
void pk_find_runs(const pk_conv *conv, int64_t group, int64_t begin, int64_t end, pk_runs *runs);

/* Rows first..first + count of the matrix (at most PK_PRODUCT_CHUNK): how far each lies from the
 * first tap in x. */
typedef struct pk_taps {
    int64_t first, count;
    int64_t offset[PK_PRODUCT_CHUNK];
} pk_taps;
#define pk_find_taps PK_LEVEL_NAME(pk_find_taps)
void pk_find_taps(const pk_conv *conv, int64_t first, int64_t count, pk_taps *taps);

/* The taps' rows over the runs: out[r * stride + column].  What lies between a row's last column
 * and the next row may be overwritten with anything, and 16 floats behind the last row. */
#define pk_copy_columns PK_LEVEL_NAME(pk_copy_columns)
void pk_copy_columns(const pk_conv *conv, const pk_runs *runs, const pk_taps *taps, const float *x,
                     float *out, int64_t stride);

/* The other way: adds in[r * stride + column] to the x that the column's tap r lies on, for rows
 * first..first + rows in order.  The runs must be whole output rows.  `in` must be readable
 * PK_GATHER_REACH floats before and behind. */
#define PK_GATHER_REACH 2048
#define pk_add_columns PK_LEVEL_NAME(pk_add_columns)
void pk_add_columns(const pk_conv *conv, const pk_runs *runs, const float *in, int64_t stride,
                    int64_t first, int64_t rows, float *x);

#endif
