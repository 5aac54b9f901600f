/* convolutions.cuh: conv2d on NCHW floats as tile products whose matrices are read out of the
 * images.
 *
 * y = w * columns(x), groups side by side; dx = w^T * taps of dy; dw = dy * columns(x)^T, a sum
 * over all positions that is cut into parts by shape.  Indices are of 32 bits where all sizes are
 * below 2^31: divisions of 64 bits cost a multiple. */
#ifndef PK_CONVOLUTIONS_CUH
#define PK_CONVOLUTIONS_CUH
#include "products.cuh"
/* After the activations of elementwise.cuh. */
#include "conv_sizes.h"

/* The numbers of pk_conv in the index type I, with what follows from it. */
template <class I> struct pk_conv_indexed {
    I n, channels, height, width, out_channels, out_h, out_w, kernel_h, kernel_w;
    I stride_h, stride_w, pad_top, pad_left, dilation_h, dilation_w;
    I share, filters, area, out_area,
        pixels; /* channels and filters of a group; kernel, output, input positions */
};
template <class I> pk_conv_indexed<I> pk_conv_in(const pk_conv &c) {
    return pk_conv_indexed<I>{(I)c.n,
                              (I)c.channels,
                              (I)c.height,
                              (I)c.width,
                              (I)c.out_channels,
                              (I)c.out_h,
                              (I)c.out_w,
                              (I)c.kernel_h,
                              (I)c.kernel_w,
                              (I)c.stride_h,
                              (I)c.stride_w,
                              (I)c.pad_top,
                              (I)c.pad_left,
                              (I)c.dilation_h,
                              (I)c.dilation_w,
                              (I)(c.channels / c.groups),
                              (I)(c.out_channels / c.groups),
                              (I)(c.kernel_h * c.kernel_w),
                              (I)(c.out_h * c.out_w),
                              (I)(c.height * c.width)};
}

/* x under tap `tap` of the filter at output position `at`; tap: (channel of the group, kernel row,
 * column). */
template <class I> struct pk_conv_columns {
    pk_conv_indexed<I> c;
    const float *x;
    PK_DEVICE float value(I group, I tap, I at) const {
        const I kw = tap % c.kernel_w, kh = tap / c.kernel_w % c.kernel_h, channel = tap / c.area;
        const I ow = at % c.out_w, oh = at / c.out_w % c.out_h, sample = at / c.out_area;
        const int64_t h = (int64_t)(oh * c.stride_h + kh * c.dilation_h) - (int64_t)c.pad_top;
        const int64_t w = (int64_t)(ow * c.stride_w + kw * c.dilation_w) - (int64_t)c.pad_left;
        if (h < 0 || w < 0 || h >= (int64_t)c.height || w >= (int64_t)c.width) return 0.0f;
        return x[((int64_t)(sample * c.channels + group * c.share + channel) * c.height + h) *
                     c.width +
                 w];
    }
};

/* ---- forward: filters by (sample, position) over taps ---- */
template <class I> struct pk_conv_filters {
    const float *w;
    int64_t filters, taps;
    int k_first;
    PK_DEVICE float at(int64_t group, int64_t i, int64_t k) const {
        return w[(group * filters + i) * taps + k];
    }
};
template <class I> struct pk_conv_inputs {
    pk_conv_columns<I> columns;
    int j_first;
    PK_DEVICE float at(int64_t group, int64_t k, int64_t j) const {
        return columns.value((I)group, (I)k, (I)j);
    }
};
template <class I> struct pk_conv_outputs {
    pk_conv_indexed<I> c;
    float *y;
    const float *bias, *scale; /* by filter; NULL: none */
    const float *z; /* like y; NULL: none */
    int activation, add;
    PK_DEVICE void put(int64_t group, int64_t i, int64_t j, float sum) const {
        const int64_t filter = group * c.filters + i, sample = (I)j / c.out_area,
                      position = (I)j % c.out_area;
        const int64_t at = (sample * c.out_channels + filter) * c.out_area + position;
        if (scale) sum *= scale[filter];
        if (bias) sum += bias[filter];
        if (z) sum += z[at];
        pk_put(y + at, pk_activate(activation, sum), add);
    }
};

template <class I> pk_status pk_conv_forward_as(const pk_call *call, const pk_conv &conv,
                                                const float *x, const float *w, const float *bias,
                                                int activation, int add, float *y,
                                                const float *scale, const float *z) {
    const pk_conv_indexed<I> c = pk_conv_in<I>(conv);
    const int64_t taps = (int64_t)c.share * c.area;
    return pk_tile_product(call, conv.groups, c.filters, conv.n * c.out_area, taps,
                           pk_conv_filters<I>{w, (int64_t)c.filters, taps, 1},
                           pk_conv_inputs<I>{pk_conv_columns<I>{c, x}, 1},
                           pk_conv_outputs<I>{c, y, bias, scale, z, activation, add});
}

/* ---- input gradient: channels by (sample, pixel) over (filter, kernel position) ---- */
template <class I> struct pk_conv_turned {
    pk_conv_indexed<I> c;
    const float *w;
    int k_first;
    PK_DEVICE float at(int64_t group, int64_t i, int64_t k) const {
        const I filter = (I)k / c.area, tap = (I)k % c.area;
        return w[((group * c.filters + filter) * c.share + i) * c.area + tap];
    }
};
template <class I> struct pk_conv_taps {
    pk_conv_indexed<I> c;
    const float *dy;
    int j_first;
    PK_DEVICE float at(int64_t group, int64_t k, int64_t j) const {
        const I filter = (I)k / c.area, kw = (I)k % c.kernel_w, kh = (I)k / c.kernel_w % c.kernel_h;
        const I pixel = (I)j % c.pixels, sample = (I)j / c.pixels;
        const int64_t h = (int64_t)(pixel / c.width + c.pad_top) - (int64_t)(kh * c.dilation_h);
        const int64_t w = (int64_t)(pixel % c.width + c.pad_left) - (int64_t)(kw * c.dilation_w);
        if (h < 0 || w < 0) return 0.0f;
        const I oh = (I)h / c.stride_h, ow = (I)w / c.stride_w;
        if (oh * c.stride_h != (I)h || ow * c.stride_w != (I)w || oh >= c.out_h || ow >= c.out_w)
            return 0.0f;
        return dy[((sample * c.out_channels + group * c.filters + filter) * c.out_h + oh) *
                      c.out_w +
                  ow];
    }
};
template <class I> struct pk_conv_pixels {
    pk_conv_indexed<I> c;
    float *dx;
    int add;
    PK_DEVICE void put(int64_t group, int64_t i, int64_t j, float sum) const {
        const int64_t sample = (I)j / c.pixels, pixel = (I)j % c.pixels;
        pk_put(dx + (sample * c.channels + group * c.share + i) * c.pixels + pixel, sum, add);
    }
};

template <class I> pk_status pk_conv_input_as(const pk_call *call, const pk_conv &conv,
                                              const float *dy, const float *w, int add, float *dx) {
    const pk_conv_indexed<I> c = pk_conv_in<I>(conv);
    return pk_tile_product(call, conv.groups, c.share, conv.n * c.pixels,
                           (int64_t)c.filters * c.area, pk_conv_turned<I>{c, w, 1},
                           pk_conv_taps<I>{c, dy, 1}, pk_conv_pixels<I>{c, dx, add});
}

/* ---- filter gradient: filters by taps over (sample, position) ---- */
template <class I> struct pk_conv_slopes {
    pk_conv_indexed<I> c;
    const float *dy;
    int k_first;
    PK_DEVICE float at(int64_t group, int64_t i, int64_t k) const {
        const I sample = (I)k / c.out_area, position = (I)k % c.out_area;
        return dy[(sample * c.out_channels + group * c.filters + i) * c.out_area + position];
    }
};
template <class I> struct pk_conv_turned_inputs {
    pk_conv_columns<I> columns;
    int j_first;
    PK_DEVICE float at(int64_t group, int64_t k, int64_t j) const {
        return columns.value((I)group, (I)j, (I)k);
    }
};
struct pk_conv_weights {
    float *dw;
    int64_t filters, taps;
    int add;
    PK_DEVICE void put(int64_t group, int64_t i, int64_t j, float sum) const {
        pk_put(dw + (group * filters + i) * taps + j, sum, add);
    }
};

template <class I> pk_status pk_conv_filter_as(const pk_call *call, const pk_conv &conv,
                                               const float *x, const float *dy, int add,
                                               float *dw) {
    const pk_conv_indexed<I> c = pk_conv_in<I>(conv);
    const int64_t taps = (int64_t)c.share * c.area;
    return pk_tile_product(call, conv.groups, c.filters, taps, conv.n * c.out_area,
                           pk_conv_slopes<I>{c, dy, 1},
                           pk_conv_turned_inputs<I>{pk_conv_columns<I>{c, x}, 0},
                           pk_conv_weights{dw, (int64_t)c.filters, taps, add});
}

/* ---- by index type ---- */
static inline int pk_conv_is_small(const pk_conv &c) {
    const int64_t most = 1ll << 30;
    return c.n * c.channels * c.height * c.width < most &&
           c.n * c.out_channels * c.out_h * c.out_w < most &&
           c.channels * c.out_channels * c.kernel_h * c.kernel_w < most &&
           (c.height + c.pad_top) * 4 < most && (c.width + c.pad_left) * 4 < most &&
           c.stride_h * c.out_h + c.dilation_h * c.kernel_h < most &&
           c.stride_w * c.out_w + c.dilation_w * c.kernel_w < most;
}
/* y (=|+=) activation(conv(x, w) * scale + bias + z); bias, scale [out_channels], z like y; each may
 * be NULL */
static inline pk_status pk_conv_forward(const pk_call *call, const pk_conv &c, const float *x,
                                        const float *w, const float *bias, int activation, int add,
                                        float *y, const float *scale = NULL,
                                        const float *z = NULL) {
    if (pk_conv_is_small(c))
        return pk_conv_forward_as<uint32_t>(call, c, x, w, bias, activation, add, y, scale, z);
    return pk_conv_forward_as<int64_t>(call, c, x, w, bias, activation, add, y, scale, z);
}
static inline pk_status pk_conv_input_gradient(const pk_call *call, const pk_conv &c,
                                               const float *dy, const float *w, int add,
                                               float *dx) {
    if (pk_conv_is_small(c)) return pk_conv_input_as<uint32_t>(call, c, dy, w, add, dx);
    return pk_conv_input_as<int64_t>(call, c, dy, w, add, dx);
}
static inline pk_status pk_conv_filter_gradient(const pk_call *call, const pk_conv &c,
                                                const float *x, const float *dy, int add,
                                                float *dw) {
    if (pk_conv_is_small(c)) return pk_conv_filter_as<uint32_t>(call, c, x, dy, add, dw);
    return pk_conv_filter_as<int64_t>(call, c, x, dy, add, dw);
}
#endif
