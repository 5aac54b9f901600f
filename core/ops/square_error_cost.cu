/* square_error_cost: loss = (x - label)^2, element by element, without a factor of one half. */
#include "elementwise.cuh"

namespace {
struct square {
    PK_DEVICE float operator()(float x, float label) const { return (x - label) * (x - label); }
};
/* sign: 2 for x, -2 for the label */
struct slope {
    float sign;
    PK_DEVICE float operator()(float x, float label, float dloss) const {
        return (x - label) * sign * dloss;
    }
};

pk_status forward(const pk_call *call) { return pk_map<2>(call, square{}); }
pk_status backward_x(const pk_call *call) { return pk_map<3>(call, slope{2.0f}); }
pk_status backward_label(const pk_call *call) { return pk_map<3>(call, slope{-2.0f}); }
} /* namespace */

PK_OP(square_error_cost, {"square_error_cost.forward(x: f32, label: f32) -> (loss: f32)", forward},
      {"square_error_cost.backward_x(x: f32, label: f32, dloss: f32) -> (dx: f32)", backward_x},
      {"square_error_cost.backward_label(x: f32, label: f32, dloss: f32) -> (dlabel: f32)",
       backward_label});
