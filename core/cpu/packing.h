/* packing.h: transposes, the one movement of data that the tile kernels and ops share. */
#ifndef PK_PACKING_H
#define PK_PACKING_H
#include "pk_kernel.h"

/* out[j, i] = in[i, j] for in [rows, columns]; strides in floats.  In and out must not overlap. */
#define pk_transpose PK_LEVEL_NAME(pk_transpose)
void pk_transpose(const pk_call *call, const float *in, int64_t in_stride, int64_t rows,
                  int64_t columns, float *out, int64_t out_stride);

/* The same for one block in the calling thread. */
#define pk_transpose_block PK_LEVEL_NAME(pk_transpose_block)
void pk_transpose_block(const float *in, int64_t in_stride, int64_t rows, int64_t columns,
                        float *out, int64_t out_stride);

#endif
