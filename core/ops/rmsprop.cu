/* rmsprop: s = rho*s + (1 - rho)*d^2; v = mu*v + rate*d / sqrt(s + epsilon); p -= v.
 * Centred: a = rho*a + (1 - rho)*d, and s - a^2 stands in the root; only then is there a third
 * slot. */
#include "updates.cuh"

namespace {
struct means {
    float rho, rest, epsilon, mu; /* rest: 1 - rho */
    struct settings {
        int unused;
    };
    PK_DEVICE settings prepare(double) const { return settings{0}; }
};
struct plain : means {
    static const int slots = 2, counted = 0;
    PK_DEVICE void step(const settings &, const pk_update &u, float d, float *p,
                        float *const *slot) const {
        float *s = slot[0], *v = slot[1];
        *s = rho * *s + rest * d * d;
        *v = mu * *v + u.rate * d / sqrtf(*s + epsilon);
        *p -= *v;
    }
};
struct centered : means {
    static const int slots = 3, counted = 0;
    PK_DEVICE void step(const settings &, const pk_update &u, float d, float *p,
                        float *const *slot) const {
        float *s = slot[0], *v = slot[1], *a = slot[2];
        *s = rho * *s + rest * d * d;
        *a = rho * *a + rest * d;
        *v = mu * *v + u.rate * d / sqrtf(*s - *a * *a + epsilon);
        *p -= *v;
    }
};

template <class R> R read_settings(const pk_attr *attr) {
    R rule;
    rule.rho = (float)attr[0].f, rule.rest = (float)(1.0 - attr[0].f);
    rule.epsilon = (float)attr[1].f, rule.mu = (float)attr[2].f;
    return rule;
}
template <class R> pk_status flat(const pk_call *call) {
    return pk_update_flat(call, read_settings<R>(call->attr + PK_FLAT_ATTRS));
}
/* The means of a row without a gradient decay, and its velocity moves it on. */
template <class R> pk_status rows(const pk_call *call) {
    return pk_update_rows(call, read_settings<R>(call->attr + PK_ROWS_ATTRS), 1);
}
pk_status rmsprop_update(const pk_call *call) { return flat<plain>(call); }
pk_status rmsprop_update_rows(const pk_call *call) { return rows<plain>(call); }
pk_status rmsprop_update_centered(const pk_call *call) { return flat<centered>(call); }
pk_status rmsprop_update_rows_centered(const pk_call *call) { return rows<centered>(call); }
} /* namespace */

#define OWN ", rho: float, epsilon: float, momentum: float"
#define PLAIN "mean_square: f32, velocity: f32, "
#define CENTERED PLAIN "mean_grad: f32, "
#define ROWS "p: f32, ids: i64, values: f32, rows: i64, "
#define PLAIN_OUT ") -> (p_out: f32, mean_square_out: f32, velocity_out: f32"
PK_OP(rmsprop,
      {"rmsprop.update(p: f32, g: f32, " PLAIN PK_FLAT_PORTS OWN PLAIN_OUT ")", rmsprop_update},
      {"rmsprop.update_rows(" ROWS PLAIN PK_ROWS_PORTS OWN PLAIN_OUT ")", rmsprop_update_rows},
      {"rmsprop.update_centered(p: f32, g: f32, " CENTERED PK_FLAT_PORTS OWN PLAIN_OUT
       ", mean_grad_out: f32)",
       rmsprop_update_centered},
      {"rmsprop.update_rows_centered(" ROWS CENTERED PK_ROWS_PORTS OWN PLAIN_OUT
       ", mean_grad_out: f32)",
       rmsprop_update_rows_centered});
