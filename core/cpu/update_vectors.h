/* update_vectors.h: two square roots at once, for the rules that have one: where nothing clips or
 * regularises, the root and the division are most of an update. */
#ifndef PK_UPDATE_VECTORS_H
#define PK_UPDATE_VECTORS_H
#include "pk_simd.h"
#include "updates.h"

/* 1 where clipping and regularising leave every gradient as it is, but for turning -0 into 0. */
static inline int pk_update_is_plain(pk_update u) {
    return u.scale == 1.0f && u.limit == INFINITY && u.l2 == 0.0f && u.l1 == 0.0f;
}

/* Square roots of two vectors, both correctly rounded.  A root keeps the divider busy for as long
 * as ten multiplications take, and the multipliers stand still; so of two roots one is made here
 * and one there.  From an estimate r of 1/sqrt(x) within 2^-14, q = x r and h = r/2 are refined
 * together, and the remainder x - q q, which is exact, gives the last bit (P. Markstein, "IA-64 and
 * Elementary Functions", 2000).  tests/core/test_simd.c compares every mantissa.  Other levels have
 * no estimate that is good enough, and make both in the divider. */
PK_INLINE void pk_sqrt2(pk_vec *a, pk_vec *b) {
#if defined(__AVX512F__)
    const pk_vec x = *a, half = pk_set1(0.5f);
    const pk_vec r = {{(pk_part)_mm512_rsqrt14_ps(x.p[0])}};
    pk_vec q = pk_mul(x, r), h = pk_mul(r, half);
    const pk_vec e = pk_fnma(q, h, half);
    q = pk_fma(q, e, q), h = pk_fma(h, e, h);
    q = pk_fma(pk_fnma(q, q, x), h, q);
    /* Where the remainder would be a denormal, and for 0, infinity, NaN and negative numbers. */
    const __m512i place = _mm512_sub_epi32((__m512i)x.p[0], _mm512_set1_epi32(0x10000000));
    const __mmask16 odd = _mm512_cmpge_epu32_mask(place, _mm512_set1_epi32(0x6f800000));
    if (__builtin_expect(odd != 0, 0)) q.p[0] = (pk_part)_mm512_mask_sqrt_ps(q.p[0], odd, x.p[0]);
    *a = q;
#else
    *a = pk_sqrt(*a);
#endif
    *b = pk_sqrt(*b);
}

/* The loop of a rule that moves by a / (sqrt(square) + epsilon), for plain gradients.  `before` gives
 * `a` and `square` of elements i to i + c, at most sixteen and maybe none, and moves the slots;
 * `after` moves p by `step`. */
#define PK_UPDATE_ROOTS(n, i, c, a, square, before, epsilon, step, after)                          \
    for (int64_t first_ = 0; first_ < (n); first_ += 32) {                                         \
        pk_vec a_[2], root_[2];                                                                    \
        for (int j_ = 0; j_ < 2; j_++) {                                                           \
            const int64_t i = first_ + 16 * j_, c = pk_max_i64(0, (n) - i);                        \
            pk_vec a, square;                                                                      \
            before;                                                                                \
            a_[j_] = a, root_[j_] = square;                                                        \
        }                                                                                          \
        pk_sqrt2(&root_[0], &root_[1]);                                                            \
        for (int j_ = 0; j_ < 2; j_++) {                                                           \
            const int64_t i = first_ + 16 * j_, c = pk_max_i64(0, (n) - i);                        \
            const pk_vec step = pk_div(a_[j_], pk_add(root_[j_], pk_set1(epsilon)));               \
            after;                                                                                 \
        }                                                                                          \
    }
#endif
