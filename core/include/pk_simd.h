/* pk_simd.h: sixteen float lanes on every machine, and the functions of exp's family on them.
 *
 * A pk_vec is one 64-byte register on AVX-512, two of 32 bytes on AVX2, four of 16 bytes on NEON
 * and on the baseline. All lanes compute by themselves; only pk_sum16 and pk_max16 cross lanes,
 * with one fixed tree.  So AVX2, AVX-512 and NEON give the same bits.  pk_fma is one rounding
 * there; the baseline has no such instruction and rounds twice.
 *
 * Typical kernel over n floats (the last, partial vector is handled by the count c):
 *     PK_FOR16(i, c, n) { pk_vec x = pk_load_n(in + i, c); pk_store_n(out + i, pk_tanh(x), c); }
 * Scalar twins (pk_exp1, pk_tanh1 ...) run the same code on one value: use them, not libm, beside
 * vector code. */
#ifndef PK_SIMD_H
#define PK_SIMD_H
#include "pk_vector.h"

/* ---- functions; coefficients are least-squares fits at Chebyshev points, made for this file ----
 */
PK_INLINE pk_vec pk_poly_(pk_vec x, const float *c, int n) {
    pk_vec r = pk_set1(c[n - 1]);
    _Pragma("GCC unroll 10") for (int i = n - 2; i >= 0; i--) r = pk_fma(r, x, pk_set1(c[i]));
    return r;
}
#define PK_POLY(x, ...) \
    pk_poly_(x, (const float[]){__VA_ARGS__}, (int)(sizeof((float[]){__VA_ARGS__}) / 4))

/* <= 1.1 ulp; exp(-inf) = 0, exp(inf) = inf, NaN stays.  Below 2^-126 the result is a denormal. */
PK_INLINE pk_vec pk_exp(pk_vec x) {
    x = pk_min(pk_set1(89.0f), pk_max(pk_set1(-104.0f), x));
    const pk_vec n = pk_round(pk_mul(x, pk_set1(1.44269504f)));
    pk_vec r = pk_fnma(n, pk_set1(0.693359375f), x);
    r = pk_fnma(n, pk_set1(-2.12194440e-4f), r);
    const pk_vec q =
        PK_POLY(r, 0.5f, 1.666651815e-01f, 4.166620225e-02f, 8.368969895e-03f, 1.395062893e-03f);
    const pk_vec p = pk_add(pk_fma(pk_mul(r, r), q, r), pk_set1(1.0f));
#if defined(__AVX512F__)
    /* One instruction for what the others do in nine, with one rounding as well: the same bits. */
    return (pk_vec){{(pk_part)_mm512_scalef_ps(p.p[0], n.p[0])}};
#else
    /* 2^n in two factors: n goes from -150 to 128. */
    const pk_veci whole = pk_to_int(n), half = pk_sar(whole, 1), rest = pk_subi(whole, half);
    const pk_vec a = pk_from_bits(pk_shl(pk_addi(half, pk_set1i(127)), 23));
    const pk_vec b = pk_from_bits(pk_shl(pk_addi(rest, pk_set1i(127)), 23));
    return pk_mul(pk_mul(p, a), b);
#endif
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
    const pk_vec q = PK_POLY(f, 3.333331048e-01f, -2.499998659e-01f, 2.000223100e-01f,
                             -1.666926146e-01f, 1.421856284e-01f, -1.238409430e-01f,
                             1.187347472e-01f, -1.179161966e-01f, 6.916416436e-02f);
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
    const pk_vec q = PK_POLY(s, -3.333328068e-01f, 1.333142519e-01f, -5.373761058e-02f,
                             2.063040249e-02f, -5.693510175e-03f);
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
    const pk_vec q =
        PK_POLY(s, 1.283791661e-01f, -3.761263192e-01f, 1.128368378e-01f, -2.685870603e-02f,
                5.199247040e-03f, -8.121883729e-04f, 8.280388283e-05f);
    const pk_vec g =
        PK_POLY(t, 1.285551190e-01f, 6.356092691e-01f, 1.052944437e-01f, -2.270829864e-02f,
                2.951671602e-03f, -5.751305434e-05f, -4.399996396e-05f, 4.806475772e-06f);
    const pk_vec large = pk_sub(pk_set1(1.0f), pk_exp(pk_neg(pk_fma(t, g, t))));
    return pk_select(pk_lt(a, pk_set1(0.93f)), pk_fma(x, q, x), pk_copysign(large, x));
}

/* sin(x) for quarter = 0, cos(x) for quarter = 1; good to 2e-7 absolute for |x| <= 8192, inaccurate
 * beyond. */
PK_INLINE pk_vec pk_sine_(pk_vec x, int32_t quarter) {
    const pk_vec n = pk_round(pk_mul(x, pk_set1(0.636619772f)));
    pk_vec r = pk_fnma(n, pk_set1(1.5703125f), x);
    r = pk_fnma(n, pk_set1(4.837512969970703125e-4f), r);
    r = pk_fnma(n, pk_set1(7.54978995489188216e-8f), r);
    const pk_vec s = pk_mul(r, r);
    const pk_vec qs =
        PK_POLY(s, -1.666666716e-01f, 8.333329111e-03f, -1.983932889e-04f, 2.718254564e-06f);
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
#define PK_SCALAR(name) \
    PK_INLINE float name##1(float x) { return pk_first(name(pk_set1(x))); }
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
