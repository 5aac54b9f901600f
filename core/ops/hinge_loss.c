/* hinge_loss: label 0 or 1; loss = max(0, 1 - (2*label - 1)*x). */
#include "loss_each.h"

/* 2*label - 1 */
PK_INLINE pk_vec side(const loss_each *k, int64_t i, int64_t c) {
    const pk_vec t = LOSS_IN(k, 1, i, c);
    return pk_sub(pk_add(t, t), pk_set1(1.0f));
}
PK_INLINE pk_vec hinge_at(const loss_each *k, int64_t i, int64_t c) {
    return pk_relu(pk_fnma(side(k, i, c), LOSS_IN(k, 0, i, c), pk_set1(1.0f)));
}
PK_INLINE pk_vec slope_at(const loss_each *k, int64_t i, int64_t c) {
    const pk_vec d = pk_neg(pk_mul(side(k, i, c), LOSS_IN(k, 2, i, c)));
    return pk_select(pk_gt(hinge_at(k, i, c), pk_zero()), d, pk_zero());
}

LOSS_TASK(hinge_task, hinge_at)
LOSS_TASK(slope_task, slope_at)

/* x, label, loss: any equal shape */
static pk_status forward(const pk_call *call) { return loss_run(call, 2, hinge_task, (loss_each){0}); }
static pk_status backward_x(const pk_call *call) { return loss_run(call, 3, slope_task, (loss_each){0}); }

PK_OP(hinge_loss,
      {"hinge_loss.forward(x: f32, label: f32) -> (loss: f32)", forward},
      {"hinge_loss.backward_x(x: f32, label: f32, dloss: f32) -> (dx: f32)", backward_x});
