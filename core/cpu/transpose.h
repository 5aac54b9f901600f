/* transpose.h: sixteen rows by four columns in registers; for packing.c and the tile code. */
#ifndef PK_TRANSPOSE_H
#define PK_TRANSPOSE_H
#include "pk_simd.h"

/* Interleave within each 16-byte quarter of a register: a0 b0 a1 b1, a2 b2 a3 b3, and the same by
 * pairs of floats. */
#if defined(__AVX512F__)
#define PK_LOW(a, b) ((pk_part)_mm512_unpacklo_ps(a, b))
#define PK_HIGH(a, b) ((pk_part)_mm512_unpackhi_ps(a, b))
#define PK_LOW2(a, b) ((pk_part)_mm512_unpacklo_pd((__m512d)(a), (__m512d)(b)))
#define PK_HIGH2(a, b) ((pk_part)_mm512_unpackhi_pd((__m512d)(a), (__m512d)(b)))
#elif defined(__AVX2__)
#define PK_LOW(a, b) ((pk_part)_mm256_unpacklo_ps(a, b))
#define PK_HIGH(a, b) ((pk_part)_mm256_unpackhi_ps(a, b))
#define PK_LOW2(a, b) ((pk_part)_mm256_unpacklo_pd((__m256d)(a), (__m256d)(b)))
#define PK_HIGH2(a, b) ((pk_part)_mm256_unpackhi_pd((__m256d)(a), (__m256d)(b)))
#elif defined(__ARM_NEON)
#define PK_LOW(a, b) ((pk_part)vzip1q_f32((float32x4_t)(a), (float32x4_t)(b)))
#define PK_HIGH(a, b) ((pk_part)vzip2q_f32((float32x4_t)(a), (float32x4_t)(b)))
#define PK_LOW2(a, b) ((pk_part)vzip1q_f64((float64x2_t)(a), (float64x2_t)(b)))
#define PK_HIGH2(a, b) ((pk_part)vzip2q_f64((float64x2_t)(a), (float64x2_t)(b)))
#else
#define PK_LOW(a, b) ((pk_part)_mm_unpacklo_ps(a, b))
#define PK_HIGH(a, b) ((pk_part)_mm_unpackhi_ps(a, b))
#define PK_LOW2(a, b) ((pk_part)_mm_unpacklo_pd((__m128d)(a), (__m128d)(b)))
#define PK_HIGH2(a, b) ((pk_part)_mm_unpackhi_pd((__m128d)(a), (__m128d)(b)))
#endif

typedef float pk_four_u __attribute__((vector_size(16), may_alias, aligned(4)));

/* Four floats of each of the rows that one part's quarters stand for: rows 0, 4, 8, 12 of p on
 * AVX-512. */
PK_INLINE pk_part pk_quarters(const float *p, int64_t stride) {
    const pk_four a = *(const pk_four_u *)p;
#if defined(__AVX512F__)
    const pk_four b = *(const pk_four_u *)(p + 4 * stride),
                  c = *(const pk_four_u *)(p + 8 * stride);
    const pk_four d = *(const pk_four_u *)(p + 12 * stride);
    const __m256 ab = _mm256_insertf128_ps(_mm256_castps128_ps256(a), b, 1);
    const __m256 cd = _mm256_insertf128_ps(_mm256_castps128_ps256(c), d, 1);
    return (pk_part)_mm512_insertf32x8(_mm512_castps256_ps512(ab), cd, 1);
#elif defined(__AVX2__)
    const pk_four b = *(const pk_four_u *)(p + 4 * stride);
    return (pk_part)_mm256_insertf128_ps(_mm256_castps128_ps256(a), b, 1);
#else
    (void)stride;
    return (pk_part)a;
#endif
}

/* out[j] holds column j of the sixteen rows at p, for j = 0..3. */
PK_INLINE void pk_columns_of_16(const float *p, int64_t stride, pk_vec out[4]) {
    PK_PARTWISE {
        const float *q = p + i_ * PK_PART_LANES * stride;
        const pk_part a = pk_quarters(q, stride), b = pk_quarters(q + stride, stride);
        const pk_part c = pk_quarters(q + 2 * stride, stride),
                      d = pk_quarters(q + 3 * stride, stride);
        const pk_part ab = PK_LOW(a, b), cd = PK_LOW(c, d), ef = PK_HIGH(a, b), gh = PK_HIGH(c, d);
        out[0].p[i_] = PK_LOW2(ab, cd);
        out[1].p[i_] = PK_HIGH2(ab, cd);
        out[2].p[i_] = PK_LOW2(ef, gh);
        out[3].p[i_] = PK_HIGH2(ef, gh);
    }
}

/* Column of one float of each of `rows` (at most sixteen) rows; 0 in the other lanes. */
PK_INLINE pk_vec pk_column_of(const float *p, int64_t stride, int64_t rows) {
    float lanes[16] = {0};
    for (int64_t r = 0; r < rows; r++) lanes[r] = p[r * stride];
    return pk_load(lanes);
}

#endif
