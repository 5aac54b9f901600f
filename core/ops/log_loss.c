/* log_loss: x is a probability; loss = -label*log(x + epsilon) - (1 - label)*log(1 - x + epsilon). */
#include "loss_each.h"

/* p[0]: epsilon */
PK_INLINE pk_vec log_at(const loss_each *k, int64_t i, int64_t c) {
    const pk_vec one = pk_set1(1.0f), e = pk_set1(k->p[0]);
    const pk_vec x = LOSS_IN(k, 0, i, c), t = LOSS_IN(k, 1, i, c);
    const pk_vec yes = pk_mul(t, pk_log(pk_add(x, e)));
    const pk_vec no = pk_mul(pk_sub(one, t), pk_log(pk_add(pk_sub(one, x), e)));
    return pk_neg(pk_add(yes, no));
}

PK_INLINE pk_vec slope_at(const loss_each *k, int64_t i, int64_t c) {
    const pk_vec one = pk_set1(1.0f), e = pk_set1(k->p[0]);
    const pk_vec x = LOSS_IN(k, 0, i, c), t = LOSS_IN(k, 1, i, c);
    const pk_vec yes = pk_div(t, pk_add(x, e));
    const pk_vec no = pk_div(pk_sub(one, t), pk_add(pk_sub(one, x), e));
    return pk_mul(pk_sub(no, yes), LOSS_IN(k, 2, i, c));
}

LOSS_TASK(log_task, log_at)
LOSS_TASK(slope_task, slope_at)

/* x, label, loss: any equal shape */
static pk_status forward(const pk_call *call) {
    return loss_run(call, 2, log_task, (loss_each){.p = {(float)call->attr[0].f}});
}
static pk_status backward_x(const pk_call *call) {
    return loss_run(call, 3, slope_task, (loss_each){.p = {(float)call->attr[0].f}});
}

PK_OP(log_loss,
      {"log_loss.forward(x: f32, label: f32; epsilon: float) -> (loss: f32)", forward},
      {"log_loss.backward_x(x: f32, label: f32, dloss: f32; epsilon: float) -> (dx: f32)", backward_x});
