#include "simd_level.h"

#include "pk_kernel.h"
#include "pk_simd.h"

#define APPLY PK_LEVEL_NAME(simd_apply)
#define REDUCE PK_LEVEL_NAME(simd_reduce)
void APPLY(int32_t f, const float *in, float *out, int64_t n);
void REDUCE(const float *in, int64_t n, float *out);

void APPLY(int32_t f, const float *in, float *out, int64_t n) {
    int32_t number = 0;
#define F(name)        \
    if (f == number++) \
        PK_FOR16(i, c, n) pk_store_n(out + i, pk_##name(pk_load_n(in + i, c)), c);
    EACH_FUNCTION(F)
#undef F
}

void REDUCE(const float *in, int64_t n, float *out) {
    out[0] = pk_row_sum(in, n);
    out[1] = pk_row_max(in, n);
    out[2] = pk_row_dot(in, in, n);
    out[3] = pk_sum16(pk_load_n(in, n));
    out[4] = pk_max16(pk_load_or(in, n, -1e30f));
}
