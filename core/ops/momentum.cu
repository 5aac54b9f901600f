/* momentum: v = mu*v + d; p -= rate*v, or with nesterov p -= rate*(d + mu*v). */
#include "updates.cuh"

namespace {
struct momentum {
    static const int slots = 1, counted = 0;
    float mu;
    int nesterov;
    struct settings {
        int unused;
    };
    PK_DEVICE settings prepare(double t) const { return settings{}; }
    PK_DEVICE void step(const settings &k, const pk_update &u, float d, float *p,
                        float *const *s) const {
        float *v = s[0];
        *v = mu * *v + d;
        if (nesterov) *p -= u.rate * (d + mu * *v);
        else *p -= u.rate * *v;
    }
};

momentum read_settings(const pk_attr *attr) { return momentum{(float)attr[0].f, attr[1].i != 0}; }
pk_status momentum_update(const pk_call *call) {
    return pk_update_flat(call, read_settings(call->attr + PK_FLAT_ATTRS));
}
/* The velocity of a row without a gradient decays, and the row moves on with it. */
pk_status momentum_update_rows(const pk_call *call) {
    const pk_attr *attr = call->attr + PK_ROWS_ATTRS;
    return pk_update_rows(call, read_settings(attr), 1);
}
} /* namespace */

PK_OP(
    momentum,
    {"momentum.update(p: f32, g: f32, velocity: f32, " PK_FLAT_PORTS
     ", momentum: float, nesterov: bool)"
     " -> (p_out: f32, velocity_out: f32)",
     momentum_update},
    {"momentum.update_rows(p: f32, ids: i64, values: f32, rows: i64, velocity: f32, " PK_ROWS_PORTS
     ", momentum: float, nesterov: bool) -> (p_out: f32, velocity_out: f32)",
     momentum_update_rows});
