/* dynamic_gru: all steps of all sequences in one call; the order of blocks as on the host. */
#include "recurrences.cuh"

namespace {
enum { UPDATE, RESET, CANDIDATE, BLOCKS };

/* x, gates, dx [T, 3d]; y [T, d]; w [d, 2d] then [d, d]; h0 [sequences, d]; rows [sequences, 5d] */
struct gru {
    const int64_t *offsets;
    const float *x, *w, *b, *h0, *dy;
    float *y, *gates, *dx, *dh0, *rows;
    int64_t sequences, d, gate, candidate;
    int origin, reverse;
    int add[2];
    PK_DEVICE const float *candidate_w() const { return w + 2 * d * d; }
};

struct forward_block {
    gru g;
    PK_DEVICE void operator()() const {
        const int64_t d = g.d, s = blockIdx.x;
        const pk_walk walk(g.offsets, s, g.reverse);
        float *h = g.rows + s * (BLOCKS + 2) * d, *rh = h + d, *z = rh + d, *c = z + 2 * d;
        for (int64_t j = threadIdx.x; j < d; j += PK_RECURRENT_BLOCK)
            h[j] = g.h0 ? g.h0[s * d + j] : 0.0f;
        for (int64_t t = 0; t < walk.steps(); t++) {
            const int64_t token = walk.token(t);
            const float *x = g.x + token * BLOCKS * d;
            float *gates = g.gates + token * BLOCKS * d;
            pk_sync();
            pk_row_times(h, d, g.w, 2 * d, 2 * d, z, 0);
            pk_sync();
            for (int64_t j = threadIdx.x; j < d; j += PK_RECURRENT_BLOCK) {
                for (int k = 0; k < 2; k++) {
                    const float v = z[k * d + j] + x[k * d + j] + (g.b ? g.b[k * d + j] : 0.0f);
                    z[k * d + j] = pk_cell_activate(v, g.gate);
                }
                rh[j] = z[d + j] * h[j];
            }
            pk_sync();
            pk_row_times(rh, d, g.candidate_w(), d, d, c, 0);
            pk_sync();
            for (int64_t j = threadIdx.x; j < d; j += PK_RECURRENT_BLOCK) {
                const float v = c[j] + x[2 * d + j] + (g.b ? g.b[2 * d + j] : 0.0f);
                const float fresh = pk_cell_activate(v, g.candidate), u = z[j], rest = 1.0f - u;
                h[j] = g.origin ? fmaf(u, h[j], rest * fresh) : fmaf(u, fresh, rest * h[j]);
                pk_put(gates + j, u, g.add[1]);
                pk_put(gates + d + j, z[d + j], g.add[1]);
                pk_put(gates + 2 * d + j, fresh, g.add[1]);
                pk_put(g.y + token * d + j, h[j], g.add[0]);
            }
        }
    }
};

struct backward_block {
    gru g;
    PK_DEVICE void operator()() const {
        const int64_t d = g.d, s = blockIdx.x;
        const pk_walk walk(g.offsets, s, g.reverse);
        float *dh = g.rows + s * (BLOCKS + 2) * d, *drh = dh + d, *dz = drh + d, *dc = dz + 2 * d;
        for (int64_t j = threadIdx.x; j < d; j += PK_RECURRENT_BLOCK) dh[j] = 0.0f;
        for (int64_t t = walk.steps(); t-- > 0;) {
            const int64_t token = walk.token(t);
            const float *v = g.gates + token * BLOCKS * d;
            const float *before = g.h0 ? g.h0 + s * d : NULL;
            if (t > 0) before = g.y + walk.token(t - 1) * d;
            for (int64_t j = threadIdx.x; j < d; j += PK_RECURRENT_BLOCK) {
                const float u = v[j], c = v[2 * d + j], rest = 1.0f - u,
                            change = c - (before ? before[j] : 0.0f);
                const float dy = dh[j] + (g.dy ? g.dy[token * d + j] : 0.0f);
                dz[j] = pk_cell_derive(u, g.origin ? -(dy * change) : dy * change, g.gate);
                dc[j] = pk_cell_derive(c, dy * (g.origin ? rest : u), g.candidate);
                dh[j] = dy * (g.origin ? u : rest);
            }
            pk_sync();
            pk_row_times_turned(dc, d, g.candidate_w(), d, d, drh, 0);
            pk_sync();
            float *dx = g.dx + token * BLOCKS * d;
            for (int64_t j = threadIdx.x; j < d; j += PK_RECURRENT_BLOCK) {
                const float r = v[d + j], old = before ? before[j] : 0.0f;
                dz[d + j] = pk_cell_derive(r, drh[j] * old, g.gate);
                dh[j] = fmaf(drh[j], r, dh[j]);
                pk_put(dx + j, dz[j], g.add[0]);
                pk_put(dx + d + j, dz[d + j], g.add[0]);
                pk_put(dx + 2 * d + j, dc[j], g.add[0]);
            }
            pk_sync();
            pk_row_times_turned(dz, 2 * d, g.w, 2 * d, d, dh, 1);
            pk_sync();
        }
        for (int64_t j = threadIdx.x; j < d; j += PK_RECURRENT_BLOCK)
            pk_put(g.dh0 + s * d + j, dh[j], g.add[1]);
    }
};

pk_status check_size(const pk_call *call, const char *what, const pk_view *v, int64_t n) {
    if (!v->data || pk_count(v) == n) return PK_OK;
    return pk_fail(call, PK_BAD_SHAPE, -1, "%s has %lld elements, expected %lld", what,
                   (long long)pk_count(v), (long long)n);
}
pk_status find(const pk_call *call, const pk_view *tokens, const pk_view *w, const pk_view *h0,
               const pk_view *rows, gru *g) {
    if (!tokens->offsets) return pk_fail(call, PK_BAD_SHAPE, -1, "the tokens come without offsets");
    g->offsets = tokens->offsets, g->sequences = tokens->sequences;
    g->reverse = call->attr[0].i != 0, g->gate = call->attr[1].i, g->candidate = call->attr[2].i;
    g->origin = call->attr[3].i != 0;
    for (int i = 1; i < 3; i++)
        if (call->attr[i].i < 0 || call->attr[i].i >= PK_CELL_ACTIVATIONS)
            return pk_fail(call, PK_BAD_CALL, -1, "activation %lld", (long long)call->attr[i].i);
    g->d = w->dim[0];
    if (w->ndim != 2 || w->dim[1] != BLOCKS * g->d || pk_inner(tokens, 1) != BLOCKS * g->d)
        return pk_fail(call, PK_BAD_SHAPE, -1, "w is [%lld, %lld], the tokens have width %lld",
                       (long long)w->dim[0], (long long)pk_inner(w, 1),
                       (long long)pk_inner(tokens, 1));
    PK_TRY(check_size(call, "h0", h0, g->sequences * g->d));
    PK_TRY(check_size(call, "work_rows", rows, g->sequences * (BLOCKS + 2) * g->d));
    g->w = pk_f32(w), g->h0 = pk_f32(h0), g->rows = pk_f32(rows);
    g->add[0] = pk_adds(call, 0), g->add[1] = pk_adds(call, 1);
    return PK_OK;
}

pk_status dynamic_gru_forward(const pk_call *call) {
    const pk_view *in = call->in, *out = call->out;
    gru g = {};
    PK_TRY(find(call, &in[0], &in[1], &in[3], &out[3], &g));
    g.x = pk_f32(&in[0]), g.b = pk_f32(&in[2]), g.y = pk_f32(&out[0]), g.gates = pk_f32(&out[1]);
    PK_TRY(check_size(call, "b", &in[2], BLOCKS * g.d));
    PK_TRY(check_size(call, "y", &out[0], in[0].dim[0] * g.d));
    PK_TRY(check_size(call, "gates", &out[1], pk_count(&in[0])));
    if (g.sequences == 0) return PK_OK;
    return PK_LAUNCH(call, pk_dim((unsigned)g.sequences), pk_dim(PK_RECURRENT_BLOCK),
                     forward_block{g});
}
pk_status dynamic_gru_backward(const pk_call *call) {
    const pk_view *in = call->in, *out = call->out;
    gru g = {};
    PK_TRY(find(call, &in[2], &in[3], &in[4], &out[3], &g));
    g.dy = pk_f32(&in[0]), g.y = pk_f32(&in[1]), g.gates = pk_f32(&in[2]);
    g.dx = pk_f32(&out[0]), g.dh0 = pk_f32(&out[1]);
    PK_TRY(check_size(call, "dy", &in[0], in[2].dim[0] * g.d));
    PK_TRY(check_size(call, "y", &in[1], in[2].dim[0] * g.d));
    PK_TRY(check_size(call, "dx", &out[0], pk_count(&in[2])));
    PK_TRY(check_size(call, "dh0", &out[1], g.sequences * g.d));
    if (g.sequences == 0) return PK_OK;
    return PK_LAUNCH(call, pk_dim((unsigned)g.sequences), pk_dim(PK_RECURRENT_BLOCK),
                     backward_block{g});
}
pk_status dynamic_gru_backward_w(const pk_call *call) {
    const pk_view *y = &call->in[0], *gates = &call->in[1], *dx = &call->in[2], *h0 = &call->in[3],
                  *dw = &call->out[0];
    const int64_t d = dw->dim[0], tokens = dx->dim[0];
    if (!dx->offsets) return pk_fail(call, PK_BAD_SHAPE, -1, "the tokens come without offsets");
    PK_TRY(check_size(call, "y", y, tokens * d));
    PK_TRY(check_size(call, "gates", gates, tokens * BLOCKS * d));
    PK_TRY(check_size(call, "dx", dx, tokens * BLOCKS * d));
    PK_TRY(check_size(call, "dw", dw, BLOCKS * d * d));
    PK_TRY(check_size(call, "h0", h0, dx->sequences * d));
    pk_recurrent_weights p = {};
    p.offsets = dx->offsets, p.sequences = dx->sequences, p.reverse = call->attr[0].i != 0;
    p.h = pk_f32(y), p.h0 = pk_f32(h0), p.dz = pk_f32(dx), p.dw = pk_f32(dw);
    p.k = d, p.n = 2 * d, p.dz_stride = BLOCKS * d, p.add = pk_adds(call, 0);
    PK_TRY(pk_each(call, p.k * p.n, p));
    p.n = d, p.dz += CANDIDATE * d, p.dw += 2 * d * d;
    p.times = pk_f32(gates) + RESET * d, p.times_stride = BLOCKS * d;
    return pk_each(call, p.k * p.n, p);
}
} /* namespace */

#define OWN "reverse: bool, gate: int, candidate: int, origin_mode: bool"
PK_OP(dynamic_gru,
      {"dynamic_gru.forward(x: f32, w: f32, b?: f32, h0?: f32; " OWN ")"
       " -> (y: f32, gates: f32, work_order: i64, work_rows: f32, work_panels: f32)",
       dynamic_gru_forward},
      {"dynamic_gru.backward(dy?: f32, y: f32, gates: f32, w: f32, h0?: f32; " OWN ")"
       " -> (dx: f32, dh0: f32, work_order: i64, work_rows: f32, work_panels: f32)",
       dynamic_gru_backward},
      {"dynamic_gru.backward_w(y: f32, gates: f32, dx: f32, h0?: f32; reverse: bool) -> (dw: f32)",
       dynamic_gru_backward_w});
