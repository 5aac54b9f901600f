/* conv2d_transpose: conv2d read backwards.
 *
 * y is what conv2d with the same filter takes, x what it gives.  So the input gradient of conv2d is
 * the forward kernel here, and its forward kernel the gradient of x: core/cpu/convolutions.c. */
#include "convolutions.h"
#include "products.h"

/* Attributes stride, padding, output_padding, dilation, groups, in this order in every kernel.  x,
 * w and y are views of the input, the filter and the output, or of their gradients. */
static pk_status shape_of(const pk_call *call, const pk_view *x, const pk_view *w, const pk_view *y,
                          pk_conv *conv) {
    const int64_t *stride = call->attr[0].list, *pad = call->attr[1].list;
    const int64_t *extra = call->attr[2].list, *dilation = call->attr[3].list;
    const int64_t groups = call->attr[4].i;
    if (x->ndim != 4 || w->ndim != 4 || y->ndim != 4)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "image, filter and result need 4 dimensions, not %d, %d, %d", (int)x->ndim,
                       (int)w->ndim, (int)y->ndim);
    if (stride[0] != 2 || extra[0] != 2 || dilation[0] != 2 || (pad[0] != 2 && pad[0] != 4))
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "stride, padding, output padding, dilation have %lld, %lld, %lld, %lld "
                       "numbers",
                       (long long)stride[0], (long long)pad[0], (long long)extra[0],
                       (long long)dilation[0]);
    const int64_t top = pad[1], bottom = pad[0] == 2 ? pad[1] : pad[2];
    const int64_t left = pad[0] == 2 ? pad[2] : pad[3], right = pad[0] == 2 ? pad[2] : pad[4];
    if (stride[1] < 1 || stride[2] < 1 || dilation[1] < 1 || dilation[2] < 1 || groups < 1 ||
        top < 0 || bottom < 0 || left < 0 || right < 0 || w->dim[2] < 1 || w->dim[3] < 1)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "stride, dilation, groups and kernel must be at least 1, padding 0");
    const int64_t most = 1 << 20; /* products of these with sizes do not overflow */
    if (stride[1] > most || stride[2] > most || dilation[1] > most || dilation[2] > most ||
        top > most || bottom > most || left > most || right > most)
        return pk_fail(call, PK_BAD_SHAPE, -1, "stride, dilation and padding go up to %lld",
                       (long long)most);
    if (extra[1] < 0 || extra[2] < 0 || extra[1] >= stride[1] || extra[2] >= stride[2])
        return pk_fail(call, PK_BAD_SHAPE, -1, "output padding %lldx%lld, stride %lldx%lld",
                       (long long)extra[1], (long long)extra[2], (long long)stride[1],
                       (long long)stride[2]);
    const int64_t high = (x->dim[2] - 1) * stride[1] - top - bottom +
                         dilation[1] * (w->dim[2] - 1) + 1 + extra[1];
    const int64_t wide = (x->dim[3] - 1) * stride[2] - left - right +
                         dilation[2] * (w->dim[3] - 1) + 1 + extra[2];
    if (x->dim[2] < 1 || x->dim[3] < 1 || high < 1 || wide < 1 || y->dim[2] != high ||
        y->dim[3] != wide)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "a %lldx%lld filter on %lldx%lld does not give %lldx%lld",
                       (long long)w->dim[2], (long long)w->dim[3], (long long)x->dim[2],
                       (long long)x->dim[3], (long long)y->dim[2], (long long)y->dim[3]);
    if (x->dim[1] % groups || y->dim[1] % groups || w->dim[1] != y->dim[1] / groups ||
        w->dim[0] != x->dim[1] || x->dim[0] != y->dim[0])
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "x has %lld channels, w is [%lld, %lld, ..], y has %lld channels, "
                       "groups are %lld",
                       (long long)x->dim[1], (long long)w->dim[0], (long long)w->dim[1],
                       (long long)y->dim[1], (long long)groups);
    *conv = (pk_conv){.n = x->dim[0], .channels = y->dim[1], .height = high, .width = wide,
                      .out_channels = x->dim[1], .out_h = x->dim[2], .out_w = x->dim[3],
                      .kernel_h = w->dim[2], .kernel_w = w->dim[3], .stride_h = stride[1],
                      .stride_w = stride[2], .pad_top = top, .pad_left = left,
                      .dilation_h = dilation[1], .dilation_w = dilation[2], .groups = groups};
    return PK_OK;
}

/* x [n, channels, height, width], w [channels, out/groups, kh, kw] -> y [n, out, oh, ow] */
static pk_status forward(const pk_call *call) {
    pk_conv conv;
    const pk_status status = shape_of(call, &call->in[0], &call->in[1], &call->out[0], &conv);
    if (status == PK_OK)
        pk_conv_input_gradient(call, &conv, pk_f32(&call->in[0]), pk_f32(&call->in[1]),
                               pk_adds(call, 0), pk_f32(&call->out[0]));
    return status;
}

/* dy as y, w -> dx as x */
static pk_status backward_x(const pk_call *call) {
    pk_conv conv;
    const pk_status status = shape_of(call, &call->out[0], &call->in[1], &call->in[0], &conv);
    if (status == PK_OK)
        pk_conv_forward(call, &conv, pk_f32(&call->in[0]), pk_f32(&call->in[1]), NULL, PK_ACT_NONE,
                        pk_adds(call, 0), pk_f32(&call->out[0]));
    return status;
}

/* x, dy as y -> dw as w */
static pk_status backward_w(const pk_call *call) {
    pk_conv conv;
    const pk_status status = shape_of(call, &call->in[0], &call->out[0], &call->in[1], &conv);
    if (status == PK_OK)
        pk_conv_filter_gradient(call, &conv, pk_f32(&call->in[1]), pk_f32(&call->in[0]),
                                pk_adds(call, 0), pk_f32(&call->out[0]));
    return status;
}

#define ATTRS "stride: list, padding: list, output_padding: list, dilation: list, groups: int"
PK_OP(conv2d_transpose,
      {"conv2d_transpose.forward(x: f32, w: f32; " ATTRS ") -> (y: f32)", forward},
      {"conv2d_transpose.backward_x(dy: f32, w: f32; " ATTRS ") -> (dx: f32)", backward_x},
      {"conv2d_transpose.backward_w(x: f32, dy: f32; " ATTRS ") -> (dw: f32)", backward_w});
