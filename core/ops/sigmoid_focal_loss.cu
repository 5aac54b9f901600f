/* sigmoid_focal_loss: with z = x for a label of 1 and -x for 0, p = sigmoid(z): loss = alpha_t*(1 -
 * p)^gamma*(-log p). */
#include "elementwise.cuh"

namespace {
/* alpha_t*(1 - p)^gamma; 1 - p = sigmoid(-z) = exp(-softplus(z)) */
struct focal {
    float alpha, gamma;
    PK_DEVICE float weight(float label, float z) const {
        return (label > 0.5f ? alpha : 1.0f - alpha) * expf(-gamma * pk_softplus(z));
    }
    PK_DEVICE float operator()(float x, float label) const {
        const float z = label > 0.5f ? x : -x;
        return weight(label, z) * pk_softplus(-z);
    }
};
/* d/dz of (1 - p)^gamma*softplus(-z) is -(1 - p)^gamma*(gamma*p*softplus(-z) + 1 - p). */
struct slope : focal {
    PK_DEVICE float operator()(float x, float label, float dloss) const {
        const float z = label > 0.5f ? x : -x;
        const float inner = fmaf(gamma * pk_sigmoid(z), pk_softplus(-z), pk_sigmoid(-z));
        const float d = weight(label, z) * inner * dloss;
        return label > 0.5f ? -d : d;
    }
};
template <class F> F numbers(const pk_call *call) {
    F f;
    f.alpha = (float)call->attr[0].f, f.gamma = (float)call->attr[1].f;
    return f;
}

/* x, label, loss: any equal shape; attributes alpha, gamma */
pk_status forward(const pk_call *call) { return pk_map<2>(call, numbers<focal>(call)); }
pk_status backward_x(const pk_call *call) { return pk_map<3>(call, numbers<slope>(call)); }
} /* namespace */

PK_OP(
    sigmoid_focal_loss,
    {"sigmoid_focal_loss.forward(x: f32, label: f32; alpha: float, gamma: float) -> (loss: f32)",
     forward},
    {"sigmoid_focal_loss.backward_x(x: f32, label: f32, dloss: f32; alpha: float, gamma: float) -> (dx: f32)",
     backward_x});
