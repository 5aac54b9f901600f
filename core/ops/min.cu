/* min: the smaller of x and y, with broadcasting; a NaN wins.  Where they are equal the gradient
 * goes to y. */
#include "elementwise.cuh"

namespace {
struct min_of {
    PK_DEVICE float operator()(float x, float y) const { return x < y || x != x ? x : y; }
};
/* The gradient of x, of y, before any sum over spread dimensions. */
struct dx_of {
    PK_DEVICE float operator()(float x, float y, float dz) const { return x < y ? dz : 0.0f; }
};
struct dy_of {
    PK_DEVICE float operator()(float x, float y, float dz) const { return y <= x ? dz : 0.0f; }
};
pk_status min_forward(const pk_call *call) { return pk_broadcast<0>(call, min_of{}); }
pk_status min_backward_x(const pk_call *call) { return pk_broadcast<1>(call, dx_of{}); }
pk_status min_backward_y(const pk_call *call) { return pk_broadcast<1>(call, dy_of{}); }
} /* namespace */

PK_OP(min, {"min.forward(x: f32, y: f32; axis: int) -> (z: f32)", min_forward},
      {"min.backward_x(x: f32, y: f32, dz: f32; axis: int) -> (d: f32)", min_backward_x},
      {"min.backward_y(x: f32, y: f32, dz: f32; axis: int) -> (d: f32)", min_backward_y});
