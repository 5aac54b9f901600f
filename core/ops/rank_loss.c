/* rank_loss: o = left - right; loss = log(1 + e^o) - label*o. */
#include "loss_each.h"

PK_INLINE pk_vec rank_at(const loss_each *k, int64_t i, int64_t c) {
    const pk_vec o = pk_sub(LOSS_IN(k, 1, i, c), LOSS_IN(k, 2, i, c));
    return pk_sub(pk_softplus(o), pk_mul(LOSS_IN(k, 0, i, c), o));
}

/* p[0]: 1 for left, -1 for right */
PK_INLINE pk_vec slope_at(const loss_each *k, int64_t i, int64_t c) {
    const pk_vec o = pk_sub(LOSS_IN(k, 1, i, c), LOSS_IN(k, 2, i, c));
    const pk_vec d = pk_sub(pk_sigmoid(o), LOSS_IN(k, 0, i, c));
    return pk_mul(pk_mul(d, pk_set1(k->p[0])), LOSS_IN(k, 3, i, c));
}

LOSS_TASK(rank_task, rank_at)
LOSS_TASK(slope_task, slope_at)

/* label, left, right, loss: any equal shape */
static pk_status forward(const pk_call *call) { return loss_run(call, 3, rank_task, (loss_each){0}); }
static pk_status backward_left(const pk_call *call) {
    return loss_run(call, 4, slope_task, (loss_each){.p = {1.0f}});
}
static pk_status backward_right(const pk_call *call) {
    return loss_run(call, 4, slope_task, (loss_each){.p = {-1.0f}});
}

PK_OP(rank_loss,
      {"rank_loss.forward(label: f32, left: f32, right: f32) -> (loss: f32)", forward},
      {"rank_loss.backward_left(label: f32, left: f32, right: f32, dloss: f32) -> (dleft: f32)", backward_left},
      {"rank_loss.backward_right(label: f32, left: f32, right: f32, dloss: f32) -> (dright: f32)", backward_right});
