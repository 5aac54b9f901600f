/* sigmoid_focal_loss: with z = x for a label of 1 and -x for 0, p = sigmoid(z): loss = alpha_t*(1 - p)^gamma*(-log p). */
#include "loss_each.h"

/* p[0]: alpha, p[1]: gamma */
PK_INLINE pk_mask is_one(const loss_each *k, int64_t i, int64_t c) {
    return pk_gt(LOSS_IN(k, 1, i, c), pk_set1(0.5f));
}
PK_INLINE pk_vec toward_label(const loss_each *k, int64_t i, int64_t c) {
    const pk_vec x = LOSS_IN(k, 0, i, c);
    return pk_select(is_one(k, i, c), x, pk_neg(x));
}
/* alpha_t*(1 - p)^gamma; 1 - p = sigmoid(-z) = exp(-softplus(z)) */
PK_INLINE pk_vec weight_of(const loss_each *k, int64_t i, int64_t c, pk_vec z) {
    const pk_vec alpha = pk_select(is_one(k, i, c), pk_set1(k->p[0]), pk_set1(1.0f - k->p[0]));
    return pk_mul(alpha, pk_exp(pk_mul(pk_set1(-k->p[1]), pk_softplus(z))));
}
PK_INLINE pk_vec focal_at(const loss_each *k, int64_t i, int64_t c) {
    const pk_vec z = toward_label(k, i, c);
    return pk_mul(weight_of(k, i, c, z), pk_softplus(pk_neg(z)));
}
/* d/dz of (1 - p)^gamma*softplus(-z) is -(1 - p)^gamma*(gamma*p*softplus(-z) + 1 - p). */
PK_INLINE pk_vec slope_at(const loss_each *k, int64_t i, int64_t c) {
    const pk_vec z = toward_label(k, i, c), p = pk_sigmoid(z), q = pk_sigmoid(pk_neg(z));
    const pk_vec inner = pk_fma(pk_mul(pk_set1(k->p[1]), p), pk_softplus(pk_neg(z)), q);
    const pk_vec d = pk_mul(pk_mul(weight_of(k, i, c, z), inner), LOSS_IN(k, 2, i, c));
    return pk_select(is_one(k, i, c), pk_neg(d), d);
}

LOSS_TASK(focal_task, focal_at)
LOSS_TASK(slope_task, slope_at)

static loss_each numbers(const pk_call *call) {
    return (loss_each){.p = {(float)call->attr[0].f, (float)call->attr[1].f}};
}
/* x, label, loss: any equal shape; attributes alpha, gamma */
static pk_status forward(const pk_call *call) { return loss_run(call, 2, focal_task, numbers(call)); }
static pk_status backward_x(const pk_call *call) { return loss_run(call, 3, slope_task, numbers(call)); }

PK_OP(sigmoid_focal_loss,
      {"sigmoid_focal_loss.forward(x: f32, label: f32; alpha: float, gamma: float) -> (loss: f32)", forward},
      {"sigmoid_focal_loss.backward_x(x: f32, label: f32, dloss: f32; alpha: float, gamma: float) -> (dx: f32)",
       backward_x});
