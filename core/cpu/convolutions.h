/* convolutions.h: conv2d on NCHW floats, its input gradient and its filter gradient.
 *
 * No im2col buffer in memory: panels of it are packed into per-thread scratch and go through the
 * products' tile kernels. Same bits: forward sums over (channel of the group, kernel row, kernel
 * column) as products.h says; the input gradient first sums over output channels so, for each
 * kernel position, then adds the positions in order; the filter gradient sums over (sample, output
 * position), a sample's positions in chunks as products.h, samples in order.  Nothing depends on
 * the batch's size or on threads. */
#ifndef PK_CONVOLUTIONS_H
#define PK_CONVOLUTIONS_H
#include "products.h"
/* After the activations of products.h. */
#include "conv_sizes.h"

#define pk_conv_forward_after PK_LEVEL_NAME(pk_conv_forward_after)
void pk_conv_forward_after(const pk_call *call, const pk_conv *conv, const float *x, const float *w,
                           const pk_after *after, float *y);
/* Without scale and z. */
#define pk_conv_forward PK_LEVEL_NAME(pk_conv_forward)
void pk_conv_forward(const pk_call *call, const pk_conv *conv, const float *x, const float *w,
                     const float *bias, int32_t activation, int32_t accumulate, float *y);

/* dx (=|+=) gradient of x. */
#define pk_conv_input_gradient PK_LEVEL_NAME(pk_conv_input_gradient)
void pk_conv_input_gradient(const pk_call *call, const pk_conv *conv, const float *dy,
                            const float *w, int32_t accumulate, float *dx);

/* dw (=|+=) gradient of w. */
#define pk_conv_filter_gradient PK_LEVEL_NAME(pk_conv_filter_gradient)
void pk_conv_filter_gradient(const pk_call *call, const pk_conv *conv, const float *x,
                             const float *dy, int32_t accumulate, float *dw);

/* db[c] (=|+=) sum of dy over samples and positions, samples in order. */
#define pk_conv_bias_gradient PK_LEVEL_NAME(pk_conv_bias_gradient)
void pk_conv_bias_gradient(const pk_call *call, const pk_conv *conv, const float *dy,
                           int32_t accumulate, float *db);

#endif
