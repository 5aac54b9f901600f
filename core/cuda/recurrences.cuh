/* recurrences.cuh: what recurrent kernels share: a block runs one sequence through all its steps, its
 * threads meet between the products and the gates. */
#ifndef PK_RECURRENCES_CUH
#define PK_RECURRENCES_CUH
#include "elementwise.cuh"
#include "rows.cuh"
#include "sort.cuh"

#define PK_RECURRENT_BLOCK 128

/* In the order of ACTIVATIONS in paddlecli/ops/_recurrent.py. */
enum { PK_CELL_SIGMOID, PK_CELL_TANH, PK_CELL_RELU, PK_CELL_IDENTITY, PK_CELL_ACTIVATIONS };
PK_DEVICE float pk_cell_activate(float x, int64_t kind) {
    switch (kind) {
    case PK_CELL_SIGMOID: return pk_sigmoid(x);
    case PK_CELL_TANH: return tanhf(x);
    case PK_CELL_RELU: return pk_relu(x);
    default: return x;
    }
}
/* dx from dy and y = activate(x) */
PK_DEVICE float pk_cell_derive(float y, float dy, int64_t kind) {
    switch (kind) {
    case PK_CELL_SIGMOID: return dy * (y * (1.0f - y));
    case PK_CELL_TANH: return dy * (1.0f - y * y);
    case PK_CELL_RELU: return y > 0.0f ? dy : 0.0f;
    default: return dy;
    }
}

/* The tokens of a sequence in the order of time. */
struct pk_walk {
    int64_t first, last;
    int reverse;
    PK_DEVICE pk_walk(const int64_t *offsets, int64_t sequence, int reverse_)
        : first(offsets[sequence]), last(offsets[sequence + 1]), reverse(reverse_) {}
    PK_DEVICE int64_t steps() const { return last - first; }
    PK_DEVICE int64_t token(int64_t step) const { return reverse ? last - 1 - step : first + step; }
};

/* c[j] (=|+=) sum over k of a[k] w[k, j], the block's threads along j. */
PK_DEVICE void pk_row_times(const float *a, int64_t k, const float *w, int64_t w_stride, int64_t n,
                            float *c, int add) {
    for (int64_t j = threadIdx.x; j < n; j += PK_RECURRENT_BLOCK) {
        float sum = add ? c[j] : 0.0f;
        for (int64_t i = 0; i < k; i++) sum = fmaf(a[i], w[i * w_stride + j], sum);
        c[j] = sum;
    }
}
/* c[j] (=|+=) sum over k of a[k] w[j, k] */
PK_DEVICE void pk_row_times_turned(const float *a, int64_t k, const float *w, int64_t w_stride,
                                   int64_t n, float *c, int add) {
    for (int64_t j = threadIdx.x; j < n; j += PK_RECURRENT_BLOCK) {
        float sum = add ? c[j] : 0.0f;
        for (int64_t i = 0; i < k; i++) sum = fmaf(a[i], w[j * w_stride + i], sum);
        c[j] = sum;
    }
}

/* dw [k, n] (=|+=) sum over tokens of the row of h before, times `times` where given, and dz. */
struct pk_recurrent_weights {
    const int64_t *offsets;
    const float *h, *h0, *times, *dz;
    float *dw;
    int64_t sequences, k, n, times_stride, dz_stride;
    int reverse, add;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t i = e / n, j = e % n;
        float sum = 0.0f;
        for (int64_t s = 0; s < sequences; s++) {
            const pk_walk walk(offsets, s, reverse);
            for (int64_t t = 0; t < walk.steps(); t++) {
                const int64_t token = walk.token(t);
                float before = h0 ? h0[s * k + i] : 0.0f;
                if (t > 0) before = h[walk.token(t - 1) * k + i];
                if (times) before *= times[token * times_stride + i];
                sum = fmaf(before, dz[token * dz_stride + j], sum);
            }
        }
        pk_put(dw + e, sum, add);
    }
};
#endif
