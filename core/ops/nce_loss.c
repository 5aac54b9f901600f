/* nce_loss: noise-contrastive estimation. With o = sigmoid(z) and noise m the first class of a row
 * costs log(1 + m / o), each other one log(1 + o / m). */
#include "elementwise.h"
#include "packed.h"

/* z, expected, dz [n, k]; loss, dloss [n] */
typedef struct nce {
    const float *z, *m, *dloss;
    float *out;
    int64_t n, k;
    int add;
} nce;

/* log(1 + m + m e^-z), from e^-|z| so that nothing overflows */
static float first_loss(float z, float m) {
    const float e = pk_exp1(z < 0.0f ? z : -z);
    return z < 0.0f ? pk_log1((1.0f + m) * e + m) - z : pk_log1p1(m + m * e);
}
/* its derivative: -m / ((1 + m) e^z + m) */
static float first_slope(float z, float m) {
    const float e = pk_exp1(z < 0.0f ? z : -z);
    return z < 0.0f ? -m / ((1.0f + m) * e + m) : -m * e / (1.0f + m + m * e);
}

static void forward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const nce *s = context;
    (void)thread, (void)scratch;
    for (int64_t r = begin; r < end; r++) {
        const float *z = s->z + r * s->k, *m = s->m + r * s->k;
        pk_vec sum = pk_zero();
        PK_FOR16(i, c, s->k - 1) {
            const pk_vec o = pk_sigmoid(pk_load_n(z + 1 + i, c));
            const pk_vec loss = pk_log1p(pk_div(o, pk_load_or(m + 1 + i, c, 1.0f)));
            sum = pk_add(sum, pk_keep(pk_first_lanes(c), loss));
        }
        const float loss = first_loss(z[0], m[0]) + pk_sum16(sum);
        s->out[r] = s->add ? s->out[r] + loss : loss;
    }
}

static void backward_task(void *context, int64_t begin, int64_t end, int32_t thread,
                          void *scratch) {
    const nce *s = context;
    (void)thread, (void)scratch;
    for (int64_t r = begin; r < end; r++) {
        const float *z = s->z + r * s->k, *m = s->m + r * s->k;
        float *dz = s->out + r * s->k;
        PK_FOR16(i, c, s->k - 1) {
            const pk_vec o = pk_sigmoid(pk_load_n(z + 1 + i, c));
            const pk_vec rest = pk_mul(o, pk_sub(pk_set1(1.0f), o)),
                         slope = pk_div(rest, pk_add(pk_load_or(m + 1 + i, c, 1.0f), o));
            pk_put(dz + 1 + i, pk_mul(pk_set1(s->dloss[r]), slope), c, s->add);
        }
        dz[0] = (s->add ? dz[0] : 0.0f) + s->dloss[r] * first_slope(z[0], m[0]);
    }
}

static pk_status run(const pk_call *call, const pk_view *loss, const pk_view *dz, pk_task task) {
    const pk_view *z = &call->in[0], *m = &call->in[1];
    nce s = {.z = pk_f32(z), .m = pk_f32(m), .dloss = pk_f32(loss), .out = pk_f32(&call->out[0]),
             .n = z->dim[0], .k = pk_inner(z, 1), .add = pk_adds(call, 0)};
    if (s.k < 1) return pk_fail(call, PK_BAD_SHAPE, -1, "rows without a class");
    pk_status bad = pk_check_size(call, "expected", m, s.n * s.k);
    if (!bad) bad = pk_check_size(call, "loss", loss, s.n);
    if (!bad) bad = pk_check_size(call, "dz", dz, s.n * s.k);
    if (bad) return bad;
    pk_parallel(call, s.n, pk_max_i64(1, 2048 / s.k), task, &s);
    return PK_OK;
}
static pk_status nce_loss_forward(const pk_call *call) {
    return run(call, &call->out[0], &call->in[0], forward_task);
}
static pk_status nce_loss_backward(const pk_call *call) {
    return run(call, &call->in[2], &call->out[0], backward_task);
}

PK_OP(nce_loss, {"nce_loss.forward(z: f32, expected: f32) -> (loss: f32)", nce_loss_forward},
      {"nce_loss.backward(z: f32, expected: f32, dloss: f32) -> (dz: f32)", nce_loss_backward});
