/* rmsprop: s = rho*s + (1 - rho)*d^2; v = mu*v + rate*d / sqrt(s + epsilon); p -= v.
 * Centred: a = rho*a + (1 - rho)*d, and s - a^2 stands in the root; only then is there a third slot. */
#include "update_vectors.h"

typedef struct rmsprop_settings {
    float rho, rest, epsilon, mu;  /* rest: 1 - rho */
} rmsprop_settings;

static rmsprop_settings read_settings(const pk_attr *attr) {
    return (rmsprop_settings){.rho = (float)attr[0].f, .rest = (float)(1.0 - attr[0].f),
                              .epsilon = (float)attr[1].f, .mu = (float)attr[2].f};
}

/* p, g, s, v [n]: plain_piece for gradients that nothing clips or regularises. */
static void free_piece(rmsprop_settings k, float rate, float *restrict p, const float *restrict g,
                       float *restrict s, float *restrict v, int64_t n) {
    const pk_vec rho = pk_set1(k.rho), rest = pk_set1(k.rest);
    const pk_vec mu = pk_set1(k.mu), vrate = pk_set1(rate);
    PK_UPDATE_ROOTS(n, i, c, a, square, {
        const pk_vec d = pk_add(pk_load_n(g + i, c), pk_zero());
        const pk_vec mean = pk_add(pk_mul(rho, pk_load_n(s + i, c)), pk_mul(pk_mul(rest, d), d));
        pk_store_n(s + i, mean, c);
        square = pk_add(mean, pk_set1(k.epsilon));
        a = pk_mul(vrate, d);
    }, 0.0f, step, {
        const pk_vec moved = pk_add(pk_mul(mu, pk_load_n(v + i, c)), step);
        pk_store_n(v + i, moved, c);
        pk_store_n(p + i, pk_sub(pk_load_n(p + i, c), moved), c);
    });
}

/* p, g, s, v [n] */
static void plain_piece(const void *settings, const pk_update *update, float *restrict p, const float *restrict g,
                        float *const *slots, int64_t n) {
    const rmsprop_settings k = *(const rmsprop_settings *)settings;
    const pk_update u = *update;
    float *restrict s = slots[0], *restrict v = slots[1];
    if (g && pk_update_is_plain(u)) {
        free_piece(k, u.rate, p, g, s, v, n);
        return;
    }
    PK_UPDATE_EACH(u, p, g, n, i, d, s[i] = k.rho * s[i] + k.rest * d * d;
                   v[i] = k.mu * v[i] + u.rate * d / sqrtf(s[i] + k.epsilon); p[i] -= v[i];);
}

/* p, g, s, v, a [n] */
static void centered_piece(const void *settings, const pk_update *update, float *restrict p, const float *restrict g,
                           float *const *slots, int64_t n) {
    const rmsprop_settings k = *(const rmsprop_settings *)settings;
    const pk_update u = *update;
    float *restrict s = slots[0], *restrict v = slots[1], *restrict a = slots[2];
    PK_UPDATE_EACH(u, p, g, n, i, d, s[i] = k.rho * s[i] + k.rest * d * d; a[i] = k.rho * a[i] + k.rest * d;
                   v[i] = k.mu * v[i] + u.rate * d / sqrtf(s[i] - a[i] * a[i] + k.epsilon); p[i] -= v[i];);
}

static const pk_rule plain = {.slots = 2, .piece = plain_piece};
static const pk_rule centered = {.slots = 3, .piece = centered_piece};

static pk_status flat(const pk_call *call, const pk_rule *rule) {
    const rmsprop_settings k = read_settings(call->attr + PK_FLAT_ATTRS);
    return pk_update_flat(call, rule, &k);
}

/* The means of a row without a gradient decay, and its velocity moves it on. */
static pk_status rows(const pk_call *call, const pk_rule *rule) {
    const rmsprop_settings k = read_settings(call->attr + PK_ROWS_ATTRS);
    return pk_update_rows(call, rule, &k, 1);
}

static pk_status rmsprop_update(const pk_call *call) { return flat(call, &plain); }
static pk_status rmsprop_update_rows(const pk_call *call) { return rows(call, &plain); }
static pk_status rmsprop_update_centered(const pk_call *call) { return flat(call, &centered); }
static pk_status rmsprop_update_rows_centered(const pk_call *call) { return rows(call, &centered); }

#define OWN ", rho: float, epsilon: float, momentum: float"
#define PLAIN "mean_square: f32, velocity: f32, "
#define CENTERED PLAIN "mean_grad: f32, "
#define ROWS "p: f32, ids: i64, values: f32, rows: i64, "
#define PLAIN_OUT ") -> (p_out: f32, mean_square_out: f32, velocity_out: f32"
PK_OP(rmsprop,
      {"rmsprop.update(p: f32, g: f32, " PLAIN PK_FLAT_PORTS OWN PLAIN_OUT ")", rmsprop_update},
      {"rmsprop.update_rows(" ROWS PLAIN PK_ROWS_PORTS OWN PLAIN_OUT ")", rmsprop_update_rows},
      {"rmsprop.update_centered(p: f32, g: f32, " CENTERED PK_FLAT_PORTS OWN PLAIN_OUT ", mean_grad_out: f32)",
       rmsprop_update_centered},
      {"rmsprop.update_rows_centered(" ROWS CENTERED PK_ROWS_PORTS OWN PLAIN_OUT ", mean_grad_out: f32)",
       rmsprop_update_rows_centered});
