/* conv2d_tiled: conv2d with 3x3 filters at stride 1, in tiles of 4x4 outputs (core/cpu/winograd.h).
 *
 * Which convolutions are computed so is the compiler's to say, by naming these kernels; they check
 * that the sizes are such and that the room suffices, and choose nothing. */
#include "winograd.h"

/* The sizes, where the attribute `padding` is the first, and the room for the pass.  x, w and y are
 * views of the input, the filter and the output, or of their gradients. */
static pk_status prepare(const pk_call *call, const pk_view *x, const pk_view *w, const pk_view *y,
                         pk_pass pass, pk_conv *conv) {
    static const int64_t one[] = {2, 1, 1};
    const pk_status status = pk_conv_sizes(call, x, w, y, one, call->attr[0].list, one, 1, conv);
    if (status != PK_OK) return status;
    const char *odd = pk_winograd_refuses(conv);
    if (odd != NULL) return pk_fail(call, PK_BAD_SHAPE, -1, "%s", odd);
    const int64_t floats = pk_winograd_floats(conv, pass), room = pk_count(&call->out[1]);
    if (floats > room)
        return pk_fail(call, PK_BAD_SHAPE, -1, "work has %lld floats, %lld are needed",
                       (long long)room, (long long)floats);
    return PK_OK;
}

/* x [n, channels, height, width], w [out, channels, 3, 3], b, scale [out], z and y
 * [n, out, oh, ow] */
static pk_status forward(const pk_call *call) {
    pk_conv conv;
    pk_after after;
    pk_status status =
        prepare(call, &call->in[0], &call->in[1], &call->out[0], PK_PASS_FORWARD, &conv);
    if (status == PK_OK) status = pk_conv_after(call, &conv, call->attr[1].i, &after);
    if (status == PK_OK)
        pk_winograd_forward(call, &conv, pk_f32(&call->in[0]), pk_f32(&call->in[1]), &after,
                            pk_f32(&call->out[1]), pk_f32(&call->out[0]));
    return status;
}

/* dy as y, w -> dx as x */
static pk_status backward_x(const pk_call *call) {
    pk_conv conv;
    const pk_status status =
        prepare(call, &call->out[0], &call->in[1], &call->in[0], PK_PASS_INPUT, &conv);
    if (status == PK_OK)
        pk_winograd_input_gradient(call, &conv, pk_f32(&call->in[0]), pk_f32(&call->in[1]),
                                   pk_adds(call, 0), pk_f32(&call->out[1]), pk_f32(&call->out[0]));
    return status;
}

/* x, dy as y -> dw as w */
static pk_status backward_w(const pk_call *call) {
    pk_conv conv;
    const pk_status status =
        prepare(call, &call->in[0], &call->out[0], &call->in[1], PK_PASS_FILTER, &conv);
    if (status == PK_OK)
        pk_winograd_filter_gradient(call, &conv, pk_f32(&call->in[0]), pk_f32(&call->in[1]),
                                    pk_adds(call, 0), pk_f32(&call->out[1]), pk_f32(&call->out[0]));
    return status;
}

PK_OP(conv2d_tiled,
      {"conv2d_tiled.forward(x: f32, w: f32, b?: f32, scale?: f32, z?: f32; padding: list, "
       "activation: int) -> (y: f32, work: f32)", forward},
      {"conv2d_tiled.backward_x(dy: f32, w: f32; padding: list) -> (dx: f32, work: f32)",
       backward_x},
      {"conv2d_tiled.backward_w(x: f32, dy: f32; padding: list) -> (dw: f32, work: f32)",
       backward_w});
