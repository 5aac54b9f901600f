/* pk_vector.h: sixteen float lanes on every machine: loads, arithmetic, masks, the one tree across
 * lanes.  Kernels include pk_simd.h, which adds the functions. */
#ifndef PK_VECTOR_H
#define PK_VECTOR_H
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__) || defined(__AVX2__) || defined(__SSE2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#else
#error "pk_vector.h knows x86-64 and aarch64 only"
#endif

#define PK_INLINE static inline __attribute__((always_inline))

/* ---- one register, a "part" of the sixteen lanes ---- */
#if defined(__AVX512F__)
#define PK_PARTS 1
#elif defined(__AVX2__)
#define PK_PARTS 2
#else
#define PK_PARTS 4
#endif
#define PK_PART_LANES (16 / PK_PARTS)
typedef float pk_part __attribute__((vector_size(64 / PK_PARTS), may_alias));
typedef float pk_part_u __attribute__((vector_size(64 / PK_PARTS), may_alias, aligned(4)));
typedef int32_t pk_parti __attribute__((vector_size(64 / PK_PARTS), may_alias));
typedef uint32_t pk_partu __attribute__((vector_size(64 / PK_PARTS), may_alias));
typedef int32_t pk_parti_u __attribute__((vector_size(64 / PK_PARTS), may_alias, aligned(4)));

#if defined(__AVX512F__)
#define PK_HAS_FMA 1
#define pk_p_set1(x) ((pk_part)_mm512_set1_ps(x))
#define pk_p_fma(a, b, c) ((pk_part)_mm512_fmadd_ps(a, b, c))
#define pk_p_fnma(a, b, c) ((pk_part)_mm512_fnmadd_ps(a, b, c))
#define pk_p_max(a, b) ((pk_part)_mm512_max_ps(a, b))
#define pk_p_min(a, b) ((pk_part)_mm512_min_ps(a, b))
#define pk_p_sqrt(a) ((pk_part)_mm512_sqrt_ps(a))
#define pk_p_round(a) ((pk_part)_mm512_roundscale_ps(a, 8))
#define pk_p_floor(a) ((pk_part)_mm512_roundscale_ps(a, 9))
#elif defined(__AVX2__)
#define PK_HAS_FMA 1
#define pk_p_set1(x) ((pk_part)_mm256_set1_ps(x))
#define pk_p_fma(a, b, c) ((pk_part)_mm256_fmadd_ps(a, b, c))
#define pk_p_fnma(a, b, c) ((pk_part)_mm256_fnmadd_ps(a, b, c))
#define pk_p_max(a, b) ((pk_part)_mm256_max_ps(a, b))
#define pk_p_min(a, b) ((pk_part)_mm256_min_ps(a, b))
#define pk_p_sqrt(a) ((pk_part)_mm256_sqrt_ps(a))
#define pk_p_round(a) ((pk_part)_mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))
#define pk_p_floor(a) ((pk_part)_mm256_floor_ps(a))
#define pk_p_select(m, a, b) ((pk_part)_mm256_blendv_ps(b, a, (pk_part)(m)))
#elif defined(__ARM_NEON)
#define PK_HAS_FMA 1
#define pk_p_set1(x) ((pk_part)vdupq_n_f32(x))
#define pk_p_fma(a, b, c) ((pk_part)vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b)))
#define pk_p_fnma(a, b, c) \
    ((pk_part)vfmsq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b)))
#define pk_p_select(m, a, b) \
    ((pk_part)vbslq_f32((uint32x4_t)(m), (float32x4_t)(a), (float32x4_t)(b)))
/* Written as x86 does it, so that a NaN takes the same way. */
#define pk_p_max(a, b) pk_p_select((a) > (b), a, b)
#define pk_p_min(a, b) pk_p_select((a) < (b), a, b)
#define pk_p_sqrt(a) ((pk_part)vsqrtq_f32((float32x4_t)(a)))
#define pk_p_round(a) ((pk_part)vrndnq_f32((float32x4_t)(a)))
#define pk_p_floor(a) ((pk_part)vrndmq_f32((float32x4_t)(a)))
#else
#define PK_HAS_FMA 0
#define pk_p_set1(x) ((pk_part)_mm_set1_ps(x))
#define pk_p_fma(a, b, c) ((a) * (b) + (c))
#define pk_p_fnma(a, b, c) ((c) - (a) * (b))
#define pk_p_max(a, b) ((pk_part)_mm_max_ps(a, b))
#define pk_p_min(a, b) ((pk_part)_mm_min_ps(a, b))
#define pk_p_sqrt(a) ((pk_part)_mm_sqrt_ps(a))
#define pk_p_select(m, a, b) \
    ((pk_part)_mm_or_ps(_mm_and_ps((pk_part)(m), a), _mm_andnot_ps((pk_part)(m), b)))
/* Adding and taking away 2^23 rounds a size below it to the nearest even; from there on all is
 * whole. */
PK_INLINE pk_part pk_p_round(pk_part a) {
    const pk_part big = pk_p_set1(8388608.0f);
    const pk_part size = (pk_part)((pk_parti)a & 0x7fffffff);
    const pk_parti sign = (pk_parti)a & INT32_MIN;
    const pk_part near = (pk_part)((pk_parti)((size + big) - big) | sign);
    return pk_p_select(size < big, near, a);
}
PK_INLINE pk_part pk_p_floor(pk_part a) {
    const pk_part r = pk_p_round(a);
    return pk_p_select(r > a, r - pk_p_set1(1.0f), r);
}
#endif

/* ---- sixteen lanes ---- */
typedef struct pk_vec {
    pk_part p[PK_PARTS];
} pk_vec;
typedef struct pk_veci {
    pk_parti p[PK_PARTS];
} pk_veci;
#if defined(__AVX512F__)
typedef __mmask16 pk_mask;
#else
typedef struct pk_mask {
    pk_parti p[PK_PARTS];
} pk_mask;
#endif

#define PK_PARTWISE _Pragma("GCC unroll 4") for (int i_ = 0; i_ < PK_PARTS; i_++)
#define PK_VEC1(name, expr)           \
    PK_INLINE pk_vec name(pk_vec a) { \
        pk_vec r;                     \
        PK_PARTWISE {                 \
            pk_part x = a.p[i_];      \
            r.p[i_] = (expr);         \
        }                             \
        return r;                     \
    }
#define PK_VEC2(name, expr)                     \
    PK_INLINE pk_vec name(pk_vec a, pk_vec b) { \
        pk_vec r;                               \
        PK_PARTWISE {                           \
            pk_part x = a.p[i_], y = b.p[i_];   \
            r.p[i_] = (expr);                   \
        }                                       \
        return r;                               \
    }
#define PK_INT2(name, expr)                        \
    PK_INLINE pk_veci name(pk_veci a, pk_veci b) { \
        pk_veci r;                                 \
        PK_PARTWISE {                              \
            pk_parti x = a.p[i_], y = b.p[i_];     \
            r.p[i_] = (expr);                      \
        }                                          \
        return r;                                  \
    }

PK_INLINE pk_vec pk_load(const float *p) {
    pk_vec r;
    PK_PARTWISE r.p[i_] = *(const pk_part_u *)(p + i_ * PK_PART_LANES);
    return r;
}
PK_INLINE void pk_store(float *p, pk_vec v) {
    PK_PARTWISE *(pk_part_u *)(p + i_ * PK_PART_LANES) = v.p[i_];
}
PK_INLINE pk_veci pk_loadi(const int32_t *p) {
    pk_veci r;
    PK_PARTWISE r.p[i_] = *(const pk_parti_u *)(p + i_ * PK_PART_LANES);
    return r;
}
PK_INLINE pk_vec pk_set1(float x) {
    pk_vec r;
    PK_PARTWISE r.p[i_] = pk_p_set1(x);
    return r;
}
PK_INLINE pk_veci pk_set1i(int32_t x) {
    pk_veci r;
    PK_PARTWISE r.p[i_] = (pk_parti){0} + x;
    return r;
}
PK_INLINE pk_vec pk_zero(void) {
    pk_vec r;
    PK_PARTWISE r.p[i_] = (pk_part){0};
    return r;
}
PK_INLINE float pk_first(pk_vec v) { return v.p[0][0]; }

PK_VEC2(pk_add, x + y)
PK_VEC2(pk_sub, x - y)
PK_VEC2(pk_mul, (x) * (y))
PK_VEC2(pk_div, x / y)
/* x > y ? x : y and x < y ? x : y: where either is NaN the result is the second.  pk_max(floor, x)
 * keeps x's NaN. */
PK_VEC2(pk_max, pk_p_max(x, y))
PK_VEC2(pk_min, pk_p_min(x, y))
PK_VEC1(pk_sqrt, pk_p_sqrt(x))
PK_VEC1(pk_round, pk_p_round(x)) /* to the nearest, ties to even */
PK_VEC1(pk_floor, pk_p_floor(x))
PK_VEC1(pk_abs, (pk_part)((pk_parti)x & 0x7fffffff))
PK_VEC1(pk_neg, (pk_part)((pk_parti)x ^ INT32_MIN))
PK_VEC2(pk_copysign, (pk_part)(((pk_parti)x & 0x7fffffff) | ((pk_parti)y & INT32_MIN)))
PK_VEC1(pk_relu, pk_p_max((pk_part){0}, x))             /* keeps a NaN */
PK_INT2(pk_addi, (pk_parti)((pk_partu)x + (pk_partu)y)) /* wraps around */
PK_INT2(pk_subi, (pk_parti)((pk_partu)x - (pk_partu)y))
PK_INT2(pk_andi, (x) & (y))
PK_INT2(pk_xori, x ^ y)
/* a*b + c and c - a*b */
PK_INLINE pk_vec pk_fma(pk_vec a, pk_vec b, pk_vec c) {
    pk_vec r;
    PK_PARTWISE r.p[i_] = pk_p_fma(a.p[i_], b.p[i_], c.p[i_]);
    return r;
}
PK_INLINE pk_vec pk_fnma(pk_vec a, pk_vec b, pk_vec c) {
    pk_vec r;
    PK_PARTWISE r.p[i_] = pk_p_fnma(a.p[i_], b.p[i_], c.p[i_]);
    return r;
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
PK_INLINE pk_veci pk_shl(pk_veci a, int n) {
    PK_PARTWISE a.p[i_] = (pk_parti)((pk_partu)a.p[i_] << n);
    return a;
}
/* Keeps the sign. */
PK_INLINE pk_veci pk_sar(pk_veci a, int n) {
    PK_PARTWISE a.p[i_] = a.p[i_] >> n;
    return a;
}
PK_INLINE pk_veci pk_bits(pk_vec a) {
    pk_veci r;
    PK_PARTWISE r.p[i_] = (pk_parti)a.p[i_];
    return r;
}
PK_INLINE pk_vec pk_from_bits(pk_veci a) {
    pk_vec r;
    PK_PARTWISE r.p[i_] = (pk_part)a.p[i_];
    return r;
}
/* Float to int cuts towards zero; outside of int's range the result differs between machines. */
PK_INLINE pk_veci pk_to_int(pk_vec a) {
    pk_veci r;
    PK_PARTWISE r.p[i_] = __builtin_convertvector(a.p[i_], pk_parti);
    return r;
}
PK_INLINE pk_vec pk_to_float(pk_veci a) {
    pk_vec r;
    PK_PARTWISE r.p[i_] = __builtin_convertvector(a.p[i_], pk_part);
    return r;
}

/* ---- masks: lane by lane yes or no ---- */
#if defined(__AVX512F__)
#define PK_COMPARE(name, op, code) \
    PK_INLINE pk_mask name(pk_vec a, pk_vec b) { return _mm512_cmp_ps_mask(a.p[0], b.p[0], code); }
PK_INLINE pk_vec pk_select(pk_mask m, pk_vec yes, pk_vec no) {
    return (pk_vec){{(pk_part)_mm512_mask_blend_ps(m, no.p[0], yes.p[0])}};
}
PK_INLINE pk_mask pk_mask_and(pk_mask a, pk_mask b) { return a & b; }
PK_INLINE pk_mask pk_mask_or(pk_mask a, pk_mask b) { return a | b; }
PK_INLINE pk_mask pk_mask_not(pk_mask a) { return (pk_mask)~a; }
PK_INLINE int pk_any(pk_mask m) { return m != 0; }
PK_INLINE pk_mask pk_first_lanes(int64_t n) {
    return (pk_mask)(n >= 16 ? 0xffff : n <= 0 ? 0 : (1 << n) - 1);
}
#else
#define PK_COMPARE(name, op, code)                            \
    PK_INLINE pk_mask name(pk_vec a, pk_vec b) {              \
        pk_mask m;                                            \
        PK_PARTWISE m.p[i_] = (pk_parti)(a.p[i_] op b.p[i_]); \
        return m;                                             \
    }
PK_INLINE pk_vec pk_select(pk_mask m, pk_vec yes, pk_vec no) {
    pk_vec r;
    PK_PARTWISE r.p[i_] = pk_p_select(m.p[i_], yes.p[i_], no.p[i_]);
    return r;
}
PK_INLINE pk_mask pk_mask_and(pk_mask a, pk_mask b) {
    PK_PARTWISE a.p[i_] &= b.p[i_];
    return a;
}
PK_INLINE pk_mask pk_mask_or(pk_mask a, pk_mask b) {
    PK_PARTWISE a.p[i_] |= b.p[i_];
    return a;
}
PK_INLINE pk_mask pk_mask_not(pk_mask a) {
    PK_PARTWISE a.p[i_] = ~a.p[i_];
    return a;
}
PK_INLINE int pk_any(pk_mask m) {
    int32_t lanes[16];
    memcpy(lanes, &m, sizeof lanes);
    int32_t any = 0;
    for (int i = 0; i < 16; i++) any |= lanes[i];
    return any != 0;
}
PK_INLINE pk_mask pk_first_lanes(int64_t n) {
    static const int32_t lane[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const pk_veci at = pk_loadi(lane), end = pk_set1i((int32_t)n);
    pk_mask m;
    PK_PARTWISE m.p[i_] = (pk_parti)(at.p[i_] < end.p[i_]);
    return m;
}
#endif
PK_COMPARE(pk_lt, <, _CMP_LT_OQ)
PK_COMPARE(pk_le, <=, _CMP_LE_OQ)
PK_COMPARE(pk_gt, >, _CMP_GT_OQ)
PK_COMPARE(pk_ge, >=, _CMP_GE_OQ)
PK_COMPARE(pk_eq, ==, _CMP_EQ_OQ)
PK_COMPARE(pk_ne, !=, _CMP_NEQ_UQ)
/* Lanes lo..hi, which may lie outside of 0..16. */
PK_INLINE pk_mask pk_lanes_between(int64_t lo, int64_t hi) {
    return pk_mask_and(pk_first_lanes(hi), pk_mask_not(pk_first_lanes(lo)));
}
PK_INLINE pk_mask pk_is_nan(pk_vec a) { return pk_ne(a, a); }

/* ---- the first n lanes; n may be 0 or above 16 ----
 * Memory behind them is not touched; the other lanes read as 0. */
#if defined(__AVX512F__)
/* Whole vectors apart: a mask made anew for each costs as much as four multiplications. */
PK_INLINE pk_vec pk_load_n(const float *p, int64_t n) {
    if (n >= 16) return pk_load(p);
    return (pk_vec){{(pk_part)_mm512_maskz_loadu_ps(pk_first_lanes(n), p)}};
}
PK_INLINE void pk_store_n(float *p, pk_vec v, int64_t n) {
    if (n >= 16) pk_store(p, v);
    else _mm512_mask_storeu_ps(p, pk_first_lanes(n), v.p[0]);
}
#elif defined(__AVX2__)
PK_INLINE pk_vec pk_load_n(const float *p, int64_t n) {
    if (n >= 16) return pk_load(p);
    const pk_mask m = pk_first_lanes(n);
    pk_vec r;
    PK_PARTWISE r.p[i_] = (pk_part)_mm256_maskload_ps(p + i_ * 8, (__m256i)m.p[i_]);
    return r;
}
/* By halves: masked stores of 8 lanes take tens of cycles on some processors. */
PK_INLINE void pk_store_n(float *p, pk_vec v, int64_t n) {
    if (n >= 16) {
        pk_store(p, v);
        return;
    }
    pk_part left = v.p[0];
    if (n & 8) {
        *(pk_part_u *)p = v.p[0];
        left = v.p[1];
        p += 8;
    }
    __m128 four = _mm256_castps256_ps128(left);
    if (n & 4) {
        _mm_storeu_ps(p, four);
        four = _mm256_extractf128_ps(left, 1);
        p += 4;
    }
    if (n & 2) {
        _mm_storel_pi((__m64 *)p, four);
        four = _mm_movehl_ps(four, four);
        p += 2;
    }
    if (n & 1) _mm_store_ss(p, four);
}
#else
PK_INLINE pk_vec pk_load_n(const float *p, int64_t n) {
    if (n >= 16) return pk_load(p);
    float lanes[16] = {0};
    for (int64_t i = 0; i < n; i++) lanes[i] = p[i];
    return pk_load(lanes);
}
PK_INLINE void pk_store_n(float *p, pk_vec v, int64_t n) {
    if (n >= 16) {
        pk_store(p, v);
        return;
    }
    float lanes[16];
    pk_store(lanes, v);
    for (int64_t i = 0; i < n; i++) p[i] = lanes[i];
}
#endif
/* v where m, else 0. */
PK_INLINE pk_vec pk_keep(pk_mask m, pk_vec v) {
#if defined(__AVX512F__)
    return (pk_vec){{(pk_part)_mm512_maskz_mov_ps(m, v.p[0])}};
#else
    PK_PARTWISE v.p[i_] = (pk_part)((pk_parti)v.p[i_] & m.p[i_]);
    return v;
#endif
}
/* The lanes of m; others read as 0 and their memory is not touched. */
PK_INLINE pk_vec pk_load_mask(const float *p, pk_mask m) {
#if defined(__AVX512F__)
    return (pk_vec){{(pk_part)_mm512_maskz_loadu_ps(m, p)}};
#elif defined(__AVX2__)
    pk_vec r;
    PK_PARTWISE r.p[i_] = (pk_part)_mm256_maskload_ps(p + i_ * 8, (__m256i)m.p[i_]);
    return r;
#else
    int32_t on[16];
    float lanes[16] = {0};
    memcpy(on, &m, sizeof on);
    for (int i = 0; i < 16; i++)
        if (on[i]) lanes[i] = p[i];
    return pk_load(lanes);
#endif
}
/* As pk_load_n, with `fill` in the other lanes. */
PK_INLINE pk_vec pk_load_or(const float *p, int64_t n, float fill) {
    return n >= 16 ? pk_load(p) : pk_select(pk_first_lanes(n), pk_load_n(p, n), pk_set1(fill));
}

/* ---- across lanes: i with i + 8, then i + 4, i + 2, i + 1 ---- */
typedef float pk_four __attribute__((vector_size(16), may_alias));
#if defined(__AVX512F__)
#define PK_FOLD(v, op)                                                                          \
    const __m256 lo_ = _mm512_castps512_ps256(v.p[0]), hi_ = _mm512_extractf32x8_ps(v.p[0], 1); \
    const __m256 h_ = op(256, lo_, hi_);                                                        \
    const pk_four q_ = op(, _mm256_castps256_ps128(h_), _mm256_extractf128_ps(h_, 1))
#elif defined(__AVX2__)
#define PK_FOLD(v, op)                         \
    const __m256 h_ = op(256, v.p[0], v.p[1]); \
    const pk_four q_ = op(, _mm256_castps256_ps128(h_), _mm256_extractf128_ps(h_, 1))
#else
#define PK_FOLD(v, op) const pk_four q_ = op(, op(, v.p[0], v.p[2]), op(, v.p[1], v.p[3]))
#endif
#if defined(__ARM_NEON)
#define PK_FOLD_MAX(bits, a, b) pk_p_max(a, b)
#else
#define PK_FOLD_MAX(bits, a, b) _mm##bits##_max_ps(a, b)
#endif
#define PK_FOLD_ADD(bits, a, b) ((a) + (b))
PK_INLINE float pk_sum16(pk_vec v) {
    PK_FOLD(v, PK_FOLD_ADD);
    return (q_[0] + q_[2]) + (q_[1] + q_[3]);
}
PK_INLINE float pk_max16(pk_vec v) {
    PK_FOLD(v, PK_FOLD_MAX);
    const float a = q_[0] > q_[2] ? q_[0] : q_[2], b = q_[1] > q_[3] ? q_[1] : q_[3];
    return a > b ? a : b;
}

#endif
