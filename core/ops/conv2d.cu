/* conv2d: NCHW convolution with groups, dilation, two or four paddings, optional bias and
 * activation.
 *
 * The work is done by core/cpu/convolutions.c; here the sizes are checked and put into its form. */
#include "convolutions.cuh"
#include "reductions.cuh"

namespace {
/* x, w and y are views of the input, the filter and the output, or of their gradients. */
pk_status shape_of(const pk_call *call, const pk_view *x, const pk_view *w, const pk_view *y,
                   pk_conv *conv) {
    const int64_t *stride = call->attr[0].list, *pad = call->attr[1].list,
                  *dilation = call->attr[2].list;
    const int64_t groups = call->attr[3].i;
    if (x->ndim != 4 || w->ndim != 4 || y->ndim != 4)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "image, filter and result need 4 dimensions, not %d, %d, %d", (int)x->ndim,
                       (int)w->ndim, (int)y->ndim);
    if (stride[0] != 2 || dilation[0] != 2 || (pad[0] != 2 && pad[0] != 4))
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "stride, dilation, padding have %lld, %lld, %lld numbers",
                       (long long)stride[0], (long long)dilation[0], (long long)pad[0]);
    const int64_t top = pad[1], bottom = pad[0] == 2 ? pad[1] : pad[2];
    const int64_t left = pad[0] == 2 ? pad[2] : pad[3], right = pad[0] == 2 ? pad[2] : pad[4];
    if (stride[1] < 1 || stride[2] < 1 || dilation[1] < 1 || dilation[2] < 1 || groups < 1 ||
        top < 0 || bottom < 0 || left < 0 || right < 0 || w->dim[2] < 1 || w->dim[3] < 1)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "stride, dilation, groups and kernel must be at least 1, padding 0");
    *conv = pk_conv{x->dim[0], x->dim[1],   x->dim[2],   x->dim[3], y->dim[1], y->dim[2],
                    y->dim[3], w->dim[2],   w->dim[3],   stride[1], stride[2], top,
                    left,      dilation[1], dilation[2], groups};
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
        return pk_fail(
            call, PK_BAD_SHAPE, -1,
            "x has %lld channels, w is [%lld, %lld, ..], y has %lld channels, groups are %lld",
            (long long)x->dim[1], (long long)w->dim[0], (long long)w->dim[1], (long long)y->dim[1],
            (long long)groups);
    return PK_OK;
}

/* x [n, channels, height, width], w [out, channels/groups, kh, kw], b, scale [out], z and y [n, out,
 * oh, ow] */
pk_status forward(const pk_call *call) {
    const pk_view *b = &call->in[2], *scale = &call->in[3], *z = &call->in[4];
    const int64_t activation = call->attr[4].i;
    pk_conv conv;
    PK_TRY(shape_of(call, &call->in[0], &call->in[1], &call->out[0], &conv));
    if (b->data != NULL && pk_count(b) != conv.out_channels)
        return pk_fail(call, PK_BAD_SHAPE, -1, "b has %lld elements, w %lld filters",
                       (long long)pk_count(b), (long long)conv.out_channels);
    if (scale->data != NULL && pk_count(scale) != conv.out_channels)
        return pk_fail(call, PK_BAD_SHAPE, -1, "scale has %lld elements, w %lld filters",
                       (long long)pk_count(scale), (long long)conv.out_channels);
    if (z->data != NULL && pk_count(z) != pk_count(&call->out[0]))
        return pk_fail(call, PK_BAD_SHAPE, -1, "z has %lld elements, y %lld",
                       (long long)pk_count(z), (long long)pk_count(&call->out[0]));
    if (activation < PK_ACT_NONE || activation > PK_ACT_SIGMOID)
        return pk_fail(call, PK_BAD_SHAPE, -1, "no activation %lld", (long long)activation);
    return pk_conv_forward(call, conv, pk_f32(&call->in[0]), pk_f32(&call->in[1]), pk_f32(b),
                           (int)activation, pk_adds(call, 0), pk_f32(&call->out[0]), pk_f32(scale),
                           pk_f32(z));
}

/* dy as y, w -> dx as x */
pk_status backward_x(const pk_call *call) {
    pk_conv conv;
    PK_TRY(shape_of(call, &call->out[0], &call->in[1], &call->in[0], &conv));
    return pk_conv_input_gradient(call, conv, pk_f32(&call->in[0]), pk_f32(&call->in[1]),
                                  pk_adds(call, 0), pk_f32(&call->out[0]));
}

/* x, dy as y -> dw as w */
pk_status backward_w(const pk_call *call) {
    pk_conv conv;
    PK_TRY(shape_of(call, &call->in[0], &call->out[0], &call->in[1], &conv));
    return pk_conv_filter_gradient(call, conv, pk_f32(&call->in[0]), pk_f32(&call->in[1]),
                                   pk_adds(call, 0), pk_f32(&call->out[0]));
}

/* dy [n, out, oh, ow] -> db [out] */
pk_status backward_b(const pk_call *call) {
    const pk_view *dy = &call->in[0];
    if (dy->ndim != 4 || pk_count(&call->out[0]) != dy->dim[1])
        return pk_fail(call, PK_BAD_SHAPE, -1, "db has %lld elements, dy %lld channels",
                       (long long)pk_count(&call->out[0]), (long long)dy->dim[1]);
    return pk_sum_dims(call, pk_f32(&call->out[0]), pk_f32(dy), 4, dy->dim, 13u, 1.0f,
                       pk_adds(call, 0));
}
} /* namespace */

#define ATTRS "stride: list, padding: list, dilation: list, groups: int"
PK_OP(conv2d,
      {"conv2d.forward(x: f32, w: f32, b?: f32, scale?: f32, z?: f32; " ATTRS
       ", activation: int) -> (y: f32)",
       forward},
      {"conv2d.backward_x(dy: f32, w: f32; " ATTRS ") -> (dx: f32)", backward_x},
      {"conv2d.backward_w(x: f32, dy: f32; " ATTRS ") -> (dw: f32)", backward_w},
      {"conv2d.backward_b(dy: f32) -> (db: f32)", backward_b});
