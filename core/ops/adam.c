/* adam: m = b1*m + (1 - b1)*d; v = b2*v + (1 - b2)*d^2; p -= rate' * m / (sqrt(v) + epsilon'),
 * rate' = rate*sqrt(1 - b2^t)/(1 - b1^t); epsilon' = epsilon*sqrt(1 - b2^t) when it is scaled, else epsilon. */
#include "update_vectors.h"

typedef struct adam_settings {
    float beta1, rest1, beta2, rest2;  /* rest: 1 - beta */
    float epsilon, correction;           /* correction: of both biases, put into the rate */
} adam_settings;

static adam_settings read_settings(const pk_attr *attr, double t) {
    const double root = sqrt(1.0 - pow(attr[1].f, t));
    return (adam_settings){
        .beta1 = (float)attr[0].f,
        .rest1 = (float)(1.0 - attr[0].f),
        .beta2 = (float)attr[1].f,
        .rest2 = (float)(1.0 - attr[1].f),
        .epsilon = (float)(attr[3].i ? attr[2].f * root : attr[2].f),
        .correction = (float)(root / (1.0 - pow(attr[0].f, t))),
    };
}

/* p, g, m, v [n]: adam_piece for plain gradients. */
static void plain_piece(adam_settings k, float rate, float *restrict p, const float *restrict g,
                        float *restrict m, float *restrict v, int64_t n) {
    const pk_vec beta1 = pk_set1(k.beta1), rest1 = pk_set1(k.rest1);
    const pk_vec beta2 = pk_set1(k.beta2), rest2 = pk_set1(k.rest2);
    const pk_vec vrate = pk_set1(rate);
    PK_UPDATE_ROOTS(n, i, c, a, s, {
        const pk_vec d = pk_add(pk_load_n(g + i, c), pk_zero());
        const pk_vec mean = pk_add(pk_mul(beta1, pk_load_n(m + i, c)), pk_mul(rest1, d));
        s = pk_add(pk_mul(beta2, pk_load_n(v + i, c)), pk_mul(pk_mul(rest2, d), d));
        pk_store_n(m + i, mean, c);
        pk_store_n(v + i, s, c);
        a = pk_mul(vrate, mean);
    }, k.epsilon, step, pk_store_n(p + i, pk_sub(pk_load_n(p + i, c), step), c));
}

/* p, g, m, v [n] */
static void adam_piece(const void *settings, const pk_update *update, float *restrict p, const float *restrict g,
                       float *const *slots, int64_t n) {
    const adam_settings k = *(const adam_settings *)settings;
    const pk_update u = *update;
    float *restrict m = slots[0], *restrict v = slots[1];
    const float rate = u.rate * k.correction;
    if (g && pk_update_is_plain(u)) {
        plain_piece(k, rate, p, g, m, v, n);
        return;
    }
    PK_UPDATE_EACH(u, p, g, n, i, d, m[i] = k.beta1 * m[i] + k.rest1 * d; v[i] = k.beta2 * v[i] + k.rest2 * d * d;
                   p[i] -= rate * m[i] / (sqrtf(v[i]) + k.epsilon););
}

static const pk_rule adam = {.slots = 2, .counted = 1, .piece = adam_piece};

static pk_status adam_update(const pk_call *call) {
    const adam_settings k = read_settings(call->attr + PK_FLAT_ATTRS, pk_update_number(call, &adam, 0));
    return pk_update_flat(call, &adam, &k);
}

/* Rows without a gradient move with their decaying moments, unless the rule is lazy. */
static pk_status adam_update_rows(const pk_call *call) {
    const pk_attr *attr = call->attr + PK_ROWS_ATTRS;
    const adam_settings k = read_settings(attr, pk_update_number(call, &adam, 1));
    return pk_update_rows(call, &adam, &k, !attr[4].i);
}

#define OWN ", beta1: float, beta2: float, epsilon: float, scale_epsilon: bool"
PK_OP(adam,
      {"adam.update(p: f32, g: f32, moment1: f32, moment2: f32, count: i64, " PK_FLAT_PORTS OWN ")"
       " -> (p_out: f32, moment1_out: f32, moment2_out: f32)", adam_update},
      {"adam.update_rows(p: f32, ids: i64, values: f32, rows: i64, moment1: f32, moment2: f32, count: i64, "
       PK_ROWS_PORTS OWN ", lazy: bool) -> (p_out: f32, moment1_out: f32, moment2_out: f32)", adam_update_rows});
