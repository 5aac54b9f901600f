/* pow: x to the power y, with broadcasting. */
#include "elementwise.cuh"

namespace {
struct pow_of {
    PK_DEVICE float operator()(float x, float y) const { return powf(x, y); }
};
/* The gradient of x, of y, before any sum over spread dimensions. */
struct dx_of {
    PK_DEVICE float operator()(float x, float y, float dz) const {
        return y == 0.0f ? 0.0f : dz * (y * powf(x, y - 1.0f));
    }
};
struct dy_of {
    PK_DEVICE float operator()(float x, float y, float dz) const {
        const float z = powf(x, y);
        return z == 0.0f ? dz * 0.0f : dz * (z * logf(x));
    }
};
pk_status pow_forward(const pk_call *call) { return pk_broadcast<0>(call, pow_of{}); }
pk_status pow_backward_x(const pk_call *call) { return pk_broadcast<1>(call, dx_of{}); }
pk_status pow_backward_y(const pk_call *call) { return pk_broadcast<1>(call, dy_of{}); }
} /* namespace */

PK_OP(pow, {"pow.forward(x: f32, y: f32; axis: int) -> (z: f32)", pow_forward},
      {"pow.backward_x(x: f32, y: f32, dz: f32; axis: int) -> (d: f32)", pow_backward_x},
      {"pow.backward_y(x: f32, y: f32, dz: f32; axis: int) -> (d: f32)", pow_backward_y});
