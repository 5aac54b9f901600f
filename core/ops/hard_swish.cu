/* hard_swish: x*line/scale, line = x + offset cut to [0, threshold]. */
#include "elementwise.cuh"

namespace {
struct hard_swish {
    float threshold;
    float scale;
    float offset;
    PK_DEVICE float operator()(float x) const {
        return x * pk_cut(x + offset, 0.0f, threshold) / scale;
    }
};
struct dhard_swish {
    float threshold;
    float scale;
    float offset;
    PK_DEVICE float operator()(float x, float dy) const {
        const float line = x + offset, inside = line > 0.0f && line < threshold ? x : 0.0f;
        return dy * (pk_cut(line, 0.0f, threshold) + inside) / scale;
    }
};
pk_status hard_swish_forward(const pk_call *call) {
    return pk_map<1>(
        call, hard_swish{(float)call->attr[0].f, (float)call->attr[1].f, (float)call->attr[2].f});
}
pk_status hard_swish_backward(const pk_call *call) {
    return pk_map<2>(
        call, dhard_swish{(float)call->attr[0].f, (float)call->attr[1].f, (float)call->attr[2].f});
}
} /* namespace */

PK_OP(hard_swish,
      {"hard_swish.forward(x: f32; threshold: float, scale: float, offset: float) -> (y: f32)",
       hard_swish_forward},
      {"hard_swish.backward(x: f32, dy: f32; threshold: float, scale: float, offset: float) -> "
       "(dx: f32)",
       hard_swish_backward});
