/* winograd.h: 3x3 convolutions of stride 1 with a quarter of the products.
 *
 * The method of Winograd (S. Winograd, Arithmetic Complexity of Computations, 1980; for networks
 * A. Lavin and S. Gray, arXiv 1509.09308): 4x4 outputs are interpolated from the products of two
 * polynomials at 0, +-5/8, +-3/2 and infinity, along each direction.  So a tile of 6x6 inputs, its
 * 16 outputs and a filter have 36 values each in the transformed space, where the convolution is 36
 * products of matrices over channels.  With these points the largest error is some units of 1e-6 of
 * the largest output; the usual 0, +-1, +-2 lose four times as much.
 *
 * Same bits: a value sums over channels in order, in chunks of WINO_CHUNK that start at 0 and are
 * added in order; the filter gradient over tiles, samples outermost, in chunks whose size the image
 * and the channels fix.  Neither threads nor what else is in the batch change a bit. */
#ifndef PK_WINOGRAD_H
#define PK_WINOGRAD_H
#include "convolutions.h"

typedef enum pk_pass { PK_PASS_FORWARD, PK_PASS_INPUT, PK_PASS_FILTER } pk_pass;

/* Why a convolution cannot be computed so; NULL: it can.  Whether it should is decided where plans
 * are made (paddlecli/ops/conv2d_tiled.py). */
#define pk_winograd_refuses PK_LEVEL_NAME(pk_winograd_refuses)
const char *pk_winograd_refuses(const pk_conv *conv);

/* Floats that the pass needs at `work`. */
#define pk_winograd_floats PK_LEVEL_NAME(pk_winograd_floats)
int64_t pk_winograd_floats(const pk_conv *conv, pk_pass pass);
#define pk_winograd_filter_floats PK_LEVEL_NAME(pk_winograd_filter_floats)
int64_t pk_winograd_filter_floats(const pk_conv *conv); /* its part for PK_PASS_FILTER */

/* As pk_conv_forward_after, pk_conv_input_gradient and pk_conv_filter_gradient. */
#define pk_winograd_forward PK_LEVEL_NAME(pk_winograd_forward)
void pk_winograd_forward(const pk_call *call, const pk_conv *conv, const float *x, const float *w,
                         const pk_after *after, float *work,
                         float *y);
#define pk_winograd_input_gradient PK_LEVEL_NAME(pk_winograd_input_gradient)
void pk_winograd_input_gradient(const pk_call *call, const pk_conv *conv, const float *dy,
                                const float *w, int32_t accumulate, float *work, float *dx);
#define pk_winograd_filter_gradient PK_LEVEL_NAME(pk_winograd_filter_gradient)
void pk_winograd_filter_gradient(const pk_call *call, const pk_conv *conv, const float *x,
                                 const float *dy, int32_t accumulate, float *work, float *dw);

#endif
