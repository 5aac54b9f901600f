/* elementwise.cuh: kernels that treat every element alone.
 *
 * A kernel file writes its function as a struct:
 *     struct relu { PK_DEVICE float operator()(float x) const { return pk_relu(x); } };
 *     pk_status forward(const pk_call *call) { return pk_map<1>(call, relu{}); }
 * pk_map takes inputs of the output's size, pk_broadcast two that are spread over the output as
 * numpy does it (and a third one of the output's size).  Attributes are members of the struct. */
#ifndef PK_ELEMENTWISE_CUH
#define PK_ELEMENTWISE_CUH
#include "pk_cuda.cuh"

#include "spread.h"

/* ---- functions ---- */
PK_DEVICE float pk_relu(float x) { return x > 0.0f || x != x ? x : 0.0f; }
/* Nothing overflows before the result is 0. */
PK_DEVICE float pk_sigmoid(float x) {
    const float e = expf(-fabsf(x));
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}
/* x cut to [low, high]; a NaN stays one. */
PK_DEVICE float pk_cut(float x, float low, float high) {
    return x < low ? low : x > high ? high : x;
}
PK_DEVICE float pk_softplus(float x) { return fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x))); }

enum {
    PK_ACT_NONE = 0,
    PK_ACT_RELU = 1,
    PK_ACT_TANH = 2,
    PK_ACT_SIGMOID = 3
}; /* as in core/cpu/products.h */
PK_DEVICE float pk_activate(int activation, float x) {
    switch (activation) {
    case PK_ACT_RELU: return pk_relu(x);
    case PK_ACT_TANH: return tanhf(x);
    case PK_ACT_SIGMOID: return pk_sigmoid(x);
    default: return x;
    }
}

/* ---- maps ---- */
template <int inputs, class F> struct pk_map_kernel {
    F f;
    float *out;
    const float *in[4];
    int add;
    PK_DEVICE void operator()(int64_t i) const {
        float value;
        if constexpr (inputs == 1) value = f(in[0][i]);
        else if constexpr (inputs == 2) value = f(in[0][i], in[1][i]);
        else if constexpr (inputs == 3) value = f(in[0][i], in[1][i], in[2][i]);
        else value = f(in[0][i], in[1][i], in[2][i], in[3][i]);
        pk_put(out + i, value, add);
    }
};

/* out[i] = f(in 0 [i], ...) of the first `inputs` inputs, which must have the output's number of
 * elements. */
template <int inputs, class F> pk_status pk_map(const pk_call *call, const F &f) {
    const int64_t n = pk_count(&call->out[0]);
    pk_map_kernel<inputs, F> k = {f, pk_f32(&call->out[0]), {}, pk_adds(call, 0)};
    for (int32_t i = 0; i < inputs; i++) {
        if (pk_count(&call->in[i]) != n)
            return pk_fail(call, PK_BAD_SHAPE, -1, "input %d has %lld elements, the output %lld",
                           (int)i, (long long)pk_count(&call->in[i]), (long long)n);
        k.in[i] = pk_f32(&call->in[i]);
    }
    return pk_each(call, n, k);
}

/* ---- broadcasting ---- */
template <int with_d, class F> struct pk_broadcast_kernel {
    F f;
    float *out;
    const float *x, *y, *d;
    pk_spread s;
    int add;
    PK_DEVICE void operator()(int64_t i) const {
        const int64_t row = s.dim[s.n - 1], at = i % row;
        int64_t at_x, at_y;
        pk_spread_row(&s, i / row, &at_x, &at_y);
        const float vx = x[at_x + at * s.x[s.n - 1]], vy = y[at_y + at * s.y[s.n - 1]];
        if constexpr (with_d) pk_put(out + i, f(vx, vy, d[i]), add);
        else pk_put(out + i, f(vx, vy), add);
    }
};

/* out = f(x, y), or with_d f(x, y, d) where d has the output's shape; the first attribute is the
 * axis. */
template <int with_d, class F> pk_status pk_broadcast(const pk_call *call, const F &f) {
    const pk_view *out = &call->out[0];
    const int64_t n = pk_count(out);
    pk_broadcast_kernel<with_d, F> k = {f,
                                        pk_f32(out),
                                        pk_f32(&call->in[0]),
                                        pk_f32(&call->in[1]),
                                        with_d ? pk_f32(&call->in[2]) : NULL,
                                        {},
                                        pk_adds(call, 0)};
    PK_TRY(pk_spread_over(call, &call->in[0], &call->in[1], out, call->attr[0].i, &k.s));
    if (with_d && pk_count(&call->in[2]) != n)
        return pk_fail(call, PK_BAD_SHAPE, -1, "input 2 has %lld elements, the output %lld",
                       (long long)pk_count(&call->in[2]), (long long)n);
    return pk_each(call, n, k);
}
#endif
