/* rows.h: rows of bytes moved, gathered and added up by index. */
#ifndef PK_ROWS_H
#define PK_ROWS_H
#include "pk_kernel.h"

/* Bytes of an element. */
static inline int64_t pk_element_bytes(int32_t dtype) {
    static const int8_t bytes[] = {4, 8, 2, 2, 8, 4, 2, 1, 1, 1};
    return bytes[dtype];
}

/* Kernels of any element type can add to an output of floats only: PK_BAD_CALL where `accumulate`
 * asks for more. */
#define pk_check_add PK_LEVEL_NAME(pk_check_add)
pk_status pk_check_add(const pk_call *call, int32_t out);

/* out[r, 0..bytes) = in[r, 0..bytes) for all rows; strides in bytes.  add: the rows are floats and
 * are added. */
#define pk_move_rows PK_LEVEL_NAME(pk_move_rows)
void pk_move_rows(const pk_call *call, void *out, int64_t out_stride, const void *in,
                  int64_t in_stride, int64_t rows, int64_t bytes, int add);

/* PK_BAD_DATA naming the first of n indices outside of 0..height; `skip` is allowed as well. */
#define pk_check_index PK_LEVEL_NAME(pk_check_index)
pk_status pk_check_index(const pk_call *call, const int64_t *index, int64_t n, int64_t height,
                         int64_t skip, const char *name);

/* out[i] = x[index[i]] for rows of `bytes`; zeros where index[i] == skip.  add: floats, added. */
#define pk_gather_rows PK_LEVEL_NAME(pk_gather_rows)
void pk_gather_rows(const pk_call *call, void *out, const void *x, const int64_t *index,
                    int64_t rows, int64_t bytes, int64_t skip, int add);

/* out [height, width] = 0 (unless add), then out[index[i]] += x[i] in the order of i, but for
 * index[i] == skip. */
#define pk_add_rows PK_LEVEL_NAME(pk_add_rows)
void pk_add_rows(const pk_call *call, float *out, int64_t height, const float *x,
                 const int64_t *index, int64_t rows, int64_t width, int64_t skip, int add);

#endif
