/* pk_simd.h: sixteen float lanes on every machine, and the functions of exp's family on them.
 *
 * A pk_vec is one 64-byte register on AVX-512, two of 32 bytes on AVX2, four of 16 bytes on NEON and on the baseline.
 * All lanes compute by themselves; only pk_sum16 and pk_max16 cross lanes, with one fixed tree.  So AVX2, AVX-512 and
 * NEON give the same bits.  pk_fma is one rounding there; the baseline has no such instruction and rounds twice.
 *
 * Typical kernel over n floats (the last, partial vector is handled by the count c):
 *     PK_FOR16(i, c, n) { pk_vec x = pk_load_n(in + i, c); pk_store_n(out + i, pk_tanh(x), c); }
 * Scalar twins (pk_exp1, pk_tanh1 ...) run the same code on one value: use them, not libm, beside vector code. */
#ifndef PK_SIMD_H
#define PK_SIMD_H
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__) || defined(__AVX2__) || defined(__SSE2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#else
#error "pk_simd.h knows x86-64 and aarch64 only"
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
#define pk_p_fnma(a, b, c) ((pk_part)vfmsq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b)))
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
/* Adding and taking away 1.5 * 2^23 rounds to nearest even; from 2^22 on it would not, there x stays (from 2^23 on it is
 * whole; between them halves stay, which exp's and sine's ranges never meet). */
PK_INLINE pk_part pk_p_round(pk_part a) {
    const pk_part big = pk_p_set1(12582912.0f);
    const pk_part size = (pk_part)((pk_parti)a & 0x7fffffff), sign = (pk_part)((pk_parti)a & INT32_MIN);
    const pk_part near = (pk_part)((pk_parti)((size + big) - big) | (pk_parti)sign);
    return pk_p_select(size < pk_p_set1(4194304.0f), near, a);
}
PK_INLINE pk_part pk_p_floor(pk_part a) {
    const pk_part r = pk_p_round(a);
    return pk_p_select(r > a, r - pk_p_set1(1.0f), r);
}
#endif

/* ---- sixteen lanes ---- */
typedef struct pk_vec { pk_part p[PK_PARTS]; } pk_vec;
typedef struct pk_veci { pk_parti p[PK_PARTS]; } pk_veci;
#if defined(__AVX512F__)
typedef __mmask16 pk_mask;
#else
typedef struct pk_mask { pk_parti p[PK_PARTS]; } pk_mask;
#endif

#define PK_PARTWISE _Pragma("GCC unroll 4") for (int i_ = 0; i_ < PK_PARTS; i_++)
#define PK_VEC1(name, expr) \
    PK_INLINE pk_vec name(pk_vec a) { pk_vec r; PK_PARTWISE { pk_part x = a.p[i_]; r.p[i_] = (expr); } return r; }
#define PK_VEC2(name, expr)                      \
    PK_INLINE pk_vec name(pk_vec a, pk_vec b) {  \
        pk_vec r;                                \
        PK_PARTWISE { pk_part x = a.p[i_], y = b.p[i_]; r.p[i_] = (expr); } \
        return r;                                \
    }
#define PK_INT2(name, expr)                         \
    PK_INLINE pk_veci name(pk_veci a, pk_veci b) {  \
        pk_veci r;                                  \
        PK_PARTWISE { pk_parti x = a.p[i_], y = b.p[i_]; r.p[i_] = (expr); } \
        return r;                                   \
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
PK_INLINE void pk_storei(int32_t *p, pk_veci v) {
    PK_PARTWISE *(pk_parti_u *)(p + i_ * PK_PART_LANES) = v.p[i_];
}
PK_INLINE pk_vec pk_set1(float x) { pk_vec r; PK_PARTWISE r.p[i_] = pk_p_set1(x); return r; }
PK_INLINE pk_veci pk_set1i(int32_t x) { pk_veci r; PK_PARTWISE r.p[i_] = (pk_parti){0} + x; return r; }
PK_INLINE pk_vec pk_zero(void) { pk_vec r; PK_PARTWISE r.p[i_] = (pk_part){0}; return r; }
PK_INLINE float pk_first(pk_vec v) { return v.p[0][0]; }

PK_VEC2(pk_add, x + y)
PK_VEC2(pk_sub, x - y)
PK_VEC2(pk_mul, x * y)
PK_VEC2(pk_div, x / y)
/* x > y ? x : y and x < y ? x : y: where either is NaN the result is the second.  pk_max(floor, x) keeps x's NaN. */
PK_VEC2(pk_max, pk_p_max(x, y))
PK_VEC2(pk_min, pk_p_min(x, y))
PK_VEC1(pk_sqrt, pk_p_sqrt(x))
PK_VEC1(pk_round, pk_p_round(x))  /* to the nearest, ties to even */
PK_VEC1(pk_floor, pk_p_floor(x))
PK_VEC1(pk_abs, (pk_part)((pk_parti)x & 0x7fffffff))
PK_VEC1(pk_neg, (pk_part)((pk_parti)x ^ INT32_MIN))
PK_VEC2(pk_copysign, (pk_part)(((pk_parti)x & 0x7fffffff) | ((pk_parti)y & INT32_MIN)))
PK_VEC1(pk_relu, pk_p_max((pk_part){0}, x))  /* keeps a NaN */
PK_INT2(pk_addi, x + y)
PK_INT2(pk_subi, x - y)
PK_INT2(pk_andi, x & y)
PK_INT2(pk_ori, x | y)
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
PK_INLINE pk_veci pk_shl(pk_veci a, int n) { PK_PARTWISE a.p[i_] = a.p[i_] << n; return a; }
PK_INLINE pk_veci pk_sar(pk_veci a, int n) { PK_PARTWISE a.p[i_] = a.p[i_] >> n; return a; }  /* keeps the sign */
PK_INLINE pk_veci pk_bits(pk_vec a) { pk_veci r; PK_PARTWISE r.p[i_] = (pk_parti)a.p[i_]; return r; }
PK_INLINE pk_vec pk_from_bits(pk_veci a) { pk_vec r; PK_PARTWISE r.p[i_] = (pk_part)a.p[i_]; return r; }
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
PK_INLINE pk_mask pk_first_lanes(int64_t n) { return (pk_mask)(n >= 16 ? 0xffff : n <= 0 ? 0 : (1 << n) - 1); }
#else
#define PK_COMPARE(name, op, code)                                        \
    PK_INLINE pk_mask name(pk_vec a, pk_vec b) {                          \
        pk_mask m;                                                        \
        PK_PARTWISE m.p[i_] = (pk_parti)(a.p[i_] op b.p[i_]);             \
        return m;                                                         \
    }
PK_INLINE pk_vec pk_select(pk_mask m, pk_vec yes, pk_vec no) {
    pk_vec r;
    PK_PARTWISE r.p[i_] = pk_p_select(m.p[i_], yes.p[i_], no.p[i_]);
    return r;
}
PK_INLINE pk_mask pk_mask_and(pk_mask a, pk_mask b) { PK_PARTWISE a.p[i_] &= b.p[i_]; return a; }
PK_INLINE pk_mask pk_mask_or(pk_mask a, pk_mask b) { PK_PARTWISE a.p[i_] |= b.p[i_]; return a; }
PK_INLINE pk_mask pk_mask_not(pk_mask a) { PK_PARTWISE a.p[i_] = ~a.p[i_]; return a; }
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

/* ---- the first n lanes (n may be 0 or above 16); nothing beyond them is touched, other lanes read as 0 ---- */
#if defined(__AVX512F__)
PK_INLINE pk_vec pk_load_n(const float *p, int64_t n) {
    return (pk_vec){{(pk_part)_mm512_maskz_loadu_ps(pk_first_lanes(n), p)}};
}
PK_INLINE void pk_store_n(float *p, pk_vec v, int64_t n) { _mm512_mask_storeu_ps(p, pk_first_lanes(n), v.p[0]); }
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
#define PK_FOLD(v, op)                                                                                \
    const __m256 lo_ = _mm512_castps512_ps256(v.p[0]), hi_ = _mm512_extractf32x8_ps(v.p[0], 1);       \
    const __m256 h_ = op(256, lo_, hi_);                                                              \
    const pk_four q_ = op(, _mm256_castps256_ps128(h_), _mm256_extractf128_ps(h_, 1))
#elif defined(__AVX2__)
#define PK_FOLD(v, op)                                                                                \
    const __m256 h_ = op(256, v.p[0], v.p[1]);                                                        \
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

/* ---- functions; coefficients are least-squares fits at Chebyshev points, made for this file ---- */
PK_INLINE pk_vec pk_poly_(pk_vec x, const float *c, int n) {
    pk_vec r = pk_set1(c[n - 1]);
    _Pragma("GCC unroll 10") for (int i = n - 2; i >= 0; i--) r = pk_fma(r, x, pk_set1(c[i]));
    return r;
}
#define PK_POLY(x, ...) pk_poly_(x, (const float[]){__VA_ARGS__}, (int)(sizeof((float[]){__VA_ARGS__}) / 4))

/* <= 1.1 ulp; exp(-inf) = 0, exp(inf) = inf, NaN stays.  Below 2^-126 the result is a denormal. */
PK_INLINE pk_vec pk_exp(pk_vec x) {
    x = pk_min(pk_set1(89.0f), pk_max(pk_set1(-104.0f), x));
    const pk_vec n = pk_round(pk_mul(x, pk_set1(1.44269504f)));
    pk_vec r = pk_fnma(n, pk_set1(0.693359375f), x);
    r = pk_fnma(n, pk_set1(-2.12194440e-4f), r);
    const pk_vec q = PK_POLY(r, 0.5f, 1.666651815e-01f, 4.166620225e-02f, 8.368969895e-03f, 1.395062893e-03f);
    const pk_vec p = pk_add(pk_fma(pk_mul(r, r), q, r), pk_set1(1.0f));
    /* 2^n in two factors: n goes from -150 to 128. */
    const pk_veci whole = pk_to_int(n), half = pk_sar(whole, 1), rest = pk_subi(whole, half);
    const pk_vec a = pk_from_bits(pk_shl(pk_addi(half, pk_set1i(127)), 23));
    const pk_vec b = pk_from_bits(pk_shl(pk_addi(rest, pk_set1i(127)), 23));
    return pk_mul(pk_mul(p, a), b);
}

/* <= 1.1 ulp; log(0) = -inf, log of a negative number = NaN. */
PK_INLINE pk_vec pk_log(pk_vec x) {
    const pk_mask tiny = pk_lt(x, pk_set1(1.17549435e-38f));
    const pk_vec y = pk_select(tiny, pk_mul(x, pk_set1(33554432.0f)), x);
    /* y = m * 2^e with m from sqrt(1/2) to sqrt(2) */
    const pk_veci bits = pk_bits(y), e = pk_sar(pk_subi(bits, pk_set1i(0x3f3504f3)), 23);
    const pk_vec f = pk_sub(pk_from_bits(pk_subi(bits, pk_shl(e, 23))), pk_set1(1.0f));
    const pk_vec k = pk_sub(pk_to_float(e), pk_select(tiny, pk_set1(25.0f), pk_zero()));
    const pk_vec s = pk_mul(f, f);
    const pk_vec q = PK_POLY(f, 3.333331048e-01f, -2.499998659e-01f, 2.000223100e-01f, -1.666926146e-01f,
                             1.421856284e-01f, -1.238409430e-01f, 1.187347472e-01f, -1.179161966e-01f,
                             6.916416436e-02f);
    pk_vec r = pk_fma(pk_mul(f, q), s, pk_mul(k, pk_set1(-2.12194440e-4f)));
    r = pk_add(pk_fnma(s, pk_set1(0.5f), r), f);
    r = pk_fma(k, pk_set1(0.693359375f), r);
    r = pk_select(pk_gt(x, pk_set1(3.40282347e+38f)), x, r);
    r = pk_select(pk_eq(x, pk_zero()), pk_set1(-__builtin_inff()), r);
    return pk_select(pk_ge(x, pk_zero()), r, pk_set1(__builtin_nanf("")));
}

/* log(1 + x) without loss near 0, for x > -1; <= 2 ulp. */
PK_INLINE pk_vec pk_log1p(pk_vec x) {
    const pk_vec w = pk_add(x, pk_set1(1.0f));
    /* What 1 + x lost is added back to first order. */
    const pk_vec lost = pk_div(pk_sub(pk_sub(w, pk_set1(1.0f)), x), w);
    const pk_vec r = pk_sub(pk_log(w), lost);
    const pk_vec y = pk_select(pk_eq(w, pk_set1(1.0f)), x, r);
    return pk_select(pk_eq(x, pk_set1(__builtin_inff())), x, y);
}

/* log(1 + exp(x)) */
PK_INLINE pk_vec pk_softplus(pk_vec x) {
    return pk_add(pk_max(pk_zero(), x), pk_log1p(pk_exp(pk_neg(pk_abs(x)))));
}

PK_INLINE pk_vec pk_tanh(pk_vec x) {
    const pk_vec one = pk_set1(1.0f), a = pk_abs(x), s = pk_mul(x, x);
    const pk_vec q = PK_POLY(s, -3.333328068e-01f, 1.333142519e-01f, -5.373761058e-02f, 2.063040249e-02f,
                             -5.693510175e-03f);
    const pk_vec small = pk_fma(pk_mul(x, s), q, x);
    const pk_vec e = pk_exp(pk_add(a, a));
    const pk_vec large = pk_sub(one, pk_div(pk_set1(2.0f), pk_add(e, one)));
    return pk_select(pk_lt(a, pk_set1(0.625f)), small, pk_copysign(large, x));
}

/* 1 / (1 + exp(-x)), written so that nothing overflows before the result is 0. */
PK_INLINE pk_vec pk_sigmoid(pk_vec x) {
    const pk_vec one = pk_set1(1.0f), e = pk_exp(pk_neg(pk_abs(x)));
    return pk_div(pk_select(pk_lt(x, pk_zero()), e, one), pk_add(one, e));
}

PK_INLINE pk_vec pk_erf(pk_vec x) {
    const pk_vec a = pk_abs(x), s = pk_mul(x, x), t = pk_min(pk_set1(4.0f), a);
    const pk_vec q = PK_POLY(s, 1.283791661e-01f, -3.761263192e-01f, 1.128368378e-01f, -2.685870603e-02f,
                             5.199247040e-03f, -8.121883729e-04f, 8.280388283e-05f);
    const pk_vec g = PK_POLY(t, 1.285551190e-01f, 6.356092691e-01f, 1.052944437e-01f, -2.270829864e-02f,
                             2.951671602e-03f, -5.751305434e-05f, -4.399996396e-05f, 4.806475772e-06f);
    const pk_vec large = pk_sub(pk_set1(1.0f), pk_exp(pk_neg(pk_fma(t, g, t))));
    return pk_select(pk_lt(a, pk_set1(0.93f)), pk_fma(x, q, x), pk_copysign(large, x));
}

/* sin(x) for quarter = 0, cos(x) for quarter = 1; good to 2e-7 absolute for |x| <= 8192, inaccurate beyond. */
PK_INLINE pk_vec pk_sine_(pk_vec x, int32_t quarter) {
    const pk_vec n = pk_round(pk_mul(x, pk_set1(0.636619772f)));
    pk_vec r = pk_fnma(n, pk_set1(1.5703125f), x);
    r = pk_fnma(n, pk_set1(4.837512969970703125e-4f), r);
    r = pk_fnma(n, pk_set1(7.54978995489188216e-8f), r);
    const pk_vec s = pk_mul(r, r);
    const pk_vec qs = PK_POLY(s, -1.666666716e-01f, 8.333329111e-03f, -1.983932889e-04f, 2.718254564e-06f);
    const pk_vec qc = PK_POLY(s, 4.166664556e-02f, -1.388736302e-03f, 2.443789708e-05f);
    const pk_vec sine = pk_fma(pk_mul(r, s), qs, r);
    const pk_vec cosine = pk_fma(pk_mul(s, s), qc, pk_fnma(s, pk_set1(0.5f), pk_set1(1.0f)));
    const pk_veci turn = pk_addi(pk_to_int(n), pk_set1i(quarter));
    const pk_vec odd = pk_to_float(pk_andi(turn, pk_set1i(1)));
    const pk_vec y = pk_select(pk_ne(odd, pk_zero()), cosine, sine);
    return pk_from_bits(pk_xori(pk_bits(y), pk_shl(pk_andi(turn, pk_set1i(2)), 30)));
}
PK_INLINE pk_vec pk_sin(pk_vec x) { return pk_sine_(x, 0); }
PK_INLINE pk_vec pk_cos(pk_vec x) { return pk_sine_(x, 1); }

/* One value through the vector code. */
#define PK_SCALAR(name) PK_INLINE float name##1(float x) { return pk_first(name(pk_set1(x))); }
PK_SCALAR(pk_exp)
PK_SCALAR(pk_log)
PK_SCALAR(pk_log1p)
PK_SCALAR(pk_softplus)
PK_SCALAR(pk_tanh)
PK_SCALAR(pk_sigmoid)
PK_SCALAR(pk_erf)
PK_SCALAR(pk_sin)
PK_SCALAR(pk_cos)

/* ---- loops ---- */
/* i = 0, 16, 32 ... below n; c = lanes left, at most 16. */
#define PK_FOR16(i, c, n) \
    for (int64_t i = 0, c; i < (n) && (c = (n) - i < 16 ? (n) - i : 16, 1); i += 16)

/* Sum of n floats: lane l adds x[l], x[l + 16] ... in order, then pk_sum16. */
PK_INLINE float pk_row_sum(const float *x, int64_t n) {
    pk_vec s = pk_zero();
    PK_FOR16(i, c, n) s = pk_add(s, pk_load_n(x + i, c));
    return pk_sum16(s);
}
/* Sum of x[i] * y[i], in the same lanes. */
PK_INLINE float pk_row_dot(const float *x, const float *y, int64_t n) {
    pk_vec s = pk_zero();
    PK_FOR16(i, c, n) s = pk_fma(pk_load_n(x + i, c), pk_load_n(y + i, c), s);
    return pk_sum16(s);
}
/* Largest of n floats; -inf for none.  A NaN may be passed over: test for it where it matters. */
PK_INLINE float pk_row_max(const float *x, int64_t n) {
    pk_vec m = pk_set1(-__builtin_inff());
    PK_FOR16(i, c, n) m = pk_max(m, pk_load_or(x + i, c, -__builtin_inff()));
    return pk_max16(m);
}
#endif
