/* decayed_adagrad: m = rho*m + (1 - rho)*d^2; p -= rate*d / (sqrt(m) + epsilon). */
#include "updates.h"

typedef struct decayed_settings {
    float rho, rest, epsilon;  /* rest: 1 - rho */
} decayed_settings;

static decayed_settings read_settings(const pk_attr *attr) {
    return (decayed_settings){.rho = (float)attr[0].f, .rest = (float)(1.0 - attr[0].f),
                              .epsilon = (float)attr[1].f};
}

/* p, g, m [n] */
static void decayed_piece(const void *settings, const pk_update *update, float *restrict p, const float *restrict g,
                          float *const *slots, int64_t n) {
    const decayed_settings k = *(const decayed_settings *)settings;
    const pk_update u = *update;
    float *restrict m = slots[0];
    PK_UPDATE_EACH(u, p, g, n, i, d, m[i] = k.rho * m[i] + k.rest * d * d;
                   p[i] -= u.rate * d / (sqrtf(m[i]) + k.epsilon););
}

static const pk_rule decayed = {.slots = 1, .piece = decayed_piece};

static pk_status decayed_update(const pk_call *call) {
    const decayed_settings k = read_settings(call->attr + PK_FLAT_ATTRS);
    return pk_update_flat(call, &decayed, &k);
}

/* The mean of a row without a gradient decays. */
static pk_status decayed_update_rows(const pk_call *call) {
    const decayed_settings k = read_settings(call->attr + PK_ROWS_ATTRS);
    return pk_update_rows(call, &decayed, &k, 1);
}

PK_OP(decayed_adagrad,
      {"decayed_adagrad.update(p: f32, g: f32, moment: f32, " PK_FLAT_PORTS ", rho: float, epsilon: float)"
       " -> (p_out: f32, moment_out: f32)", decayed_update},
      {"decayed_adagrad.update_rows(p: f32, ids: i64, values: f32, rows: i64, moment: f32, " PK_ROWS_PORTS
       ", rho: float, epsilon: float) -> (p_out: f32, moment_out: f32)", decayed_update_rows});
