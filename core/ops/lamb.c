/* lamb: adam's moments; r = m^ / (sqrt(v^) + epsilon) + decay*p; p -= rate * |p|/|r| * r for each parameter.
 * Without bias correction m and v stand for m^ and v^. */
#include "updates.h"

typedef struct lamb_settings {
    float beta1, rest1, beta2, rest2;      /* rest: 1 - beta */
    float epsilon, decay, whole1, whole2;  /* whole: 1/(1 - beta^t), 1 without correction */
} lamb_settings;

static lamb_settings read_settings(const pk_attr *attr, double t) {
    const int corrected = attr[4].i != 0;
    return (lamb_settings){
        .beta1 = (float)attr[0].f,
        .rest1 = (float)(1.0 - attr[0].f),
        .beta2 = (float)attr[1].f,
        .rest2 = (float)(1.0 - attr[1].f),
        .epsilon = (float)attr[2].f,
        .decay = (float)attr[3].f,
        .whole1 = corrected ? (float)(1.0 / (1.0 - pow(attr[0].f, t))) : 1.0f,
        .whole2 = corrected ? (float)(1.0 / (1.0 - pow(attr[1].f, t))) : 1.0f,
    };
}

static inline float direction(const lamb_settings k, float m, float v, float p) {
    return m * k.whole1 / (sqrtf(v * k.whole2) + k.epsilon) + k.decay * p;
}

/* First pass: moves the moments, adds |p|^2 and |r|^2.  r goes through a small buffer, so that the sum has
 * pk_square_sum's order. */
static void lamb_norms(const void *settings, const pk_update *update, const float *p, const float *g,
                       float *const *slots, int64_t n, double sums[2]) {
    const lamb_settings k = *(const lamb_settings *)settings;
    const pk_update u = *update;
    float r[1024];
    for (int64_t begin = 0; begin < n; begin += 1024) {
        const int64_t count = pk_min_i64(1024, n - begin);
        const float *restrict part = p + begin, *restrict grad = g ? g + begin : NULL;
        float *restrict m = slots[0] + begin, *restrict v = slots[1] + begin;
        PK_UPDATE_EACH(u, part, grad, count, i, d, m[i] = k.beta1 * m[i] + k.rest1 * d;
                       v[i] = k.beta2 * v[i] + k.rest2 * d * d; r[i] = direction(k, m[i], v[i], part[i]););
        sums[0] += pk_square_sum(part, count);
        sums[1] += pk_square_sum(r, count);
    }
}

/* A parameter that is all zero (a new bias) has no norm to keep: it moves by the plain rate. */
static float lamb_trust(const void *settings, const pk_update *update, double p2, double r2) {
    (void)settings, (void)update;
    return p2 == 0.0 || r2 == 0.0 ? 1.0f : (float)(sqrt(p2) / sqrt(r2));
}

/* Second pass: the moments are the new ones already.  p, m, v [n] */
static void lamb_piece(const void *settings, const pk_update *update, float *restrict p, const float *restrict g,
                       float *const *slots, int64_t n) {
    (void)g;
    const lamb_settings k = *(const lamb_settings *)settings;
    const float rate = update->rate * update->trust;
    const float *restrict m = slots[0], *restrict v = slots[1];
    for (int64_t i = 0; i < n; i++) p[i] -= rate * direction(k, m[i], v[i], p[i]);
}

static const pk_rule lamb = {.slots = 2, .counted = 1, .piece = lamb_piece, .norms = lamb_norms,
                             .trust = lamb_trust};

static pk_status lamb_update(const pk_call *call) {
    const lamb_settings k = read_settings(call->attr + PK_FLAT_ATTRS, pk_update_number(call, &lamb, 0));
    return pk_update_flat(call, &lamb, &k);
}

static pk_status lamb_update_rows(const pk_call *call) {
    const lamb_settings k = read_settings(call->attr + PK_ROWS_ATTRS, pk_update_number(call, &lamb, 1));
    return pk_update_rows(call, &lamb, &k, 1);
}

#define OWN ", beta1: float, beta2: float, epsilon: float, weight_decay: float, bias_correction: bool"
PK_OP(lamb,
      {"lamb.update(p: f32, g: f32, moment1: f32, moment2: f32, count: i64, " PK_FLAT_PORTS OWN ")"
       " -> (p_out: f32, moment1_out: f32, moment2_out: f32, work: f64)", lamb_update},
      {"lamb.update_rows(p: f32, ids: i64, values: f32, rows: i64, moment1: f32, moment2: f32, count: i64, "
       PK_ROWS_PORTS OWN ") -> (p_out: f32, moment1_out: f32, moment2_out: f32, work: f64)", lamb_update_rows});
