/* lamb: adam's moments; r = m^ / (sqrt(v^) + epsilon) + decay*p; p -= rate * |p|/|r| * r for each
 * parameter. Without bias correction m and v stand for m^ and v^. */
#include "updates.cuh"

namespace {
struct lamb {
    static const int slots = 2, counted = 1;
    double beta1, beta2;
    float epsilon, decay;
    int corrected;
    struct settings {
        float beta1, rest1, beta2, rest2, whole1,
            whole2; /* whole: 1/(1 - beta^t), 1 without correction */
    };
    PK_DEVICE settings prepare(double t) const {
        settings k;
        k.beta1 = (float)beta1, k.rest1 = (float)(1.0 - beta1);
        k.beta2 = (float)beta2, k.rest2 = (float)(1.0 - beta2);
        k.whole1 = corrected ? (float)(1.0 / (1.0 - pow(beta1, t))) : 1.0f;
        k.whole2 = corrected ? (float)(1.0 / (1.0 - pow(beta2, t))) : 1.0f;
        return k;
    }
    PK_DEVICE void first(const settings &k, const pk_update &, float d, const float *,
                         float *const *s) const {
        float *m = s[0], *v = s[1];
        *m = k.beta1 * *m + k.rest1 * d;
        *v = k.beta2 * *v + k.rest2 * d * d;
    }
    PK_DEVICE float size(const settings &k, const pk_update &, float, const float *p,
                         float *const *s) const {
        return *s[0] * k.whole1 / (sqrtf(*s[1] * k.whole2) + epsilon) + decay * *p;
    }
    /* A parameter that is all zero (a new bias) has no norm to keep: it moves by the plain rate. */
    PK_DEVICE float trust(const pk_update &, double p2, double r2) const {
        return p2 == 0.0 || r2 == 0.0 ? 1.0f : (float)(sqrt(p2) / sqrt(r2));
    }
    PK_DEVICE void step(const settings &k, const pk_update &u, float d, float *p,
                        float *const *s) const {
        *p -= u.rate * u.trust * size(k, u, d, p, s);
    }
};

lamb read_settings(const pk_attr *attr) {
    return lamb{attr[0].f, attr[1].f, (float)attr[2].f, (float)attr[3].f, attr[4].i != 0};
}
pk_status lamb_update(const pk_call *call) {
    return pk_update_flat_norms(call, read_settings(call->attr + PK_FLAT_ATTRS));
}
pk_status lamb_update_rows(const pk_call *call) {
    return pk_update_rows_norms(call, read_settings(call->attr + PK_ROWS_ATTRS));
}
} /* namespace */

#define OWN                                                                                        \
    ", beta1: float, beta2: float, epsilon: float, weight_decay: float, bias_correction: bool"
PK_OP(
    lamb,
    {"lamb.update(p: f32, g: f32, moment1: f32, moment2: f32, count: i64, " PK_FLAT_PORTS OWN ")"
     " -> (p_out: f32, moment1_out: f32, moment2_out: f32, work: f64)",
     lamb_update},
    {"lamb.update_rows(p: f32, ids: i64, values: f32, rows: i64, moment1: f32, moment2: f32, count: i64, " PK_ROWS_PORTS OWN
     ") -> (p_out: f32, moment1_out: f32, moment2_out: f32, work: f64)",
     lamb_update_rows});
