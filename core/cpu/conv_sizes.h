/* conv_sizes.h: what the kernels of convolutions are given, checked and put into one form, on the
 * host and on CUDA: what a plan may get wrong is an error that names the numbers.
 * PK_ACT_* come from products.h or elementwise.cuh, whichever was included first. */
#ifndef PK_CONV_SIZES_H
#define PK_CONV_SIZES_H
#include "pk_kernel.h"

/* x [n, channels, height, width]; w [out_channels, channels / groups, kernel_h, kernel_w];
 * y [n, out_channels, out_h, out_w] with out = (in + pad before + pad after - dilation*(kernel - 1)
 * - 1) / stride + 1. */
typedef struct pk_conv {
    int64_t n, channels, height, width;
    int64_t out_channels, out_h, out_w;
    int64_t kernel_h, kernel_w;
    int64_t stride_h, stride_w;
    int64_t pad_top, pad_left; /* the other sides follow from out_h and out_w */
    int64_t dilation_h, dilation_w;
    int64_t groups;
} pk_conv;

/* What becomes of the sums: activation(sums * scale + bias + z), assigned or added to what is
 * there.  bias, scale [out_channels], z like y; each may be NULL.  activation: one of
 * PK_ACT_*. */
typedef struct pk_after {
    const float *bias, *scale, *z;
    int32_t activation, accumulate;
} pk_after;

static inline pk_status pk_conv_numbers(const pk_call *call, const int64_t *stride,
                                        const int64_t *pad, const int64_t *dilation,
                                        int64_t groups, const pk_view *w) {
    if (stride[0] != 2 || dilation[0] != 2 || (pad[0] != 2 && pad[0] != 4))
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "stride, dilation, padding have %lld, %lld, %lld numbers",
                       (long long)stride[0], (long long)dilation[0], (long long)pad[0]);
    int64_t least = pk_min_i64(pk_min_i64(stride[1], stride[2]),
                               pk_min_i64(dilation[1], dilation[2])), around = 0;
    for (int64_t i = 1; i <= pad[0]; i++) around = pk_min_i64(around, pad[i]);
    least = pk_min_i64(pk_min_i64(least, groups), pk_min_i64(w->dim[2], w->dim[3]));
    if (least < 1 || around < 0)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "stride, dilation, groups and kernel must be at least 1, padding 0");
    return PK_OK;
}

/* x, w and y are views of the input, the filter and the output, or of their gradients; stride, pad
 * and dilation lists as attributes have them: a count, then the numbers. */
static inline pk_status pk_conv_sizes(const pk_call *call, const pk_view *x, const pk_view *w,
                                      const pk_view *y, const int64_t *stride, const int64_t *pad,
                                      const int64_t *dilation, int64_t groups, pk_conv *conv) {
    if (x->ndim != 4 || w->ndim != 4 || y->ndim != 4)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "image, filter and result need 4 dimensions, not %d, %d, %d", (int)x->ndim,
                       (int)w->ndim, (int)y->ndim);
    const pk_status status = pk_conv_numbers(call, stride, pad, dilation, groups, w);
    if (status != PK_OK) return status;
    const int64_t top = pad[1], bottom = pad[0] == 2 ? pad[1] : pad[2];
    const int64_t left = pad[0] == 2 ? pad[2] : pad[3], right = pad[0] == 2 ? pad[2] : pad[4];
    conv->n = x->dim[0], conv->channels = x->dim[1];
    conv->height = x->dim[2], conv->width = x->dim[3];
    conv->out_channels = y->dim[1], conv->out_h = y->dim[2], conv->out_w = y->dim[3];
    conv->kernel_h = w->dim[2], conv->kernel_w = w->dim[3];
    conv->stride_h = stride[1], conv->stride_w = stride[2];
    conv->pad_top = top, conv->pad_left = left;
    conv->dilation_h = dilation[1], conv->dilation_w = dilation[2];
    conv->groups = groups;
    const int64_t room_h = x->dim[2] + top + bottom - dilation[1] * (w->dim[2] - 1) - 1;
    const int64_t room_w = x->dim[3] + left + right - dilation[2] * (w->dim[3] - 1) - 1;
    if (room_h < 0 || room_w < 0 || y->dim[2] != room_h / stride[1] + 1 ||
        y->dim[3] != room_w / stride[2] + 1)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "a %lldx%lld filter on %lldx%lld does not give %lldx%lld",
                       (long long)w->dim[2], (long long)w->dim[3], (long long)x->dim[2],
                       (long long)x->dim[3], (long long)y->dim[2], (long long)y->dim[3]);
    if (x->dim[1] % groups || y->dim[1] % groups || w->dim[1] != x->dim[1] / groups ||
        w->dim[0] != y->dim[1] || x->dim[0] != y->dim[0])
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "x has %lld channels, w is [%lld, %lld, ..], y has %lld channels, groups "
                       "are %lld",
                       (long long)x->dim[1], (long long)w->dim[0], (long long)w->dim[1],
                       (long long)y->dim[1], (long long)groups);
    return PK_OK;
}

/* For a forward kernel with the inputs x, w, b, scale, z, of which the last three may be absent. */
static inline pk_status pk_conv_after(const pk_call *call, const pk_conv *conv, int64_t activation,
                                      pk_after *after) {
    for (int i = 2; i < 4; i++)
        if (call->in[i].data != NULL && pk_count(&call->in[i]) != conv->out_channels)
            return pk_fail(call, PK_BAD_SHAPE, -1, "%s has %lld elements, w %lld filters",
                           i == 2 ? "b" : "scale", (long long)pk_count(&call->in[i]),
                           (long long)conv->out_channels);
    if (call->in[4].data != NULL && pk_count(&call->in[4]) != pk_count(&call->out[0]))
        return pk_fail(call, PK_BAD_SHAPE, -1, "z has %lld elements, y %lld",
                       (long long)pk_count(&call->in[4]), (long long)pk_count(&call->out[0]));
    if (activation < PK_ACT_NONE || activation > PK_ACT_SIGMOID)
        return pk_fail(call, PK_BAD_SHAPE, -1, "no activation %lld", (long long)activation);
    after->bias = pk_f32(&call->in[2]), after->scale = pk_f32(&call->in[3]);
    after->z = pk_f32(&call->in[4]);
    after->activation = (int32_t)activation, after->accumulate = pk_adds(call, 0);
    return PK_OK;
}

#endif
