/* ftrl: n' = n + d^2; z += d - (n'^q - n^q)/rate*p with q = -power;
 * p = 0 where |z| <= l1, else (l1*sign(z) - z) / (n'^q/rate + 2*l2). */
#include "updates.cuh"

namespace {
struct ftrl {
    static const int slots = 2, counted = 0;
    float l1, l2, q;
    int is_root;
    struct settings {
        int unused;
    };
    PK_DEVICE settings prepare(double t) const { return settings{}; }
    PK_DEVICE void step(const settings &k, const pk_update &u, float d, float *p,
                        float *const *s) const {
        float *squares = s[0], *z = s[1];
        if (u.rate == 0.0f)
            return; /* the start of a warm-up: the rule has no meaning, nothing moves */
        const float sum = *squares + d * d, root = raise(sum);
        const float line = *z + (d - (root - raise(*squares)) / u.rate * *p);
        const float edge = line > 0.0f ? l1 : -l1;
        const float inside = (edge - line) / (root / u.rate + 2.0f * l2);
        *p = fabsf(line) <= l1 ? 0.0f : inside;
        *squares = sum;
        *z = line;
    }
    PK_DEVICE float raise(float x) const { return is_root ? sqrtf(x) : expf(q * logf(x)); }
};

ftrl read_settings(const pk_attr *attr) {
    return ftrl{(float)(attr[0].f + 1e-10), (float)(attr[1].f + 1e-10), (float)-attr[2].f,
                attr[2].f == -0.5};
}
pk_status ftrl_update(const pk_call *call) {
    return pk_update_flat(call, read_settings(call->attr + PK_FLAT_ATTRS));
}
/* Rows without a gradient keep their values: the rule would put new ones to 0. */
pk_status ftrl_update_rows(const pk_call *call) {
    const pk_attr *attr = call->attr + PK_ROWS_ATTRS;
    return pk_update_rows(call, read_settings(attr), 0);
}
} /* namespace */

#define OWN ", shrink_l1: float, shrink_l2: float, power: float"
PK_OP(
    ftrl,
    {"ftrl.update(p: f32, g: f32, squared: f32, linear: f32, " PK_FLAT_PORTS OWN ")"
     " -> (p_out: f32, squared_out: f32, linear_out: f32)",
     ftrl_update},
    {"ftrl.update_rows(p: f32, ids: i64, values: f32, rows: i64, squared: f32, linear: f32, " PK_ROWS_PORTS OWN
     ") -> (p_out: f32, squared_out: f32, linear_out: f32)",
     ftrl_update_rows});
