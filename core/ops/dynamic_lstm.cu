/* dynamic_lstm: all steps of all sequences in one call; the order of blocks as on the host. */
#include "recurrences.cuh"

namespace {
enum { CANDIDATE, INPUT, FORGET, OUTPUT, BLOCKS, TO_INPUT = BLOCKS, TO_FORGET, TO_OUTPUT, BIASES };

/* x, gates, dx [T, 4d]; y, cells [T, d]; w [d, 4d]; h0, c0 [sequences, d]; rows [sequences, 6d] */
struct lstm {
    const int64_t *offsets;
    const float *x, *w, *b, *h0, *c0, *dy, *dcells;
    float *y, *cells, *gates, *dx, *dh0, *dc0, *rows;
    int64_t sequences, d, gate, cell, candidate;
    int peephole, reverse;
    int add[3];
};

struct forward_block {
    lstm l;
    PK_DEVICE void operator()() const {
        const int64_t d = l.d, s = blockIdx.x;
        const pk_walk walk(l.offsets, s, l.reverse);
        float *h = l.rows + s * (BLOCKS + 2) * d, *c = h + d, *z = c + d;
        for (int64_t j = threadIdx.x; j < d; j += PK_RECURRENT_BLOCK) {
            h[j] = l.h0 ? l.h0[s * d + j] : 0.0f;
            c[j] = l.c0 ? l.c0[s * d + j] : 0.0f;
        }
        for (int64_t t = 0; t < walk.steps(); t++) {
            pk_sync();
            pk_row_times(h, d, l.w, BLOCKS * d, BLOCKS * d, z, 0);
            pk_sync();
            const int64_t token = walk.token(t);
            for (int64_t j = threadIdx.x; j < d; j += PK_RECURRENT_BLOCK) step(token, j, z, h, c);
        }
    }
    PK_DEVICE void step(int64_t token, int64_t j, const float *z, float *h, float *c) const {
        const int64_t d = l.d;
        float v[BLOCKS];
        for (int k = 0; k < BLOCKS; k++)
            v[k] = z[k * d + j] + l.x[token * BLOCKS * d + k * d + j] + (l.b ? l.b[k * d + j] : 0.0f);
        if (l.peephole) {
            v[INPUT] = fmaf(l.b[TO_INPUT * d + j], c[j], v[INPUT]);
            v[FORGET] = fmaf(l.b[TO_FORGET * d + j], c[j], v[FORGET]);
        }
        v[CANDIDATE] = pk_cell_activate(v[CANDIDATE], l.candidate);
        v[INPUT] = pk_cell_activate(v[INPUT], l.gate);
        v[FORGET] = pk_cell_activate(v[FORGET], l.gate);
        const float fresh = fmaf(v[FORGET], c[j], v[INPUT] * v[CANDIDATE]);
        if (l.peephole) v[OUTPUT] = fmaf(l.b[TO_OUTPUT * d + j], fresh, v[OUTPUT]);
        v[OUTPUT] = pk_cell_activate(v[OUTPUT], l.gate);
        h[j] = v[OUTPUT] * pk_cell_activate(fresh, l.cell);
        c[j] = fresh;
        for (int k = 0; k < BLOCKS; k++)
            pk_put(l.gates + token * BLOCKS * d + k * d + j, v[k], l.add[2]);
        pk_put(l.y + token * d + j, h[j], l.add[0]);
        pk_put(l.cells + token * d + j, fresh, l.add[1]);
    }
};

struct backward_block {
    lstm l;
    PK_DEVICE void operator()() const {
        const int64_t d = l.d, s = blockIdx.x;
        const pk_walk walk(l.offsets, s, l.reverse);
        float *dh = l.rows + s * (BLOCKS + 2) * d, *dc = dh + d, *dz = dc + d;
        for (int64_t j = threadIdx.x; j < d; j += PK_RECURRENT_BLOCK) dh[j] = dc[j] = 0.0f;
        for (int64_t t = walk.steps(); t-- > 0;) {
            const float *before = l.c0 ? l.c0 + s * d : NULL;
            if (t > 0) before = l.cells + walk.token(t - 1) * d;
            for (int64_t j = threadIdx.x; j < d; j += PK_RECURRENT_BLOCK)
                step(walk.token(t), j, before ? before[j] : 0.0f, dh[j], dc, dz);
            pk_sync();
            pk_row_times_turned(dz, BLOCKS * d, l.w, BLOCKS * d, d, dh, 0);
            pk_sync();
        }
        for (int64_t j = threadIdx.x; j < d; j += PK_RECURRENT_BLOCK) {
            pk_put(l.dh0 + s * d + j, dh[j], l.add[1]);
            pk_put(l.dc0 + s * d + j, dc[j], l.add[2]);
        }
    }
    PK_DEVICE void step(int64_t token, int64_t j, float old, float dh, float *dc, float *dz) const {
        const int64_t d = l.d;
        const float *v = l.gates + token * BLOCKS * d + j;
        const float g = v[CANDIDATE * d], i = v[INPUT * d], f = v[FORGET * d], o = v[OUTPUT * d];
        const float act = pk_cell_activate(l.cells[token * d + j], l.cell);
        const float dy = dh + (l.dy ? l.dy[token * d + j] : 0.0f);
        float dnew = dc[j] + (l.dcells ? l.dcells[token * d + j] : 0.0f), dv[BLOCKS];
        dv[OUTPUT] = pk_cell_derive(o, dy * act, l.gate);
        dnew += pk_cell_derive(act, dy * o, l.cell);
        if (l.peephole) dnew = fmaf(dv[OUTPUT], l.b[TO_OUTPUT * d + j], dnew);
        dv[CANDIDATE] = pk_cell_derive(g, dnew * i, l.candidate);
        dv[INPUT] = pk_cell_derive(i, dnew * g, l.gate);
        dv[FORGET] = pk_cell_derive(f, dnew * old, l.gate);
        float dold = dnew * f;
        if (l.peephole) {
            dold = fmaf(dv[INPUT], l.b[TO_INPUT * d + j], dold);
            dold = fmaf(dv[FORGET], l.b[TO_FORGET * d + j], dold);
        }
        for (int k = 0; k < BLOCKS; k++) {
            dz[k * d + j] = dv[k];
            pk_put(l.dx + token * BLOCKS * d + k * d + j, dv[k], l.add[0]);
        }
        dc[j] = dold;
    }
};

/* One element of the bias's gradient: a column of dx, for peepholes times a cell. */
struct bias_each {
    const int64_t *offsets;
    const float *dx, *cells, *c0;
    float *db;
    int64_t sequences, d;
    int reverse, add;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t block = e / d, j = e % d;
        const int64_t column = block < BLOCKS ? e : (block - TO_INPUT + INPUT) * d + j;
        float sum = 0.0f;
        for (int64_t s = 0; s < sequences; s++) {
            const pk_walk walk(offsets, s, reverse);
            for (int64_t t = 0; t < walk.steps(); t++) {
                float factor = 1.0f;
                if (block == TO_OUTPUT) factor = cells[walk.token(t) * d + j];
                else if (block >= BLOCKS)
                    factor = t > 0 ? cells[walk.token(t - 1) * d + j] : c0 ? c0[s * d + j] : 0.0f;
                sum = fmaf(dx[walk.token(t) * BLOCKS * d + column], factor, sum);
            }
        }
        pk_put(db + e, sum, add);
    }
};

pk_status check_size(const pk_call *call, const char *what, const pk_view *v, int64_t n) {
    if (!v->data || pk_count(v) == n) return PK_OK;
    return pk_fail(call, PK_BAD_SHAPE, -1, "%s has %lld elements, expected %lld", what,
                   (long long)pk_count(v), (long long)n);
}
pk_status find(const pk_call *call, const pk_view *tokens, const pk_view *w, const pk_view *b,
               const pk_view *h0, const pk_view *c0, const pk_view *rows, lstm *l) {
    if (!tokens->offsets) return pk_fail(call, PK_BAD_SHAPE, -1, "the tokens come without offsets");
    l->offsets = tokens->offsets, l->sequences = tokens->sequences;
    l->peephole = call->attr[0].i != 0, l->reverse = call->attr[1].i != 0;
    l->gate = call->attr[2].i, l->cell = call->attr[3].i, l->candidate = call->attr[4].i;
    for (int i = 2; i < 5; i++)
        if (call->attr[i].i < 0 || call->attr[i].i >= PK_CELL_ACTIVATIONS)
            return pk_fail(call, PK_BAD_CALL, -1, "activation %lld", (long long)call->attr[i].i);
    l->d = w->dim[0];
    if (w->ndim != 2 || w->dim[1] != BLOCKS * l->d || pk_inner(tokens, 1) != BLOCKS * l->d)
        return pk_fail(call, PK_BAD_SHAPE, -1, "w is [%lld, %lld], the tokens have width %lld",
                       (long long)w->dim[0], (long long)pk_inner(w, 1),
                       (long long)pk_inner(tokens, 1));
    if (l->peephole && !b->data)
        return pk_fail(call, PK_BAD_CALL, -1, "peepholes are a part of the bias, which is missing");
    PK_TRY(check_size(call, "b", b, (l->peephole ? BIASES : BLOCKS) * l->d));
    PK_TRY(check_size(call, "h0", h0, l->sequences * l->d));
    PK_TRY(check_size(call, "c0", c0, l->sequences * l->d));
    PK_TRY(check_size(call, "work_rows", rows, l->sequences * (BLOCKS + 2) * l->d));
    l->w = pk_f32(w), l->b = pk_f32(b), l->h0 = pk_f32(h0), l->c0 = pk_f32(c0);
    l->rows = pk_f32(rows);
    for (int32_t i = 0; i < 3; i++) l->add[i] = pk_adds(call, i);
    return PK_OK;
}

pk_status dynamic_lstm_forward(const pk_call *call) {
    const pk_view *in = call->in, *out = call->out;
    lstm l = {};
    PK_TRY(find(call, &in[0], &in[1], &in[2], &in[3], &in[4], &out[4], &l));
    l.x = pk_f32(&in[0]);
    l.y = pk_f32(&out[0]), l.cells = pk_f32(&out[1]), l.gates = pk_f32(&out[2]);
    PK_TRY(check_size(call, "y", &out[0], in[0].dim[0] * l.d));
    PK_TRY(check_size(call, "cells", &out[1], in[0].dim[0] * l.d));
    PK_TRY(check_size(call, "gates", &out[2], pk_count(&in[0])));
    if (l.sequences == 0) return PK_OK;
    return PK_LAUNCH(call, pk_dim((unsigned)l.sequences), pk_dim(PK_RECURRENT_BLOCK),
                     forward_block{l});
}
pk_status dynamic_lstm_backward(const pk_call *call) {
    const pk_view *in = call->in, *out = call->out;
    lstm l = {};
    PK_TRY(find(call, &in[4], &in[5], &in[6], &in[2], &in[7], &out[4], &l));
    l.dy = pk_f32(&in[0]), l.dcells = pk_f32(&in[1]);
    l.cells = pk_f32(&in[3]), l.gates = pk_f32(&in[4]);
    l.dx = pk_f32(&out[0]), l.dh0 = pk_f32(&out[1]), l.dc0 = pk_f32(&out[2]);
    const int64_t tokens = in[4].dim[0];
    PK_TRY(check_size(call, "dy", &in[0], tokens * l.d));
    PK_TRY(check_size(call, "dcells", &in[1], tokens * l.d));
    PK_TRY(check_size(call, "cells", &in[3], tokens * l.d));
    PK_TRY(check_size(call, "dx", &out[0], pk_count(&in[4])));
    PK_TRY(check_size(call, "dh0", &out[1], l.sequences * l.d));
    PK_TRY(check_size(call, "dc0", &out[2], l.sequences * l.d));
    if (l.sequences == 0) return PK_OK;
    return PK_LAUNCH(call, pk_dim((unsigned)l.sequences), pk_dim(PK_RECURRENT_BLOCK),
                     backward_block{l});
}
pk_status dynamic_lstm_backward_w(const pk_call *call) {
    const pk_view *y = &call->in[0], *dx = &call->in[1], *h0 = &call->in[2], *dw = &call->out[0];
    const int64_t d = dw->dim[0];
    if (!dx->offsets) return pk_fail(call, PK_BAD_SHAPE, -1, "the tokens come without offsets");
    PK_TRY(check_size(call, "y", y, dx->dim[0] * d));
    PK_TRY(check_size(call, "dx", dx, dx->dim[0] * BLOCKS * d));
    PK_TRY(check_size(call, "dw", dw, BLOCKS * d * d));
    PK_TRY(check_size(call, "h0", h0, dx->sequences * d));
    pk_recurrent_weights p = {};
    p.offsets = dx->offsets, p.sequences = dx->sequences, p.reverse = call->attr[0].i != 0;
    p.h = pk_f32(y), p.h0 = pk_f32(h0), p.dz = pk_f32(dx), p.dw = pk_f32(dw);
    p.k = d, p.n = BLOCKS * d, p.dz_stride = BLOCKS * d, p.add = pk_adds(call, 0);
    return pk_each(call, p.k * p.n, p);
}
pk_status dynamic_lstm_backward_b(const pk_call *call) {
    const pk_view *dx = &call->in[0], *cells = &call->in[1], *c0 = &call->in[2],
                  *db = &call->out[0];
    const int64_t d = pk_inner(dx, 1) / BLOCKS, blocks = call->attr[0].i ? BIASES : BLOCKS;
    if (!dx->offsets) return pk_fail(call, PK_BAD_SHAPE, -1, "the tokens come without offsets");
    PK_TRY(check_size(call, "db", db, blocks * d));
    PK_TRY(check_size(call, "cells", cells, dx->dim[0] * d));
    PK_TRY(check_size(call, "c0", c0, dx->sequences * d));
    bias_each b = {};
    b.offsets = dx->offsets, b.sequences = dx->sequences, b.d = d;
    b.dx = pk_f32(dx), b.cells = pk_f32(cells), b.c0 = pk_f32(c0), b.db = pk_f32(db);
    b.reverse = call->attr[1].i != 0, b.add = pk_adds(call, 0);
    return pk_each(call, blocks * d, b);
}
} /* namespace */

#define OWN "peephole: bool, reverse: bool, gate: int, cell: int, candidate: int"
PK_OP(dynamic_lstm,
      {"dynamic_lstm.forward(x: f32, w: f32, b?: f32, h0?: f32, c0?: f32; " OWN ")"
       " -> (y: f32, cells: f32, gates: f32, work_order: i64, work_rows: f32, work_panels: f32)",
       dynamic_lstm_forward},
      {"dynamic_lstm.backward(dy?: f32, dcells?: f32, h0?: f32, cells: f32, gates: f32, w: f32,"
       " b?: f32, c0?: f32; " OWN ") -> (dx: f32, dh0: f32, dc0: f32, work_order: i64,"
       " work_rows: f32, work_panels: f32)",
       dynamic_lstm_backward},
      {"dynamic_lstm.backward_w(y: f32, dx: f32, h0?: f32; reverse: bool) -> (dw: f32)",
       dynamic_lstm_backward_w},
      {"dynamic_lstm.backward_b(dx: f32, cells: f32, c0?: f32; peephole: bool, reverse: bool)"
       " -> (db: f32)",
       dynamic_lstm_backward_b});
