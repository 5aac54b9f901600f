/* max: the larger of x and y, with broadcasting; a NaN wins.  Where they are equal the gradient
 * goes to y. */
#include "elementwise.cuh"

namespace {
struct max_of {
    PK_DEVICE float operator()(float x, float y) const { return x > y || x != x ? x : y; }
};
/* The gradient of x, of y, before any sum over spread dimensions. */
struct dx_of {
    PK_DEVICE float operator()(float x, float y, float dz) const { return x > y ? dz : 0.0f; }
};
struct dy_of {
    PK_DEVICE float operator()(float x, float y, float dz) const { return y >= x ? dz : 0.0f; }
};
pk_status max_forward(const pk_call *call) { return pk_broadcast<0>(call, max_of{}); }
pk_status max_backward_x(const pk_call *call) { return pk_broadcast<1>(call, dx_of{}); }
pk_status max_backward_y(const pk_call *call) { return pk_broadcast<1>(call, dy_of{}); }
} /* namespace */

PK_OP(max, {"max.forward(x: f32, y: f32; axis: int) -> (z: f32)", max_forward},
      {"max.backward_x(x: f32, y: f32, dz: f32; axis: int) -> (d: f32)", max_backward_x},
      {"max.backward_y(x: f32, y: f32, dz: f32; axis: int) -> (d: f32)", max_backward_y});
