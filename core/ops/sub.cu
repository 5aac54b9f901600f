/* sub: x - y with broadcasting. */
#include "elementwise.cuh"

namespace {
struct sub_of {
    PK_DEVICE float operator()(float x, float y) const { return x - y; }
};
pk_status sub_forward(const pk_call *call) { return pk_broadcast<0>(call, sub_of{}); }
} /* namespace */

PK_OP(sub, {"sub.forward(x: f32, y: f32; axis: int) -> (z: f32)", sub_forward});
