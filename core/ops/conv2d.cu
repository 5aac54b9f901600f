/* conv2d: NCHW convolution with groups, dilation, two or four paddings, optional bias and
 * activation.
 *
 * The work is done by core/cuda/convolutions.cuh; here the sizes are put into its form. */
#include "convolutions.cuh"
#include "reductions.cuh"

namespace {
/* Attributes stride, padding, dilation, groups stand in this order in every kernel. */
pk_status sizes_of(const pk_call *call, const pk_view *x, const pk_view *w, const pk_view *y,
                   pk_conv *conv) {
    return pk_conv_sizes(call, x, w, y, call->attr[0].list, call->attr[1].list, call->attr[2].list,
                         call->attr[3].i, conv);
}

/* x [n, channels, height, width], w [out, channels/groups, kh, kw], b, scale [out], z and y [n, out,
 * oh, ow] */
pk_status forward(const pk_call *call) {
    pk_conv conv;
    pk_after after;
    PK_TRY(sizes_of(call, &call->in[0], &call->in[1], &call->out[0], &conv));
    PK_TRY(pk_conv_after(call, &conv, call->attr[4].i, &after));
    return pk_conv_forward(call, conv, pk_f32(&call->in[0]), pk_f32(&call->in[1]), after.bias,
                           after.activation, after.accumulate, pk_f32(&call->out[0]), after.scale,
                           after.z);
}

/* dy as y, w -> dx as x */
pk_status backward_x(const pk_call *call) {
    pk_conv conv;
    PK_TRY(sizes_of(call, &call->out[0], &call->in[1], &call->in[0], &conv));
    return pk_conv_input_gradient(call, conv, pk_f32(&call->in[0]), pk_f32(&call->in[1]),
                                  pk_adds(call, 0), pk_f32(&call->out[0]));
}

/* x, dy as y -> dw as w */
pk_status backward_w(const pk_call *call) {
    pk_conv conv;
    PK_TRY(sizes_of(call, &call->in[0], &call->out[0], &call->in[1], &conv));
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
