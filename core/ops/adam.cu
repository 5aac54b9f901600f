/* adam: m = b1*m + (1 - b1)*d; v = b2*v + (1 - b2)*d^2; p -= rate' * m / (sqrt(v) + epsilon'),
 * rate' = rate*sqrt(1 - b2^t)/(1 - b1^t); epsilon' = epsilon*sqrt(1 - b2^t) when it is scaled, else
 * epsilon. */
#include "updates.cuh"

namespace {
struct adam {
    static const int slots = 2, counted = 1;
    double beta1, beta2, epsilon;
    int scale_epsilon;
    struct settings {
        float beta1, rest1, beta2, rest2, epsilon,
            correction; /* of both biases, put into the rate */
    };
    PK_DEVICE settings prepare(double t) const {
        const double root = sqrt(1.0 - pow(beta2, t));
        settings k;
        k.beta1 = (float)beta1;
        k.rest1 = (float)(1.0 - beta1);
        k.beta2 = (float)beta2;
        k.rest2 = (float)(1.0 - beta2);
        k.epsilon = (float)(scale_epsilon ? epsilon * root : epsilon);
        k.correction = (float)(root / (1.0 - pow(beta1, t)));
        return k;
    }
    PK_DEVICE void step(const settings &k, const pk_update &u, float d, float *p,
                        float *const *s) const {
        float *m = s[0], *v = s[1];
        *m = k.beta1 * *m + k.rest1 * d;
        *v = k.beta2 * *v + k.rest2 * d * d;
        *p -= u.rate * k.correction * *m / (sqrtf(*v) + k.epsilon);
    }
};

adam read_settings(const pk_attr *attr) {
    return adam{attr[0].f, attr[1].f, attr[2].f, attr[3].i != 0};
}
pk_status adam_update(const pk_call *call) {
    return pk_update_flat(call, read_settings(call->attr + PK_FLAT_ATTRS));
}
/* Rows without a gradient move with their decaying moments, unless the rule is lazy. */
pk_status adam_update_rows(const pk_call *call) {
    const pk_attr *attr = call->attr + PK_ROWS_ATTRS;
    return pk_update_rows(call, read_settings(attr), !attr[4].i);
}
} /* namespace */

#define OWN ", beta1: float, beta2: float, epsilon: float, scale_epsilon: bool"
PK_OP(
    adam,
    {"adam.update(p: f32, g: f32, moment1: f32, moment2: f32, count: i64, " PK_FLAT_PORTS OWN ")"
     " -> (p_out: f32, moment1_out: f32, moment2_out: f32)",
     adam_update},
    {"adam.update_rows(p: f32, ids: i64, values: f32, rows: i64, moment1: f32, moment2: f32, count: i64, " PK_ROWS_PORTS OWN
     ", lazy: bool) -> (p_out: f32, moment1_out: f32, moment2_out: f32)",
     adam_update_rows});
