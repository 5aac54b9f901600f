/* lars_momentum: momentum with a rate of its own for each parameter,
 * l = rate * coefficient * |p| / (|d| + decay*|p| + epsilon); v = mu*v + l*(d + decay*p); p -= v.
 */
#include "updates.cuh"

namespace {
struct lars {
    static const int slots = 1, counted = 0;
    float mu, coefficient, decay, epsilon;
    struct settings {
        int unused;
    };
    PK_DEVICE settings prepare(double) const { return settings{0}; }
    PK_DEVICE void first(const settings &, const pk_update &, float, const float *,
                         float *const *) const {}
    PK_DEVICE float size(const settings &, const pk_update &, float d, const float *,
                         float *const *) const {
        return d;
    }
    /* A parameter that is all zero (a new bias) or has no gradient takes the plain rate: its own
     * one would be 0. */
    PK_DEVICE float trust(const pk_update &u, double p2, double d2) const {
        const double p = sqrt(p2), d = sqrt(d2);
        if (p == 0.0 || d == 0.0) return u.rate;
        return (float)((double)u.rate * (double)coefficient * p /
                       (d + (double)decay * p + (double)epsilon));
    }
    PK_DEVICE void step(const settings &, const pk_update &u, float d, float *p,
                        float *const *s) const {
        float *v = s[0];
        *v = mu * *v + u.trust * (d + decay * *p);
        *p -= *v;
    }
};

lars read_settings(const pk_attr *attr) {
    return lars{(float)attr[0].f, (float)attr[1].f, (float)attr[2].f, (float)attr[3].f};
}
pk_status lars_update(const pk_call *call) {
    return pk_update_flat_norms(call, read_settings(call->attr + PK_FLAT_ATTRS));
}
pk_status lars_update_rows(const pk_call *call) {
    return pk_update_rows_norms(call, read_settings(call->attr + PK_ROWS_ATTRS));
}
} /* namespace */

PK_OP(
    lars_momentum,
    {"lars_momentum.update(p: f32, g: f32, velocity: f32, " PK_FLAT_PORTS
     ", momentum: float, coefficient: float, weight_decay: float, epsilon: float)"
     " -> (p_out: f32, velocity_out: f32, work: f64)",
     lars_update},
    {"lars_momentum.update_rows(p: f32, ids: i64, values: f32, rows: i64, velocity: f32, " PK_ROWS_PORTS
     ", momentum: float, coefficient: float, weight_decay: float, epsilon: float)"
     " -> (p_out: f32, velocity_out: f32, work: f64)",
     lars_update_rows});
