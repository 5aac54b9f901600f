/* sigmoid_cross_entropy: loss = max(x, 0) - x*label + log(1 + e^-|x|), 0 where the label is `ignore_index`.
 *
 * With `count` [1] the losses are divided by it: the number of labels of the whole batch that are not ignored.  It is an
 * input because a micro-batch does not know it. */
#include "loss_each.h"

/* p[0]: ignore_index, p[1]: what every value is multiplied with */
PK_INLINE pk_vec loss_at(const loss_each *k, int64_t i, int64_t c) {
    const pk_vec x = LOSS_IN(k, 0, i, c), t = LOSS_IN(k, 1, i, c);
    const pk_vec tail = pk_log1p(pk_exp(pk_neg(pk_abs(x))));
    const pk_vec v = pk_add(pk_fnma(x, t, pk_max(pk_zero(), x)), tail);
    return pk_select(pk_eq(t, pk_set1(k->p[0])), pk_zero(), pk_mul(v, pk_set1(k->p[1])));
}

PK_INLINE pk_vec slope_at(const loss_each *k, int64_t i, int64_t c) {
    const pk_vec x = LOSS_IN(k, 0, i, c), t = LOSS_IN(k, 1, i, c);
    /* sigmoid(x) - 1 for large x would lose all digits: take e^-|x| on the far side, -e/(1 + e) near a label of 1. */
    const pk_vec one = pk_set1(1.0f), e = pk_exp(pk_neg(pk_abs(x))), w = pk_add(one, e);
    const pk_mask up = pk_gt(x, pk_zero());
    const pk_vec p = pk_div(pk_select(up, one, e), w), q = pk_div(pk_select(up, e, one), w); /* q = 1 - p */
    /* p - t = p*(1 - t) - q*t */
    const pk_vec d = pk_sub(pk_mul(p, pk_sub(one, t)), pk_mul(q, t));
    const pk_vec v = pk_mul(pk_mul(d, pk_set1(k->p[1])), LOSS_IN(k, 2, i, c));
    return pk_select(pk_eq(t, pk_set1(k->p[0])), pk_zero(), v);
}

LOSS_TASK(loss_task, loss_at)
LOSS_TASK(slope_task, slope_at)

/* count: [1] or absent; a count of 0 gives zeros */
static loss_each numbers(const pk_call *call, const pk_view *count) {
    const float n = count->data == NULL ? 1.0f : pk_f32(count)[0];
    return (loss_each){.p = {(float)call->attr[0].i, n > 0.0f ? 1.0f / n : 0.0f}};
}

/* x, label, loss: any equal shape */
static pk_status forward(const pk_call *call) {
    return loss_run(call, 2, loss_task, numbers(call, &call->in[2]));
}
static pk_status backward_x(const pk_call *call) {
    return loss_run(call, 3, slope_task, numbers(call, &call->in[3]));
}

PK_OP(sigmoid_cross_entropy,
      {"sigmoid_cross_entropy.forward(x: f32, label: f32, count?: f32; ignore_index: int) -> (loss: f32)", forward},
      {"sigmoid_cross_entropy.backward_x(x: f32, label: f32, dloss: f32, count?: f32; ignore_index: int) -> (dx: f32)",
       backward_x});
