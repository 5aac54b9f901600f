/* huber_loss: d = x - label; d^2/2 where |d| <= delta, else delta*(|d| - delta/2). */
#include "loss_each.h"

/* p[0]: delta */
PK_INLINE pk_vec huber_at(const loss_each *k, int64_t i, int64_t c) {
    const pk_vec delta = pk_set1(k->p[0]), half = pk_set1(0.5f);
    const pk_vec a = pk_abs(pk_sub(LOSS_IN(k, 0, i, c), LOSS_IN(k, 1, i, c)));
    const pk_vec far = pk_mul(delta, pk_fnma(half, delta, a));
    return pk_select(pk_gt(a, delta), far, pk_mul(half, pk_mul(a, a)));
}

/* The slope is d itself, held within [-delta, delta]; p[1]: 1 for x, -1 for the label. */
PK_INLINE pk_vec slope_at(const loss_each *k, int64_t i, int64_t c) {
    const pk_vec delta = pk_set1(k->p[0]);
    const pk_vec d = pk_sub(LOSS_IN(k, 0, i, c), LOSS_IN(k, 1, i, c));
    const pk_vec held = pk_min(delta, pk_max(pk_neg(delta), d));
    return pk_mul(pk_mul(held, pk_set1(k->p[1])), LOSS_IN(k, 2, i, c));
}

LOSS_TASK(huber_task, huber_at)
LOSS_TASK(slope_task, slope_at)

/* x, label, loss: any equal shape */
static pk_status forward(const pk_call *call) {
    return loss_run(call, 2, huber_task, (loss_each){.p = {(float)call->attr[0].f}});
}
static pk_status backward_x(const pk_call *call) {
    return loss_run(call, 3, slope_task, (loss_each){.p = {(float)call->attr[0].f, 1.0f}});
}
static pk_status backward_label(const pk_call *call) {
    return loss_run(call, 3, slope_task, (loss_each){.p = {(float)call->attr[0].f, -1.0f}});
}

PK_OP(huber_loss,
      {"huber_loss.forward(x: f32, label: f32; delta: float) -> (loss: f32)", forward},
      {"huber_loss.backward_x(x: f32, label: f32, dloss: f32; delta: float) -> (dx: f32)", backward_x},
      {"huber_loss.backward_label(x: f32, label: f32, dloss: f32; delta: float) -> (dlabel: f32)", backward_label});
