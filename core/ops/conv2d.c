/* conv2d: NCHW convolution with groups, dilation, two or four paddings, optional bias and
 * activation.
 *
 * The work is done by core/cpu/depthwise.c where each channel has a filter of its own, else by
 * convolutions.c; here the sizes are put into their form. */
#include "convolutions.h"
#include "depthwise.h"

/* Attributes stride, padding, dilation, groups stand in this order in every kernel. */
static pk_status sizes_of(const pk_call *call, const pk_view *x, const pk_view *w, const pk_view *y,
                          pk_conv *conv) {
    return pk_conv_sizes(call, x, w, y, call->attr[0].list, call->attr[1].list, call->attr[2].list,
                         call->attr[3].i, conv);
}

/* x [n, channels, height, width], w [out, channels/groups, kh, kw], b, scale [out], z and y
 * [n, out, oh, ow] */
static pk_status forward(const pk_call *call) {
    pk_conv conv;
    pk_after after;
    pk_status status = sizes_of(call, &call->in[0], &call->in[1], &call->out[0], &conv);
    if (status == PK_OK) status = pk_conv_after(call, &conv, call->attr[4].i, &after);
    if (status != PK_OK) return status;
    const float *x = pk_f32(&call->in[0]), *w = pk_f32(&call->in[1]);
    if (pk_depthwise_fits(&conv))
        pk_depthwise_forward(call, &conv, x, w, &after, pk_f32(&call->out[0]));
    else
        pk_conv_forward_after(call, &conv, x, w, &after, pk_f32(&call->out[0]));
    return PK_OK;
}

/* dy as y, w -> dx as x */
static pk_status backward_x(const pk_call *call) {
    pk_conv conv;
    const pk_status status = sizes_of(call, &call->out[0], &call->in[1], &call->in[0], &conv);
    if (status != PK_OK) return status;
    const float *dy = pk_f32(&call->in[0]), *w = pk_f32(&call->in[1]);
    if (pk_depthwise_fits(&conv))
        pk_depthwise_input_gradient(call, &conv, dy, w, pk_adds(call, 0), pk_f32(&call->out[0]));
    else
        pk_conv_input_gradient(call, &conv, dy, w, pk_adds(call, 0), pk_f32(&call->out[0]));
    return PK_OK;
}

/* x, dy as y -> dw as w */
static pk_status backward_w(const pk_call *call) {
    pk_conv conv;
    const pk_status status = sizes_of(call, &call->in[0], &call->out[0], &call->in[1], &conv);
    if (status != PK_OK) return status;
    const float *x = pk_f32(&call->in[0]), *dy = pk_f32(&call->in[1]);
    if (pk_depthwise_fits(&conv))
        pk_depthwise_filter_gradient(call, &conv, x, dy, pk_adds(call, 0), pk_f32(&call->out[0]));
    else
        pk_conv_filter_gradient(call, &conv, x, dy, pk_adds(call, 0), pk_f32(&call->out[0]));
    return PK_OK;
}

/* dy [n, out, oh, ow] -> db [out] */
static pk_status backward_b(const pk_call *call) {
    const pk_view *dy = &call->in[0];
    if (dy->ndim != 4 || pk_count(&call->out[0]) != dy->dim[1])
        return pk_fail(call, PK_BAD_SHAPE, -1, "db has %lld elements, dy %lld channels",
                       (long long)pk_count(&call->out[0]), (long long)dy->dim[1]);
    const pk_conv conv = {.n = dy->dim[0], .out_channels = dy->dim[1], .out_h = dy->dim[2],
                          .out_w = dy->dim[3], .groups = 1, .kernel_h = 1, .kernel_w = 1,
                          .stride_h = 1, .stride_w = 1};
    pk_conv_bias_gradient(call, &conv, pk_f32(dy), pk_adds(call, 0), pk_f32(&call->out[0]));
    return PK_OK;
}

#define ATTRS "stride: list, padding: list, dilation: list, groups: int"
PK_OP(conv2d,
      {"conv2d.forward(x: f32, w: f32, b?: f32, scale?: f32, z?: f32; " ATTRS
       ", activation: int) -> (y: f32)", forward},
      {"conv2d.backward_x(dy: f32, w: f32; " ATTRS ") -> (dx: f32)", backward_x},
      {"conv2d.backward_w(x: f32, dy: f32; " ATTRS ") -> (dw: f32)", backward_w},
      {"conv2d.backward_b(dy: f32) -> (db: f32)", backward_b});
