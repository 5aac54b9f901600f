/* moments.h: mean and variance of one row, of values that may lie far from zero. */
#ifndef PK_MOMENTS_H
#define PK_MOMENTS_H
#include "pk_simd.h"

typedef struct pk_moments {
    float mean, left; /* the mean is mean + left; left is what the rounding of `mean` lost */
    float variance;   /* biased, at least 0 */
} pk_moments;

/* Of n >= 1 floats.  The mean is taken out before squares are summed, and what its rounding left is
 * taken out of them. */
PK_INLINE pk_moments pk_moments_of(const float *x, int64_t n) {
    const float size = (float)n, first = x[0];
    pk_vec sum = pk_zero(), squares = pk_zero(), rest = pk_zero();
    PK_FOR16(i, c, n) sum = pk_add(sum, pk_sub(pk_load_or(x + i, c, first), pk_set1(first)));
    const float mean = first + pk_sum16(sum) / size;
    PK_FOR16(i, c, n) {
        const pk_vec d = pk_sub(pk_load_or(x + i, c, mean), pk_set1(mean));
        squares = pk_fma(d, d, squares), rest = pk_add(rest, d);
    }
    const float left = pk_sum16(rest) / size, variance = pk_sum16(squares) / size - left * left;
    return (pk_moments){mean, left, variance > 0.0f ? variance : 0.0f};
}
#endif
