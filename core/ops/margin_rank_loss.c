/* margin_rank_loss: loss = max(0, margin - label*(left - right)), label +1 or -1. */
#include "loss_each.h"

/* p[0]: margin */
PK_INLINE pk_vec reach(const loss_each *k, int64_t i, int64_t c) {
    const pk_vec o = pk_sub(LOSS_IN(k, 1, i, c), LOSS_IN(k, 2, i, c));
    return pk_fnma(LOSS_IN(k, 0, i, c), o, pk_set1(k->p[0]));
}
PK_INLINE pk_vec margin_at(const loss_each *k, int64_t i, int64_t c) { return pk_relu(reach(k, i, c)); }

/* p[1]: -1 for left, 1 for right */
PK_INLINE pk_vec slope_at(const loss_each *k, int64_t i, int64_t c) {
    const pk_vec d = pk_mul(pk_mul(LOSS_IN(k, 0, i, c), pk_set1(k->p[1])), LOSS_IN(k, 3, i, c));
    return pk_select(pk_gt(reach(k, i, c), pk_zero()), d, pk_zero());
}

LOSS_TASK(margin_task, margin_at)
LOSS_TASK(slope_task, slope_at)

/* label, left, right, loss: any equal shape */
static pk_status forward(const pk_call *call) {
    return loss_run(call, 3, margin_task, (loss_each){.p = {(float)call->attr[0].f}});
}
static pk_status backward_left(const pk_call *call) {
    return loss_run(call, 4, slope_task, (loss_each){.p = {(float)call->attr[0].f, -1.0f}});
}
static pk_status backward_right(const pk_call *call) {
    return loss_run(call, 4, slope_task, (loss_each){.p = {(float)call->attr[0].f, 1.0f}});
}

PK_OP(margin_rank_loss,
      {"margin_rank_loss.forward(label: f32, left: f32, right: f32; margin: float) -> (loss: f32)", forward},
      {"margin_rank_loss.backward_left(label: f32, left: f32, right: f32, dloss: f32; margin: float) -> (dleft: f32)",
       backward_left},
      {"margin_rank_loss.backward_right(label: f32, left: f32, right: f32, dloss: f32; margin: float) -> (dright: f32)",
       backward_right});
