/* hard_sigmoid: slope*x + offset, cut to [0, 1]. */
#include "elementwise.cuh"

namespace {
struct hard_sigmoid {
    float slope;
    float offset;
    PK_DEVICE float operator()(float x) const { return pk_cut(fmaf(slope, x, offset), 0.0f, 1.0f); }
};
struct dhard_sigmoid {
    float slope;
    float offset;
    PK_DEVICE float operator()(float x, float dy) const {
        const float line = fmaf(slope, x, offset);
        return line > 0.0f && line < 1.0f ? dy * slope : 0.0f;
    }
};
pk_status hard_sigmoid_forward(const pk_call *call) {
    return pk_map<1>(call, hard_sigmoid{(float)call->attr[0].f, (float)call->attr[1].f});
}
pk_status hard_sigmoid_backward(const pk_call *call) {
    return pk_map<2>(call, dhard_sigmoid{(float)call->attr[0].f, (float)call->attr[1].f});
}
} /* namespace */

PK_OP(hard_sigmoid,
      {"hard_sigmoid.forward(x: f32; slope: float, offset: float) -> (y: f32)",
       hard_sigmoid_forward},
      {"hard_sigmoid.backward(x: f32, dy: f32; slope: float, offset: float) -> (dx: f32)",
       hard_sigmoid_backward});
