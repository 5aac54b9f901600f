/* lars_momentum: momentum with a rate of its own for each parameter,
 * l = rate * coefficient * |p| / (|d| + decay*|p| + epsilon); v = mu*v + l*(d + decay*p); p -= v. */
#include "updates.h"

typedef struct lars_settings {
    float mu, coefficient, decay, epsilon;
} lars_settings;

static lars_settings read_settings(const pk_attr *attr) {
    return (lars_settings){.mu = (float)attr[0].f, .coefficient = (float)attr[1].f, .decay = (float)attr[2].f,
                           .epsilon = (float)attr[3].f};
}

/* Adds |p|^2 and |d|^2 of n elements.  d goes through a small buffer, so that the sum has pk_square_sum's order. */
static void lars_norms(const void *settings, const pk_update *update, const float *p, const float *g,
                       float *const *slots, int64_t n, double sums[2]) {
    (void)settings, (void)slots;
    const pk_update u = *update;
    float buffer[1024];
    for (int64_t begin = 0; begin < n; begin += 1024) {
        const int64_t count = pk_min_i64(1024, n - begin);
        const float *part = p + begin, *grad = g ? g + begin : NULL;
        PK_UPDATE_EACH(u, part, grad, count, i, d, buffer[i] = d;);
        sums[0] += pk_square_sum(part, count);
        sums[1] += pk_square_sum(buffer, count);
    }
}

/* A parameter that is all zero (a new bias) or has no gradient takes the plain rate: its own one would be 0. */
static float lars_rate(const void *settings, const pk_update *update, double p2, double d2) {
    const lars_settings *k = settings;
    const double p = sqrt(p2), d = sqrt(d2);
    if (p == 0.0 || d == 0.0) return update->rate;
    return (float)((double)update->rate * (double)k->coefficient * p /
                   (d + (double)k->decay * p + (double)k->epsilon));
}

/* p, g, v [n] */
static void lars_piece(const void *settings, const pk_update *update, float *restrict p, const float *restrict g,
                       float *const *slots, int64_t n) {
    const lars_settings k = *(const lars_settings *)settings;
    const pk_update u = *update;
    float *restrict v = slots[0];
    PK_UPDATE_EACH(u, p, g, n, i, d, v[i] = k.mu * v[i] + u.trust * (d + k.decay * p[i]); p[i] -= v[i];);
}

static const pk_rule lars = {.slots = 1, .piece = lars_piece, .norms = lars_norms, .trust = lars_rate};

static pk_status lars_update(const pk_call *call) {
    const lars_settings k = read_settings(call->attr + PK_FLAT_ATTRS);
    return pk_update_flat(call, &lars, &k);
}

static pk_status lars_update_rows(const pk_call *call) {
    const lars_settings k = read_settings(call->attr + PK_ROWS_ATTRS);
    return pk_update_rows(call, &lars, &k, 1);
}

PK_OP(lars_momentum,
      {"lars_momentum.update(p: f32, g: f32, velocity: f32, " PK_FLAT_PORTS
       ", momentum: float, coefficient: float, weight_decay: float, epsilon: float)"
       " -> (p_out: f32, velocity_out: f32, work: f64)", lars_update},
      {"lars_momentum.update_rows(p: f32, ids: i64, values: f32, rows: i64, velocity: f32, " PK_ROWS_PORTS
       ", momentum: float, coefficient: float, weight_decay: float, epsilon: float)"
       " -> (p_out: f32, velocity_out: f32, work: f64)", lars_update_rows});
