/* mul: x*y with broadcasting. */
#include "elementwise.cuh"

namespace {
struct mul_of {
    PK_DEVICE float operator()(float x, float y) const { return x * y; }
};
pk_status mul_forward(const pk_call *call) { return pk_broadcast<0>(call, mul_of{}); }
} /* namespace */

PK_OP(mul, {"mul.forward(x: f32, y: f32; axis: int) -> (z: f32)", mul_forward});
