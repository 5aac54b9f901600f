/* adagrad: m += d^2; p -= rate*d / (sqrt(m) + epsilon). */
#include "updates.cuh"

namespace {
struct adagrad {
    static const int slots = 1, counted = 0;
    float epsilon;
    struct settings {
        int unused;
    };
    PK_DEVICE settings prepare(double t) const { return settings{}; }
    PK_DEVICE void step(const settings &k, const pk_update &u, float d, float *p,
                        float *const *s) const {
        float *m = s[0];
        *m += d * d;
        *p -= u.rate * d / (sqrtf(*m) + epsilon);
    }
};

adagrad read_settings(const pk_attr *attr) { return adagrad{(float)attr[0].f}; }
pk_status adagrad_update(const pk_call *call) {
    return pk_update_flat(call, read_settings(call->attr + PK_FLAT_ATTRS));
}
/* A row without a gradient stays as it is: its sum grows by 0 and it moves by 0. */
pk_status adagrad_update_rows(const pk_call *call) {
    const pk_attr *attr = call->attr + PK_ROWS_ATTRS;
    return pk_update_rows(call, read_settings(attr), 0);
}
} /* namespace */

PK_OP(adagrad,
      {"adagrad.update(p: f32, g: f32, moment: f32, " PK_FLAT_PORTS ", epsilon: float)"
       " -> (p_out: f32, moment_out: f32)",
       adagrad_update},
      {"adagrad.update_rows(p: f32, ids: i64, values: f32, rows: i64, moment: f32, " PK_ROWS_PORTS
       ", epsilon: float) -> (p_out: f32, moment_out: f32)",
       adagrad_update_rows});
