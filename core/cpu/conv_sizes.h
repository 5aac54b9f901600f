/* conv_sizes.h: what the kernels of conv2d and conv2d_tiled are given, checked and put into the
 * form of convolutions.h. */
#ifndef PK_CONV_SIZES_H
#define PK_CONV_SIZES_H
#include "convolutions.h"

/* x, w and y are views of the input, the filter and the output, or of their gradients; stride, pad
 * and dilation lists as attributes have them: a count, then the numbers. */
#define pk_conv_sizes PK_LEVEL_NAME(pk_conv_sizes)
pk_status pk_conv_sizes(const pk_call *call, const pk_view *x, const pk_view *w, const pk_view *y,
                        const int64_t *stride, const int64_t *pad, const int64_t *dilation,
                        int64_t groups, pk_conv *conv);

/* For a forward kernel with the inputs x, w, b, scale, z, of which the last three may be absent. */
#define pk_conv_after PK_LEVEL_NAME(pk_conv_after)
pk_status pk_conv_after(const pk_call *call, const pk_conv *conv, int64_t activation,
                        pk_after *after);

#endif
