/* adadelta: e = rho*e + (1 - rho)*d^2; s = -sqrt((u + epsilon)/(e + epsilon))*d; u = rho*u + (1 - rho)*s^2;
 * p += rate*s, or p += s where the rate is not used. */
#include "updates.h"

typedef struct adadelta_settings {
    float rho, rest, epsilon;  /* rest: 1 - rho */
    int uses_rate;
} adadelta_settings;

static adadelta_settings read_settings(const pk_attr *attr) {
    return (adadelta_settings){.rho = (float)attr[0].f, .rest = (float)(1.0 - attr[0].f),
                               .epsilon = (float)attr[1].f, .uses_rate = attr[2].i != 0};
}

/* p, g, e, u [n] */
static void adadelta_piece(const void *settings, const pk_update *update, float *restrict p, const float *restrict g,
                           float *const *slots, int64_t n) {
    const adadelta_settings k = *(const adadelta_settings *)settings;
    const pk_update u = *update;
    float *restrict grads = slots[0], *restrict steps = slots[1];
    const float rate = k.uses_rate ? u.rate : 1.0f;
    PK_UPDATE_EACH(u, p, g, n, i, d, grads[i] = k.rho * grads[i] + k.rest * d * d;
                   const float s = -sqrtf((steps[i] + k.epsilon) / (grads[i] + k.epsilon)) * d;
                   steps[i] = k.rho * steps[i] + k.rest * s * s; p[i] += rate * s;);
}

static const pk_rule adadelta = {.slots = 2, .piece = adadelta_piece};

static pk_status adadelta_update(const pk_call *call) {
    const adadelta_settings k = read_settings(call->attr + PK_FLAT_ATTRS);
    return pk_update_flat(call, &adadelta, &k);
}

/* Both means of a row without a gradient decay. */
static pk_status adadelta_update_rows(const pk_call *call) {
    const adadelta_settings k = read_settings(call->attr + PK_ROWS_ATTRS);
    return pk_update_rows(call, &adadelta, &k, 1);
}

#define OWN ", rho: float, epsilon: float, uses_rate: bool"
PK_OP(adadelta,
      {"adadelta.update(p: f32, g: f32, squared_grad: f32, squared_step: f32, " PK_FLAT_PORTS OWN ")"
       " -> (p_out: f32, squared_grad_out: f32, squared_step_out: f32)", adadelta_update},
      {"adadelta.update_rows(p: f32, ids: i64, values: f32, rows: i64, squared_grad: f32, squared_step: f32, "
       PK_ROWS_PORTS OWN ") -> (p_out: f32, squared_grad_out: f32, squared_step_out: f32)", adadelta_update_rows});
