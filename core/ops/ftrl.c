/* ftrl: n' = n + d^2; z += d - (n'^q - n^q)/rate*p with q = -power;
 * p = 0 where |z| <= l1, else (l1*sign(z) - z) / (n'^q/rate + 2*l2). */
#include "pk_simd.h"
#include "updates.h"

typedef struct ftrl_settings {
    float l1, l2, q;
    int is_root;  /* q is 1/2, the usual case */
} ftrl_settings;

/* The 1e-10 keep the division and the comparison off zero, as in the original. */
static ftrl_settings read_settings(const pk_attr *attr) {
    return (ftrl_settings){.l1 = (float)(attr[0].f + 1e-10), .l2 = (float)(attr[1].f + 1e-10),
                           .q = (float)-attr[2].f, .is_root = attr[2].f == -0.5};
}

#define ROOT(x) sqrtf(x)
#define POWER(x) pk_exp1(k.q * pk_log1(x))
/* One element, with x^q by the given name. */
#define FTRL_STEP(RAISE)                                                            \
    const float sum = squares[i] + d * d, root = RAISE(sum);                        \
    const float line = z[i] + (d - (root - RAISE(squares[i])) / u.rate * p[i]);     \
    const float edge = line > 0.0f ? k.l1 : -k.l1;                                  \
    const float inside = (edge - line) / (root / u.rate + 2.0f * k.l2);             \
    p[i] = fabsf(line) <= k.l1 ? 0.0f : inside;                                     \
    squares[i] = sum;                                                               \
    z[i] = line;

/* p, g, squares, linear [n].  With a rate of 0 (the start of a warm-up) the rule has no meaning: nothing moves. */
static void ftrl_piece(const void *settings, const pk_update *update, float *restrict p, const float *restrict g,
                       float *const *slots, int64_t n) {
    const ftrl_settings k = *(const ftrl_settings *)settings;
    const pk_update u = *update;
    float *restrict squares = slots[0], *restrict z = slots[1];
    if (u.rate == 0.0f) return;
    if (k.is_root) PK_UPDATE_EACH(u, p, g, n, i, d, FTRL_STEP(ROOT));
    else PK_UPDATE_EACH(u, p, g, n, i, d, FTRL_STEP(POWER));
}

static const pk_rule ftrl = {.slots = 2, .piece = ftrl_piece};

static pk_status ftrl_update(const pk_call *call) {
    const ftrl_settings k = read_settings(call->attr + PK_FLAT_ATTRS);
    return pk_update_flat(call, &ftrl, &k);
}

/* Rows without a gradient keep their values: the rule would put new ones to 0. */
static pk_status ftrl_update_rows(const pk_call *call) {
    const ftrl_settings k = read_settings(call->attr + PK_ROWS_ATTRS);
    return pk_update_rows(call, &ftrl, &k, 0);
}

#define OWN ", shrink_l1: float, shrink_l2: float, power: float"
PK_OP(ftrl,
      {"ftrl.update(p: f32, g: f32, squared: f32, linear: f32, " PK_FLAT_PORTS OWN ")"
       " -> (p_out: f32, squared_out: f32, linear_out: f32)", ftrl_update},
      {"ftrl.update_rows(p: f32, ids: i64, values: f32, rows: i64, squared: f32, linear: f32, "
       PK_ROWS_PORTS OWN ") -> (p_out: f32, squared_out: f32, linear_out: f32)", ftrl_update_rows});
