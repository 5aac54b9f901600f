/* dims.h: sums over some of a tensor's dimensions, and the way back. */
#ifndef PK_DIMS_H
#define PK_DIMS_H
#include "pk_kernel.h"

/* Bit d of `summed`: dimension d is summed.  out (kept dimensions only) (=|+=) scale * sum of x.
 * Order: along the last dimension the 16 lanes of pk_sum16 (where it is summed), over the others in
 * order, in chunks of PK_ROW_CHUNK; a sum over all elements is pk_sum_flat's. */
#define pk_sum_dims PK_LEVEL_NAME(pk_sum_dims)
void pk_sum_dims(const pk_call *call, float *out, const float *x, int32_t ndim, const int64_t *dim,
                 uint32_t summed, float scale, int accumulate);

/* out [dim] (=|+=) scale * x, x [kept dimensions only] repeated along those in `summed`. */
#define pk_repeat_dims PK_LEVEL_NAME(pk_repeat_dims)
void pk_repeat_dims(const pk_call *call, float *out, const float *x, int32_t ndim,
                    const int64_t *dim, uint32_t summed, float scale, int accumulate);

/* The bits of a list of dimensions (negative ones count from the end; none: all), for a tensor of
 * ndim.  Not ok where one is out of range. */
#define pk_dims_bits PK_LEVEL_NAME(pk_dims_bits)
pk_status pk_dims_bits(const pk_call *call, const int64_t *list, int32_t ndim, uint32_t *bits);

#endif
