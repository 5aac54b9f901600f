/* square_error_cost: loss = (x - label)^2, element by element, without a factor of one half. */
#include "loss_each.h"

PK_INLINE pk_vec square_at(const loss_each *k, int64_t i, int64_t c) {
    const pk_vec d = pk_sub(LOSS_IN(k, 0, i, c), LOSS_IN(k, 1, i, c));
    return pk_mul(d, d);
}

/* p[0]: 2 for x, -2 for the label */
PK_INLINE pk_vec slope_at(const loss_each *k, int64_t i, int64_t c) {
    const pk_vec d = pk_sub(LOSS_IN(k, 0, i, c), LOSS_IN(k, 1, i, c));
    return pk_mul(pk_mul(d, pk_set1(k->p[0])), LOSS_IN(k, 2, i, c));
}

LOSS_TASK(square_task, square_at)
LOSS_TASK(slope_task, slope_at)

/* x, label, loss: any equal shape */
static pk_status forward(const pk_call *call) {
    return loss_run(call, 2, square_task, (loss_each){0});
}
static pk_status backward_x(const pk_call *call) {
    return loss_run(call, 3, slope_task, (loss_each){.p = {2.0f}});
}
static pk_status backward_label(const pk_call *call) {
    return loss_run(call, 3, slope_task, (loss_each){.p = {-2.0f}});
}

PK_OP(square_error_cost,
      {"square_error_cost.forward(x: f32, label: f32) -> (loss: f32)", forward},
      {"square_error_cost.backward_x(x: f32, label: f32, dloss: f32) -> (dx: f32)", backward_x},
      {"square_error_cost.backward_label(x: f32, label: f32, dloss: f32) -> (dlabel: f32)", backward_label});
