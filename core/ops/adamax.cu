/* adamax: m = b1*m + (1 - b1)*d; u = max(|d|, b2*u + epsilon); p -= rate/(1 - b1^t) * m/u. */
#include "updates.cuh"

namespace {
struct adamax {
    static const int slots = 2, counted = 1;
    double beta1;
    float beta2, epsilon;
    struct settings {
        float beta1, rest1, correction; /* 1/(1 - beta1^t) */
    };
    PK_DEVICE settings prepare(double t) const {
        settings k;
        k.beta1 = (float)beta1;
        k.rest1 = (float)(1.0 - beta1);
        k.correction = (float)(1.0 / (1.0 - pow(beta1, t)));
        return k;
    }
    PK_DEVICE void step(const settings &k, const pk_update &u, float d, float *p,
                        float *const *s) const {
        float *m = s[0], *norm = s[1];
        *m = k.beta1 * *m + k.rest1 * d;
        /* The comparison lets a NaN through to p. */
        const float old = beta2 * *norm + epsilon, size = fabsf(d);
        *norm = old > size ? old : size;
        *p -= u.rate * k.correction * *m / *norm;
    }
};

adamax read_settings(const pk_attr *attr) {
    return adamax{attr[0].f, (float)attr[1].f, (float)attr[2].f};
}
pk_status adamax_update(const pk_call *call) {
    return pk_update_flat(call, read_settings(call->attr + PK_FLAT_ATTRS));
}
pk_status adamax_update_rows(const pk_call *call) {
    const pk_attr *attr = call->attr + PK_ROWS_ATTRS;
    return pk_update_rows(call, read_settings(attr), 1);
}
} /* namespace */

#define OWN ", beta1: float, beta2: float, epsilon: float"
PK_OP(
    adamax,
    {"adamax.update(p: f32, g: f32, moment: f32, norm: f32, count: i64, " PK_FLAT_PORTS OWN ")"
     " -> (p_out: f32, moment_out: f32, norm_out: f32)",
     adamax_update},
    {"adamax.update_rows(p: f32, ids: i64, values: f32, rows: i64, moment: f32, norm: f32, count: i64, " PK_ROWS_PORTS OWN
     ") -> (p_out: f32, moment_out: f32, norm_out: f32)",
     adamax_update_rows});
