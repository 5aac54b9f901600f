/* depthwise.h: convolutions of which every group has one input channel (conv->groups ==
 * conv->channels), without im2col: an output is a sum over the kernel's taps, sixteen outputs of a
 * row a vector.
 *
 * Same bits: an output sums over taps, the filter gradient over a plane's rows lane by lane, then
 * over samples in double. */
#ifndef PK_DEPTHWISE_H
#define PK_DEPTHWISE_H
#include "convolutions.h"

/* 1 where the sizes are for these kernels: one channel a group, and rows that fit the scratch. */
#define pk_depthwise_fits PK_LEVEL_NAME(pk_depthwise_fits)
int pk_depthwise_fits(const pk_conv *conv);

/* As pk_conv_forward_after, pk_conv_input_gradient and pk_conv_filter_gradient. */
#define pk_depthwise_forward PK_LEVEL_NAME(pk_depthwise_forward)
void pk_depthwise_forward(const pk_call *call, const pk_conv *conv, const float *x, const float *w,
                          const pk_after *after, float *y);
#define pk_depthwise_input_gradient PK_LEVEL_NAME(pk_depthwise_input_gradient)
void pk_depthwise_input_gradient(const pk_call *call, const pk_conv *conv, const float *dy,
                                 const float *w, int32_t accumulate, float *dx);
#define pk_depthwise_filter_gradient PK_LEVEL_NAME(pk_depthwise_filter_gradient)
void pk_depthwise_filter_gradient(const pk_call *call, const pk_conv *conv, const float *x,
                                  const float *dy, int32_t accumulate, float *dw);

#endif
