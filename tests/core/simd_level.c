#include "simd_level.h"

#include "pk_kernel.h"
#include "pk_simd.h"

#define APPLY PK_LEVEL_NAME(simd_apply)
#define REDUCE PK_LEVEL_NAME(simd_reduce)
#define ROOTS PK_LEVEL_NAME(simd_roots)
void APPLY(int32_t f, const float *in, float *out, int64_t n);
void REDUCE(const float *in, int64_t n, float *out);
int64_t ROOTS(uint32_t first, uint32_t end);

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

int64_t ROOTS(uint32_t first, uint32_t end) {
    int64_t wrong = 0;
    for (uint64_t bits = first; bits < end; bits += 16) {
        uint32_t in[16];
        for (uint32_t j = 0; j < 16; j++) in[j] = (uint32_t)bits + j;
        float x[16], wanted[16], a[16], b[16];
        memcpy(x, in, sizeof x);
        pk_store(wanted, pk_sqrt(pk_load(x)));
        pk_vec one = pk_load(x), two = one;
        pk_sqrt2(&one, &two);
        pk_store(a, one), pk_store(b, two);
        for (int j = 0; j < 16; j++) {
            const int nan = wanted[j] != wanted[j];
            wrong += nan ? a[j] == a[j] : memcmp(&a[j], &wanted[j], 4) != 0;
            wrong += nan ? b[j] == b[j] : memcmp(&b[j], &wanted[j], 4) != 0;
        }
    }
    return wrong;
}
