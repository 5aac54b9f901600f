/* kl_div: x holds log-probabilities, label probabilities; loss = label*(log(label) - x), 0 where the label is not above 0. */
#include "loss_each.h"

PK_INLINE pk_vec kl_at(const loss_each *k, int64_t i, int64_t c) {
    const pk_vec t = LOSS_IN(k, 1, i, c);
    const pk_vec v = pk_mul(t, pk_sub(pk_log(t), LOSS_IN(k, 0, i, c)));
    return pk_select(pk_gt(t, pk_zero()), v, pk_zero());
}

PK_INLINE pk_vec slope_at(const loss_each *k, int64_t i, int64_t c) {
    const pk_vec t = LOSS_IN(k, 0, i, c);
    const pk_vec v = pk_neg(pk_mul(t, LOSS_IN(k, 1, i, c)));
    return pk_select(pk_gt(t, pk_zero()), v, pk_zero());
}

LOSS_TASK(kl_task, kl_at)
LOSS_TASK(slope_task, slope_at)

/* x, label, loss: any equal shape */
static pk_status forward(const pk_call *call) { return loss_run(call, 2, kl_task, (loss_each){0}); }
static pk_status backward_x(const pk_call *call) { return loss_run(call, 2, slope_task, (loss_each){0}); }

PK_OP(kl_div,
      {"kl_div.forward(x: f32, label: f32) -> (loss: f32)", forward},
      {"kl_div.backward_x(label: f32, dloss: f32) -> (dx: f32)", backward_x});
