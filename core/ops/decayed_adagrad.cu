/* decayed_adagrad: m = rho*m + (1 - rho)*d^2; p -= rate*d / (sqrt(m) + epsilon). */
#include "updates.cuh"

namespace {
struct decayed {
    static const int slots = 1, counted = 0;
    float rho, rest, epsilon;
    struct settings {
        int unused;
    };
    PK_DEVICE settings prepare(double t) const { return settings{}; }
    PK_DEVICE void step(const settings &k, const pk_update &u, float d, float *p,
                        float *const *s) const {
        float *m = s[0];
        *m = rho * *m + rest * d * d;
        *p -= u.rate * d / (sqrtf(*m) + epsilon);
    }
};

decayed read_settings(const pk_attr *attr) {
    return decayed{(float)attr[0].f, (float)(1.0 - attr[0].f), (float)attr[1].f};
}
pk_status decayed_update(const pk_call *call) {
    return pk_update_flat(call, read_settings(call->attr + PK_FLAT_ATTRS));
}
/* The mean of a row without a gradient decays. */
pk_status decayed_update_rows(const pk_call *call) {
    const pk_attr *attr = call->attr + PK_ROWS_ATTRS;
    return pk_update_rows(call, read_settings(attr), 1);
}
} /* namespace */

PK_OP(
    decayed_adagrad,
    {"decayed_adagrad.update(p: f32, g: f32, moment: f32, " PK_FLAT_PORTS
     ", rho: float, epsilon: float)"
     " -> (p_out: f32, moment_out: f32)",
     decayed_update},
    {"decayed_adagrad.update_rows(p: f32, ids: i64, values: f32, rows: i64, moment: f32, " PK_ROWS_PORTS
     ", rho: float, epsilon: float) -> (p_out: f32, moment_out: f32)",
     decayed_update_rows});
