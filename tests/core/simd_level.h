/* simd_level.h: the functions of pk_simd.h as one level compiles them. */
#ifndef PK_SIMD_LEVEL_H
#define PK_SIMD_LEVEL_H
#include <stdint.h>

/* Names as F(name): pk_<name> of pk_simd.h. */
#define EACH_FUNCTION(F)                                                                          \
    F(exp)                                                                                        \
    F(log) F(log1p) F(softplus) F(tanh) F(sigmoid) F(erf) F(sin) F(cos) F(sqrt) F(round) F(floor) \
        F(relu)

/* out = function number f of in; n floats in memory of exactly that size. */
typedef void (*simd_apply_fn)(int32_t f, const float *in, float *out, int64_t n);
/* out[0..4]: row sum, row maximum, dot product of in with itself, sum of 16 and maximum of 16 first
 * lanes. */
typedef void (*simd_reduce_fn)(const float *in, int64_t n, float *out);
/* How many roots of the floats with bits first..end, a multiple of 16 of them, are not what the
 * machine's own instruction gives. */
typedef int64_t (*simd_roots_fn)(uint32_t first, uint32_t end);

#endif
