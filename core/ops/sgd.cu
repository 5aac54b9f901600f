/* sgd: p -= rate * d. */
#include "updates.cuh"

namespace {
struct sgd {
    static const int slots = 0, counted = 0;
    struct settings {
        int unused;
    };
    PK_DEVICE settings prepare(double t) const { return settings{}; }
    PK_DEVICE void step(const settings &k, const pk_update &u, float d, float *p,
                        float *const *s) const {
        *p -= u.rate * d;
    }
};

sgd read_settings(const pk_attr *attr) { return sgd{}; }
pk_status sgd_update(const pk_call *call) {
    return pk_update_flat(call, read_settings(call->attr + PK_FLAT_ATTRS));
}
/* A row without a gradient stays as it is. */
pk_status sgd_update_rows(const pk_call *call) {
    const pk_attr *attr = call->attr + PK_ROWS_ATTRS;
    return pk_update_rows(call, read_settings(attr), 0);
}
} /* namespace */

PK_OP(sgd, {"sgd.update(p: f32, g: f32, " PK_FLAT_PORTS ") -> (p_out: f32)", sgd_update},
      {"sgd.update_rows(p: f32, ids: i64, values: f32, rows: i64, " PK_ROWS_PORTS
       ") -> (p_out: f32)",
       sgd_update_rows});
