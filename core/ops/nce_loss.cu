/* nce_loss: noise-contrastive estimation; the two costs as on the host. */
#include "elementwise.cuh"
#include "packed.cuh"

namespace {
/* z, expected, dz [n, k]; loss, dloss [n] */
struct nce {
    const float *z, *m, *dloss;
    float *out;
    int64_t n, k;
    int add;
};

struct loss_row {
    nce s;
    PK_DEVICE void operator()(int64_t r) const {
        const float *z = s.z + r * s.k, *m = s.m + r * s.k;
        const float e = expf(-fabsf(z[0]));
        float sum = z[0] < 0.0f ? logf((1.0f + m[0]) * e + m[0]) - z[0] : log1pf(m[0] + m[0] * e);
        for (int64_t j = 1; j < s.k; j++) sum += log1pf(pk_sigmoid(z[j]) / m[j]);
        pk_put(s.out + r, sum, s.add);
    }
};
struct slope_each {
    nce s;
    PK_DEVICE void operator()(int64_t i) const {
        const float z = s.z[i], m = s.m[i], e = expf(-fabsf(z)), o = pk_sigmoid(z);
        float slope = o * (1.0f - o) / (m + o);
        if (i % s.k == 0)
            slope = z < 0.0f ? -m / ((1.0f + m) * e + m) : -m * e / (1.0f + m + m * e);
        pk_put(s.out + i, s.dloss[i / s.k] * slope, s.add);
    }
};

pk_status find(const pk_call *call, const pk_view *loss, const pk_view *dz, nce *s) {
    const pk_view *z = &call->in[0], *m = &call->in[1];
    s->z = pk_f32(z), s->m = pk_f32(m), s->dloss = pk_f32(loss), s->out = pk_f32(&call->out[0]);
    s->n = z->dim[0], s->k = pk_inner(z, 1), s->add = pk_adds(call, 0);
    if (s->k < 1) return pk_fail(call, PK_BAD_SHAPE, -1, "rows without a class");
    PK_TRY(pk_check_size(call, "expected", m, s->n * s->k));
    PK_TRY(pk_check_size(call, "loss", loss, s->n));
    return pk_check_size(call, "dz", dz, s->n * s->k);
}
pk_status nce_loss_forward(const pk_call *call) {
    nce s = {};
    PK_TRY(find(call, &call->out[0], &call->in[0], &s));
    return pk_each(call, s.n, loss_row{s});
}
pk_status nce_loss_backward(const pk_call *call) {
    nce s = {};
    PK_TRY(find(call, &call->in[2], &call->out[0], &s));
    return pk_each(call, s.n * s.k, slope_each{s});
}
} /* namespace */

PK_OP(nce_loss, {"nce_loss.forward(z: f32, expected: f32) -> (loss: f32)", nce_loss_forward},
      {"nce_loss.backward(z: f32, expected: f32, dloss: f32) -> (dz: f32)", nce_loss_backward});
