/* div: x/y with broadcasting. */
#include "elementwise.cuh"

namespace {
struct div_of {
    PK_DEVICE float operator()(float x, float y) const { return x / y; }
};
pk_status div_forward(const pk_call *call) { return pk_broadcast<0>(call, div_of{}); }
} /* namespace */

PK_OP(div, {"div.forward(x: f32, y: f32; axis: int) -> (z: f32)", div_forward});
