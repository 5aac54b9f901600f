/* momentum: v = mu*v + d; p -= rate*v, or with nesterov p -= rate*(d + mu*v). */
#include "updates.h"

typedef struct momentum_settings {
    float mu;
    int nesterov;
} momentum_settings;

static momentum_settings read_settings(const pk_attr *attr) {
    return (momentum_settings){.mu = (float)attr[0].f, .nesterov = attr[1].i != 0};
}

/* p, g, v [n] */
static void momentum_piece(const void *settings, const pk_update *update, float *restrict p, const float *restrict g,
                           float *const *slots, int64_t n) {
    const momentum_settings k = *(const momentum_settings *)settings;
    const pk_update u = *update;
    float *restrict v = slots[0];
    if (k.nesterov)
        PK_UPDATE_EACH(u, p, g, n, i, d, v[i] = k.mu * v[i] + d; p[i] -= u.rate * (d + k.mu * v[i]););
    else
        PK_UPDATE_EACH(u, p, g, n, i, d, v[i] = k.mu * v[i] + d; p[i] -= u.rate * v[i];);
}

static const pk_rule momentum = {.slots = 1, .piece = momentum_piece};

static pk_status momentum_update(const pk_call *call) {
    const momentum_settings k = read_settings(call->attr + PK_FLAT_ATTRS);
    return pk_update_flat(call, &momentum, &k);
}

/* The velocity of a row without a gradient decays, and the row moves on with it. */
static pk_status momentum_update_rows(const pk_call *call) {
    const momentum_settings k = read_settings(call->attr + PK_ROWS_ATTRS);
    return pk_update_rows(call, &momentum, &k, 1);
}

PK_OP(momentum,
      {"momentum.update(p: f32, g: f32, velocity: f32, " PK_FLAT_PORTS ", momentum: float, nesterov: bool)"
       " -> (p_out: f32, velocity_out: f32)", momentum_update},
      {"momentum.update_rows(p: f32, ids: i64, values: f32, rows: i64, velocity: f32, " PK_ROWS_PORTS
       ", momentum: float, nesterov: bool) -> (p_out: f32, velocity_out: f32)", momentum_update_rows});
