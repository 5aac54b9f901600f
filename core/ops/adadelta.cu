/* adadelta: e = rho*e + (1 - rho)*d^2; s = -sqrt((u + epsilon)/(e + epsilon))*d; u = rho*u + (1 -
 * rho)*s^2; p += rate*s, or p += s where the rate is not used. */
#include "updates.cuh"

namespace {
struct adadelta {
    static const int slots = 2, counted = 0;
    float rho, rest, epsilon;
    int uses_rate;
    struct settings {
        int unused;
    };
    PK_DEVICE settings prepare(double t) const { return settings{}; }
    PK_DEVICE void step(const settings &k, const pk_update &u, float d, float *p,
                        float *const *s) const {
        float *grads = s[0], *steps = s[1];
        *grads = rho * *grads + rest * d * d;
        const float step = -sqrtf((*steps + epsilon) / (*grads + epsilon)) * d;
        *steps = rho * *steps + rest * step * step;
        *p += (uses_rate ? u.rate : 1.0f) * step;
    }
};

adadelta read_settings(const pk_attr *attr) {
    return adadelta{(float)attr[0].f, (float)(1.0 - attr[0].f), (float)attr[1].f, attr[2].i != 0};
}
pk_status adadelta_update(const pk_call *call) {
    return pk_update_flat(call, read_settings(call->attr + PK_FLAT_ATTRS));
}
/* Both means of a row without a gradient decay. */
pk_status adadelta_update_rows(const pk_call *call) {
    const pk_attr *attr = call->attr + PK_ROWS_ATTRS;
    return pk_update_rows(call, read_settings(attr), 1);
}
} /* namespace */

#define OWN ", rho: float, epsilon: float, uses_rate: bool"
PK_OP(
    adadelta,
    {"adadelta.update(p: f32, g: f32, squared_grad: f32, squared_step: f32, " PK_FLAT_PORTS OWN ")"
     " -> (p_out: f32, squared_grad_out: f32, squared_step_out: f32)",
     adadelta_update},
    {"adadelta.update_rows(p: f32, ids: i64, values: f32, rows: i64, squared_grad: f32, squared_step: f32, " PK_ROWS_PORTS OWN
     ") -> (p_out: f32, squared_grad_out: f32, squared_step_out: f32)",
     adadelta_update_rows});
