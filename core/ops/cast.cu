/* cast: another element type, with a scale and a shift on the way. */
#include "pk_cuda.cuh"
#include "pk_half.h"
#include "rows.cuh"

namespace {
/* Cut towards 0; what does not fit becomes the nearest, NaN becomes 0. */
PK_DEVICE int64_t whole(double x) {
    if (x >= 9223372036854775807.0) return INT64_MAX;
    if (x <= -9223372036854775808.0) return INT64_MIN;
    return x == x ? (int64_t)x : 0;
}
template <class T> PK_DEVICE T held(int64_t x, int64_t low, int64_t high) {
    return (T)(x < low ? low : x > high ? high : x);
}

/* A type of elements: as the integer, float or double that it is read as, and back. */
struct as_f32 {
    typedef float stored;
    static const int is_float = 1, is_wide = 0;
    PK_DEVICE static float number(float x) { return x; }
    PK_DEVICE static float of(double x) { return (float)x; }
};
struct as_f64 {
    typedef double stored;
    static const int is_float = 1, is_wide = 1;
    PK_DEVICE static double number(double x) { return x; }
    PK_DEVICE static double of(double x) { return x; }
};
struct as_f16 {
    typedef uint16_t stored;
    static const int is_float = 1, is_wide = 0;
    PK_DEVICE static float number(uint16_t x) { return pk_from_f16(x); }
    PK_DEVICE static uint16_t of(double x) { return pk_to_f16((float)x); }
};
struct as_bf16 {
    typedef uint16_t stored;
    static const int is_float = 1, is_wide = 0;
    PK_DEVICE static float number(uint16_t x) { return pk_from_bf16(x); }
    PK_DEVICE static uint16_t of(double x) { return pk_to_bf16((float)x); }
};
/* wide: a float does not hold it. */
template <class T, int wide> struct as_whole {
    typedef T stored;
    static const int is_float = 0, is_wide = wide;
    PK_DEVICE static int64_t number(T x) { return (int64_t)x; }
    PK_DEVICE static T of(double x) { return of_whole(whole(x)); }
    PK_DEVICE static T of_whole(int64_t x) {
        if (sizeof(T) == 8) return (T)x;
        const int64_t span = (int64_t)1 << (8 * sizeof(T) % 64);
        if ((T)-1 > 0) return held<T>(x, 0, span - 1);
        return held<T>(x, -(span / 2), span / 2 - 1);
    }
};
struct as_bool {
    typedef uint8_t stored;
    static const int is_float = 0, is_wide = 0;
    PK_DEVICE static int64_t number(uint8_t x) { return x; }
    PK_DEVICE static uint8_t of(double x) { return x != 0.0; }
    PK_DEVICE static uint8_t of_whole(int64_t x) { return x != 0; }
};

/* Integers without scale and shift stay integers; what a float holds is computed in float, the rest
 * in double. */
template <class A, class B> struct convert {
    typename B::stored *out;
    const typename A::stored *in;
    double scale, shift;
    int plain, add;
    PK_DEVICE void operator()(int64_t i) const {
        if constexpr (!A::is_float && !B::is_float) {
            if (plain) {
                out[i] = B::of_whole(A::number(in[i]));
                return;
            }
        }
        const double v = A::is_wide
                             ? (double)A::number(in[i]) * scale + shift
                             : (double)((float)A::number(in[i]) * (float)scale + (float)shift);
        const typename B::stored value = B::of(v);
        out[i] = add ? (typename B::stored)(out[i] + value) : value;
    }
};

template <class A, class B> pk_status run_as(const pk_call *call) {
    const pk_view *x = &call->in[0], *y = &call->out[0];
    const double scale = call->attr[0].f, shift = call->attr[1].f;
    return pk_each(call, pk_count(x),
                   convert<A, B>{(typename B::stored *)y->data, (const typename A::stored *)x->data,
                                 scale, shift, scale == 1.0 && shift == 0.0, pk_adds(call, 0)});
}

template <class A> pk_status run_from(const pk_call *call) {
    switch (call->out[0].dtype) {
    case PK_F32: return run_as<A, as_f32>(call);
    case PK_F64: return run_as<A, as_f64>(call);
    case PK_F16: return run_as<A, as_f16>(call);
    case PK_BF16: return run_as<A, as_bf16>(call);
    case PK_I64: return run_as<A, as_whole<int64_t, 1>>(call);
    case PK_I32: return run_as<A, as_whole<int32_t, 1>>(call);
    case PK_I16: return run_as<A, as_whole<int16_t, 0>>(call);
    case PK_I8: return run_as<A, as_whole<int8_t, 0>>(call);
    case PK_U8: return run_as<A, as_whole<uint8_t, 0>>(call);
    default: return run_as<A, as_bool>(call);
    }
}

/* attr: scale, shift, dtype */
pk_status cast_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *y = &call->out[0];
    if (pk_count(x) != pk_count(y) || y->dtype != call->attr[2].i)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "x has %lld elements, y %lld, of type %d instead of %lld",
                       (long long)pk_count(x), (long long)pk_count(y), (int)y->dtype,
                       (long long)call->attr[2].i);
    PK_TRY(pk_check_add(call, 0));
    switch (x->dtype) {
    case PK_F32: return run_from<as_f32>(call);
    case PK_F64: return run_from<as_f64>(call);
    case PK_F16: return run_from<as_f16>(call);
    case PK_BF16: return run_from<as_bf16>(call);
    case PK_I64: return run_from<as_whole<int64_t, 1>>(call);
    case PK_I32: return run_from<as_whole<int32_t, 1>>(call);
    case PK_I16: return run_from<as_whole<int16_t, 0>>(call);
    case PK_I8: return run_from<as_whole<int8_t, 0>>(call);
    case PK_U8: return run_from<as_whole<uint8_t, 0>>(call);
    default: return run_from<as_bool>(call);
    }
}
} /* namespace */

PK_OP(cast,
      {"cast.forward(x: any; scale: float, shift: float, dtype: int) -> (y: any)", cast_forward});
