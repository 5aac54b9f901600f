/* adamax: m = b1*m + (1 - b1)*d; u = max(|d|, b2*u + epsilon); p -= rate/(1 - b1^t) * m/u. */
#include "updates.h"

typedef struct adamax_settings {
    float beta1, rest1, beta2, epsilon, correction;  /* rest1: 1 - beta1; correction: 1/(1 - beta1^t) */
} adamax_settings;

static adamax_settings read_settings(const pk_attr *attr, double t) {
    return (adamax_settings){
        .beta1 = (float)attr[0].f,
        .rest1 = (float)(1.0 - attr[0].f),
        .beta2 = (float)attr[1].f,
        .epsilon = (float)attr[2].f,
        .correction = (float)(1.0 / (1.0 - pow(attr[0].f, t))),
    };
}

/* p, g, m, norm [n].  The comparison lets a NaN through to p. */
static void adamax_piece(const void *settings, const pk_update *update, float *restrict p, const float *restrict g,
                         float *const *slots, int64_t n) {
    const adamax_settings k = *(const adamax_settings *)settings;
    const pk_update u = *update;
    float *restrict m = slots[0], *restrict norm = slots[1];
    const float rate = u.rate * k.correction;
    PK_UPDATE_EACH(u, p, g, n, i, d, m[i] = k.beta1 * m[i] + k.rest1 * d;
                   const float old = k.beta2 * norm[i] + k.epsilon; const float size = fabsf(d);
                   norm[i] = old > size ? old : size; p[i] -= rate * m[i] / norm[i];);
}

static const pk_rule adamax = {.slots = 2, .counted = 1, .piece = adamax_piece};

static pk_status adamax_update(const pk_call *call) {
    const adamax_settings k = read_settings(call->attr + PK_FLAT_ATTRS, pk_update_number(call, &adamax, 0));
    return pk_update_flat(call, &adamax, &k);
}

static pk_status adamax_update_rows(const pk_call *call) {
    const adamax_settings k = read_settings(call->attr + PK_ROWS_ATTRS, pk_update_number(call, &adamax, 1));
    return pk_update_rows(call, &adamax, &k, 1);
}

#define OWN ", beta1: float, beta2: float, epsilon: float"
PK_OP(adamax,
      {"adamax.update(p: f32, g: f32, moment: f32, norm: f32, count: i64, " PK_FLAT_PORTS OWN ")"
       " -> (p_out: f32, moment_out: f32, norm_out: f32)", adamax_update},
      {"adamax.update_rows(p: f32, ids: i64, values: f32, rows: i64, moment: f32, norm: f32, count: i64, "
       PK_ROWS_PORTS OWN ") -> (p_out: f32, moment_out: f32, norm_out: f32)", adamax_update_rows});
