/* conv2d: NCHW convolution with groups, dilation, two or four paddings, optional bias and activation.
 *
 * The work is done by core/cpu/winograd.c or depthwise.c where the sizes are right for them, else by convolutions.c; here
 * the sizes are checked and put into their form. */
#include "convolutions.h"
#include "depthwise.h"
#include "products.h"
#include "winograd.h"

/* Attributes stride, padding, dilation, groups stand in this order in every kernel.  x, w and y are views of the input,
 * the filter and the output, or of their gradients. */
static pk_status shape_of(const pk_call *call, const pk_view *x, const pk_view *w, const pk_view *y, pk_conv *conv) {
    const int64_t *stride = call->attr[0].list, *pad = call->attr[1].list, *dilation = call->attr[2].list;
    const int64_t groups = call->attr[3].i;
    if (x->ndim != 4 || w->ndim != 4 || y->ndim != 4)
        return pk_fail(call, PK_BAD_SHAPE, -1, "image, filter and result need 4 dimensions, not %d, %d, %d",
                       (int)x->ndim, (int)w->ndim, (int)y->ndim);
    if (stride[0] != 2 || dilation[0] != 2 || (pad[0] != 2 && pad[0] != 4))
        return pk_fail(call, PK_BAD_SHAPE, -1, "stride, dilation, padding have %lld, %lld, %lld numbers",
                       (long long)stride[0], (long long)dilation[0], (long long)pad[0]);
    const int64_t top = pad[1], bottom = pad[0] == 2 ? pad[1] : pad[2];
    const int64_t left = pad[0] == 2 ? pad[2] : pad[3], right = pad[0] == 2 ? pad[2] : pad[4];
    if (stride[1] < 1 || stride[2] < 1 || dilation[1] < 1 || dilation[2] < 1 || groups < 1 || top < 0 || bottom < 0 ||
        left < 0 || right < 0 || w->dim[2] < 1 || w->dim[3] < 1)
        return pk_fail(call, PK_BAD_SHAPE, -1, "stride, dilation, groups and kernel must be at least 1, padding 0");
    *conv = (pk_conv){x->dim[0], x->dim[1], x->dim[2], x->dim[3], y->dim[1], y->dim[2], y->dim[3], w->dim[2], w->dim[3],
                      stride[1], stride[2], top, left, dilation[1], dilation[2], groups};
    const int64_t room_h = x->dim[2] + top + bottom - dilation[1] * (w->dim[2] - 1) - 1;
    const int64_t room_w = x->dim[3] + left + right - dilation[2] * (w->dim[3] - 1) - 1;
    if (room_h < 0 || room_w < 0 || y->dim[2] != room_h / stride[1] + 1 || y->dim[3] != room_w / stride[2] + 1)
        return pk_fail(call, PK_BAD_SHAPE, -1, "a %lldx%lld filter on %lldx%lld does not give %lldx%lld",
                       (long long)w->dim[2], (long long)w->dim[3], (long long)x->dim[2], (long long)x->dim[3],
                       (long long)y->dim[2], (long long)y->dim[3]);
    if (x->dim[1] % groups || y->dim[1] % groups || w->dim[1] != x->dim[1] / groups || w->dim[0] != y->dim[1] ||
        x->dim[0] != y->dim[0])
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "x has %lld channels, w is [%lld, %lld, ..], y has %lld channels, groups are %lld",
                       (long long)x->dim[1], (long long)w->dim[0], (long long)w->dim[1], (long long)y->dim[1],
                       (long long)groups);
    return PK_OK;
}

/* Where the pass is one for the method of Winograd: its room, else NULL.  *status: an error when the room is too small. */
static float *winograd_room(const pk_call *call, const pk_conv *conv, pk_pass pass, pk_status *status) {
    const int64_t floats = pk_winograd_floats(conv, pass), room = pk_count(&call->out[1]);
    if (floats > room)
        *status = pk_fail(call, PK_BAD_SHAPE, -1, "work has %lld floats, %lld are needed", (long long)room,
                          (long long)floats);
    return floats > 0 && floats <= room ? pk_f32(&call->out[1]) : NULL;
}

/* b and scale have a number for each filter, z as many as y. */
static pk_status sizes_of(const pk_call *call, const pk_conv *conv) {
    for (int i = 2; i < 4; i++)
        if (call->in[i].data != NULL && pk_count(&call->in[i]) != conv->out_channels)
            return pk_fail(call, PK_BAD_SHAPE, -1, "%s has %lld elements, w %lld filters", i == 2 ? "b" : "scale",
                           (long long)pk_count(&call->in[i]), (long long)conv->out_channels);
    if (call->in[4].data != NULL && pk_count(&call->in[4]) != pk_count(&call->out[0]))
        return pk_fail(call, PK_BAD_SHAPE, -1, "z has %lld elements, y %lld", (long long)pk_count(&call->in[4]),
                       (long long)pk_count(&call->out[0]));
    return PK_OK;
}

/* x [n, channels, height, width], w [out, channels/groups, kh, kw], b, scale [out], z and y [n, out, oh, ow] */
static pk_status forward(const pk_call *call) {
    const int64_t activation = call->attr[4].i;
    pk_conv conv;
    pk_status status = shape_of(call, &call->in[0], &call->in[1], &call->out[0], &conv);
    if (status == PK_OK) status = sizes_of(call, &conv);
    if (status != PK_OK) return status;
    if (activation < PK_ACT_NONE || activation > PK_ACT_SIGMOID)
        return pk_fail(call, PK_BAD_SHAPE, -1, "no activation %lld", (long long)activation);
    const float *x = pk_f32(&call->in[0]), *w = pk_f32(&call->in[1]);
    const pk_after after = {.bias = pk_f32(&call->in[2]), .scale = pk_f32(&call->in[3]), .z = pk_f32(&call->in[4]),
                            .activation = (int32_t)activation, .accumulate = pk_adds(call, 0)};
    float *y = pk_f32(&call->out[0]), *work = winograd_room(call, &conv, PK_PASS_FORWARD, &status);
    if (status != PK_OK) return status;
    if (work != NULL)
        pk_winograd_forward(call, &conv, x, w, &after, work, y);
    else if (pk_depthwise_fits(&conv))
        pk_depthwise_forward(call, &conv, x, w, &after, y);
    else
        pk_conv_forward_after(call, &conv, x, w, &after, y);
    return PK_OK;
}

/* dy as y, w -> dx as x */
static pk_status backward_x(const pk_call *call) {
    pk_conv conv;
    pk_status status = shape_of(call, &call->out[0], &call->in[1], &call->in[0], &conv);
    float *work = status == PK_OK ? winograd_room(call, &conv, PK_PASS_INPUT, &status) : NULL;
    if (work != NULL)
        pk_winograd_input_gradient(call, &conv, pk_f32(&call->in[0]), pk_f32(&call->in[1]), pk_adds(call, 0), work,
                                   pk_f32(&call->out[0]));
    else if (status == PK_OK && pk_depthwise_fits(&conv))
        pk_depthwise_input_gradient(call, &conv, pk_f32(&call->in[0]), pk_f32(&call->in[1]), pk_adds(call, 0),
                                    pk_f32(&call->out[0]));
    else if (status == PK_OK)
        pk_conv_input_gradient(call, &conv, pk_f32(&call->in[0]), pk_f32(&call->in[1]), pk_adds(call, 0),
                               pk_f32(&call->out[0]));
    return status;
}

/* x, dy as y -> dw as w */
static pk_status backward_w(const pk_call *call) {
    pk_conv conv;
    pk_status status = shape_of(call, &call->in[0], &call->out[0], &call->in[1], &conv);
    float *work = status == PK_OK ? winograd_room(call, &conv, PK_PASS_FILTER, &status) : NULL;
    if (work != NULL)
        pk_winograd_filter_gradient(call, &conv, pk_f32(&call->in[0]), pk_f32(&call->in[1]), pk_adds(call, 0), work,
                                    pk_f32(&call->out[0]));
    else if (status == PK_OK && pk_depthwise_fits(&conv))
        pk_depthwise_filter_gradient(call, &conv, pk_f32(&call->in[0]), pk_f32(&call->in[1]), pk_adds(call, 0),
                                     pk_f32(&call->out[0]));
    else if (status == PK_OK)
        pk_conv_filter_gradient(call, &conv, pk_f32(&call->in[0]), pk_f32(&call->in[1]), pk_adds(call, 0),
                                pk_f32(&call->out[0]));
    return status;
}

/* dy [n, out, oh, ow] -> db [out] */
static pk_status backward_b(const pk_call *call) {
    const pk_view *dy = &call->in[0];
    if (dy->ndim != 4 || pk_count(&call->out[0]) != dy->dim[1])
        return pk_fail(call, PK_BAD_SHAPE, -1, "db has %lld elements, dy %lld channels",
                       (long long)pk_count(&call->out[0]), (long long)dy->dim[1]);
    const pk_conv conv = {.n = dy->dim[0], .out_channels = dy->dim[1], .out_h = dy->dim[2], .out_w = dy->dim[3],
                          .groups = 1, .kernel_h = 1, .kernel_w = 1, .stride_h = 1, .stride_w = 1};
    pk_conv_bias_gradient(call, &conv, pk_f32(dy), pk_adds(call, 0), pk_f32(&call->out[0]));
    return PK_OK;
}

PK_OP(conv2d,
      {"conv2d.forward(x: f32, w: f32, b?: f32, scale?: f32, z?: f32; stride: list, padding: list, dilation: list, "
       "groups: int, activation: int) -> (y: f32, work: f32)", forward},
      {"conv2d.backward_x(dy: f32, w: f32; stride: list, padding: list, dilation: list, groups: int) -> (dx: f32, work: f32)",
       backward_x},
      {"conv2d.backward_w(x: f32, dy: f32; stride: list, padding: list, dilation: list, groups: int) -> (dw: f32, work: f32)",
       backward_w},
      {"conv2d.backward_b(dy: f32) -> (db: f32)", backward_b});
