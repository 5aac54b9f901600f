/* adagrad: m += d^2; p -= rate*d / (sqrt(m) + epsilon). */
#include "update_vectors.h"

typedef struct adagrad_settings {
    float epsilon;
} adagrad_settings;

static adagrad_settings read_settings(const pk_attr *attr) {
    return (adagrad_settings){.epsilon = (float)attr[0].f};
}

/* p, g, m [n]: adagrad_piece for plain gradients. */
static void plain_piece(float rate, float epsilon, float *restrict p, const float *restrict g,
                        float *restrict m, int64_t n) {
    const pk_vec vrate = pk_set1(rate);
    PK_UPDATE_ROOTS(n, i, c, a, s, {
        const pk_vec d = pk_add(pk_load_n(g + i, c), pk_zero());
        s = pk_add(pk_load_n(m + i, c), pk_mul(d, d));
        pk_store_n(m + i, s, c);
        a = pk_mul(vrate, d);
    }, epsilon, step, pk_store_n(p + i, pk_sub(pk_load_n(p + i, c), step), c));
}

/* p, g, m [n] */
static void adagrad_piece(const void *settings, const pk_update *update, float *restrict p, const float *restrict g,
                          float *const *slots, int64_t n) {
    const adagrad_settings k = *(const adagrad_settings *)settings;
    const pk_update u = *update;
    float *restrict m = slots[0];
    if (g && pk_update_is_plain(u)) {
        plain_piece(u.rate, k.epsilon, p, g, m, n);
        return;
    }
    PK_UPDATE_EACH(u, p, g, n, i, d, m[i] += d * d; p[i] -= u.rate * d / (sqrtf(m[i]) + k.epsilon););
}

static const pk_rule adagrad = {.slots = 1, .piece = adagrad_piece};

static pk_status adagrad_update(const pk_call *call) {
    const adagrad_settings k = read_settings(call->attr + PK_FLAT_ATTRS);
    return pk_update_flat(call, &adagrad, &k);
}

/* A row without a gradient stays as it is: its sum grows by 0 and it moves by 0. */
static pk_status adagrad_update_rows(const pk_call *call) {
    const adagrad_settings k = read_settings(call->attr + PK_ROWS_ATTRS);
    return pk_update_rows(call, &adagrad, &k, 0);
}

PK_OP(adagrad,
      {"adagrad.update(p: f32, g: f32, moment: f32, " PK_FLAT_PORTS ", epsilon: float)"
       " -> (p_out: f32, moment_out: f32)", adagrad_update},
      {"adagrad.update_rows(p: f32, ids: i64, values: f32, rows: i64, moment: f32, " PK_ROWS_PORTS
       ", epsilon: float) -> (p_out: f32, moment_out: f32)", adagrad_update_rows});
