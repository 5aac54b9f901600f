/* columns.h: pieces of the im2col matrix of a convolution, made when they are needed.
 *
 * The matrix has a row for each (channel of the group, kernel row, kernel column) and a column for each (sample, output
 * row, output column), samples outermost.  A range of columns is a list of runs; a run is a stretch of one output row. */
#ifndef PK_COLUMNS_H
#define PK_COLUMNS_H
#include "convolutions.h"

#define PK_COLUMN_BLOCK 256 /* columns taken at once */

typedef struct pk_run {
    int64_t base;    /* of x: the sample's first value of the group, plus row and column of the first tap */
    int32_t at;      /* first column, counted from the range's begin */
    int32_t count;
    int32_t row, column; /* of x under the first tap of the first output; negative in the padding */
} pk_run;

typedef struct pk_runs {
    int32_t count;
    int32_t inside;  /* every tap of every column lies in x */
    pk_run run[PK_COLUMN_BLOCK];
} pk_runs;

/* Runs of columns begin..end (at most PK_COLUMN_BLOCK) for one group. */
#define pk_find_runs PK_LEVEL_NAME(pk_find_runs)
void pk_find_runs(const pk_conv *conv, int64_t group, int64_t begin, int64_t end, pk_runs *runs);

/* Rows first..first + rows of the im2col matrix over the runs: out[r * stride + column].  Up to 15 floats behind the last
 * column are overwritten; columns behind the runs' end up to the next multiple of 16 become 0. */
#define pk_copy_columns PK_LEVEL_NAME(pk_copy_columns)
void pk_copy_columns(const pk_conv *conv, const pk_runs *runs, const float *x, int64_t first, int64_t rows, float *out,
                     int64_t stride);

/* The other way: adds in[r * stride + column] to the x that the column's tap r lies on, rows in order. */
#define pk_add_columns PK_LEVEL_NAME(pk_add_columns)
void pk_add_columns(const pk_conv *conv, const pk_runs *runs, const float *in, int64_t stride, int64_t first,
                    int64_t rows, float *x);

#endif
