/* gru_unit: one step of gated recurrent units; the order of blocks as on the host. */
#include "packed.cuh"
#include "recurrences.cuh"

namespace {
enum { UPDATE, RESET, CANDIDATE, BLOCKS };

/* x, gates, dx [n, 3d]; h, y, kept, dh, dy [n, d]; w [d, 2d] then [d, d]; z: scratch */
struct unit {
    const float *x, *h, *w, *b, *dy, *saved;
    float *y, *gates, *kept, *dx, *dh, *z;
    int64_t n, d, gate, candidate;
    int origin, add[3];
    PK_DEVICE const float *candidate_w() const { return w + 2 * d * d; }
};

struct gates_each {
    unit u;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t d = u.d, r = e / d, j = e % d;
        float v[2];
        for (int k = 0; k < 2; k++) {
            float sum = 0.0f;
            for (int64_t i = 0; i < d; i++)
                sum = fmaf(u.h[r * d + i], u.w[i * 2 * d + k * d + j], sum);
            sum += u.x[(r * BLOCKS + k) * d + j];
            if (u.b) sum += u.b[k * d + j];
            v[k] = pk_cell_activate(sum, u.gate);
            u.z[(r * BLOCKS + k) * d + j] = v[k];
            pk_put(u.gates + (r * BLOCKS + k) * d + j, v[k], u.add[1]);
        }
        u.z[(r * BLOCKS + CANDIDATE) * d + j] = v[RESET] * u.h[e];
        pk_put(u.kept + e, v[RESET] * u.h[e], u.add[2]);
    }
};
struct state_each {
    unit u;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t d = u.d, r = e / d, j = e % d;
        const float *z = u.z + r * BLOCKS * d;
        float sum = 0.0f;
        for (int64_t i = 0; i < d; i++)
            sum = fmaf(z[CANDIDATE * d + i], u.candidate_w()[i * d + j], sum);
        sum += u.x[(r * BLOCKS + CANDIDATE) * d + j];
        if (u.b) sum += u.b[CANDIDATE * d + j];
        const float c = pk_cell_activate(sum, u.candidate), gate = z[j], old = u.h[e];
        const float y = u.origin ? fmaf(gate, old, (1.0f - gate) * c)
                                 : fmaf(gate, c, (1.0f - gate) * old);
        pk_put(u.gates + (r * BLOCKS + CANDIDATE) * d + j, c, u.add[1]);
        pk_put(u.y + e, y, u.add[0]);
    }
};
/* The candidate's and the update gate's share; what passes by to h goes to dh. */
struct back_state_each {
    unit u;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t d = u.d, r = e / d, j = e % d;
        const float *gates = u.saved + r * BLOCKS * d;
        const float gate = gates[j], c = gates[CANDIDATE * d + j], dy = u.dy[e];
        const float change = dy * (c - u.h[e]), rest = 1.0f - gate;
        u.z[r * BLOCKS * d + j] = pk_cell_derive(gate, u.origin ? -change : change, u.gate);
        u.z[(r * BLOCKS + CANDIDATE) * d + j] =
            pk_cell_derive(c, dy * (u.origin ? rest : gate), u.candidate);
        pk_put(u.dh + e, dy * (u.origin ? gate : rest), u.add[1]);
    }
};
struct back_gates_each {
    unit u;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t d = u.d, r = e / d, j = e % d;
        float *z = u.z + r * BLOCKS * d;
        float dkept = 0.0f;
        for (int64_t i = 0; i < d; i++)
            dkept = fmaf(z[CANDIDATE * d + i], u.candidate_w()[j * d + i], dkept);
        const float reset = u.saved[(r * BLOCKS + RESET) * d + j];
        z[RESET * d + j] = pk_cell_derive(reset, dkept * u.h[e], u.gate);
        u.dh[e] = fmaf(dkept, reset, u.dh[e]);
        for (int k = 0; k < BLOCKS; k++)
            pk_put(u.dx + (r * BLOCKS + k) * d + j, z[k * d + j], u.add[0]);
    }
};
struct back_state_product {
    unit u;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t d = u.d, r = e / d, j = e % d;
        float sum = 0.0f;
        for (int64_t i = 0; i < 2 * d; i++)
            sum = fmaf(u.z[r * BLOCKS * d + i], u.w[j * 2 * d + i], sum);
        u.dh[e] += sum;
    }
};
struct weight_each {
    const float *dx, *h, *kept;
    float *dw;
    int64_t n, d;
    int add;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t first = 2 * d * d, late = e >= first,
                      i = late ? (e - first) / d : e / (2 * d),
                      j = late ? CANDIDATE * d + (e - first) % d : e % (2 * d);
        const float *with = late ? kept : h;
        float sum = 0.0f;
        for (int64_t r = 0; r < n; r++)
            sum = fmaf(with[r * d + i], dx[r * BLOCKS * d + j], sum);
        pk_put(dw + e, sum, add);
    }
};

pk_status find(const pk_call *call, const pk_view *x, const pk_view *h, const pk_view *w, unit *u) {
    u->n = h->dim[0], u->d = pk_inner(h, 1), u->h = pk_f32(h), u->w = pk_f32(w);
    u->gate = call->attr[0].i, u->candidate = call->attr[1].i, u->origin = call->attr[2].i != 0;
    for (int i = 0; i < 2; i++)
        if (call->attr[i].i < 0 || call->attr[i].i >= PK_CELL_ACTIVATIONS)
            return pk_fail(call, PK_BAD_CALL, -1, "activation %lld", (long long)call->attr[i].i);
    for (int32_t i = 0; i < 3; i++) u->add[i] = pk_adds(call, i);
    PK_TRY(pk_check_size(call, "x", x, u->n * BLOCKS * u->d));
    return pk_check_size(call, "w", w, BLOCKS * u->d * u->d);
}

pk_status gru_unit_forward(const pk_call *call) {
    const pk_view *in = call->in, *out = call->out;
    unit u = {};
    u.x = pk_f32(&in[0]), u.b = pk_f32(&in[3]), u.y = pk_f32(&out[0]);
    u.gates = pk_f32(&out[1]), u.kept = pk_f32(&out[2]), u.z = pk_f32(&out[3]);
    PK_TRY(find(call, &in[0], &in[1], &in[2], &u));
    PK_TRY(pk_check_size(call, "b", &in[3], BLOCKS * u.d));
    PK_TRY(pk_check_size(call, "y", &out[0], u.n * u.d));
    PK_TRY(pk_check_size(call, "gates", &out[1], u.n * BLOCKS * u.d));
    PK_TRY(pk_check_size(call, "kept", &out[2], u.n * u.d));
    PK_TRY(pk_check_size(call, "work", &out[3], u.n * BLOCKS * u.d));
    PK_TRY(pk_each(call, u.n * u.d, gates_each{u}));
    return pk_each(call, u.n * u.d, state_each{u});
}
pk_status gru_unit_backward(const pk_call *call) {
    const pk_view *in = call->in, *out = call->out;
    unit u = {};
    u.saved = pk_f32(&in[0]), u.dy = pk_f32(&in[3]);
    u.dx = pk_f32(&out[0]), u.dh = pk_f32(&out[1]), u.z = pk_f32(&out[2]);
    PK_TRY(find(call, &in[0], &in[1], &in[2], &u));
    PK_TRY(pk_check_size(call, "dy", &in[3], u.n * u.d));
    PK_TRY(pk_check_size(call, "dx", &out[0], u.n * BLOCKS * u.d));
    PK_TRY(pk_check_size(call, "dh", &out[1], u.n * u.d));
    PK_TRY(pk_check_size(call, "work", &out[2], u.n * (BLOCKS + 1) * u.d));
    PK_TRY(pk_each(call, u.n * u.d, back_state_each{u}));
    PK_TRY(pk_each(call, u.n * u.d, back_gates_each{u}));
    return pk_each(call, u.n * u.d, back_state_product{u});
}
/* dw = h^T dx of update and reset, then (r h)^T dx of the candidate */
pk_status gru_unit_backward_w(const pk_call *call) {
    const pk_view *dx = &call->in[0], *h = &call->in[1], *kept = &call->in[2], *dw = &call->out[0];
    const int64_t n = h->dim[0], d = pk_inner(h, 1);
    PK_TRY(pk_check_size(call, "dx", dx, n * BLOCKS * d));
    PK_TRY(pk_check_size(call, "kept", kept, n * d));
    PK_TRY(pk_check_size(call, "dw", dw, BLOCKS * d * d));
    return pk_each(call, BLOCKS * d * d,
                   weight_each{pk_f32(dx), pk_f32(h), pk_f32(kept), pk_f32(dw), n, d,
                               pk_adds(call, 0)});
}
} /* namespace */

#define OWN "gate: int, candidate: int, origin_mode: bool"
PK_OP(gru_unit,
      {"gru_unit.forward(x: f32, h: f32, w: f32, b?: f32; " OWN ")"
       " -> (y: f32, gates: f32, kept: f32, work: f32)",
       gru_unit_forward},
      {"gru_unit.backward(gates: f32, h: f32, w: f32, dy: f32; " OWN ")"
       " -> (dx: f32, dh: f32, work: f32)",
       gru_unit_backward},
      {"gru_unit.backward_w(dx: f32, h: f32, kept: f32) -> (dw: f32)", gru_unit_backward_w});
