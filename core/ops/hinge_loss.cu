/* hinge_loss: label 0 or 1; loss = max(0, 1 - (2*label - 1)*x). */
#include "elementwise.cuh"

namespace {
struct hinge {
    PK_DEVICE float operator()(float x, float label) const {
        return pk_relu(fmaf(-(label + label - 1.0f), x, 1.0f));
    }
};
struct slope {
    PK_DEVICE float operator()(float x, float label, float dloss) const {
        return hinge{}(x, label) > 0.0f ? -((label + label - 1.0f) * dloss) : 0.0f;
    }
};

pk_status forward(const pk_call *call) { return pk_map<2>(call, hinge{}); }
pk_status backward_x(const pk_call *call) { return pk_map<3>(call, slope{}); }
} /* namespace */

PK_OP(hinge_loss, {"hinge_loss.forward(x: f32, label: f32) -> (loss: f32)", forward},
      {"hinge_loss.backward_x(x: f32, label: f32, dloss: f32) -> (dx: f32)", backward_x});
