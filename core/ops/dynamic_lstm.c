/* dynamic_lstm: all steps of all sequences in one call. The four blocks of a row of z, of a bias and
 * of w stand in the order candidate, input, forget, output; a bias with peepholes goes on with the
 * weights from the cell to the input, forget and output gates. */
#include "elementwise.h"
#include "packed.h"
#include "recurrences.h"
#include "reductions.h"

enum { CANDIDATE, INPUT, FORGET, OUTPUT, BLOCKS, TO_INPUT = BLOCKS, TO_FORGET, TO_OUTPUT, BIASES };

/* x, gates, dx [T, 4d]; y, cells [T, d]; w [d, 4d]; h0, c0 [sequences, d] */
typedef struct lstm {
    pk_steps steps;
    const float *panels;
    const float *x, *b, *h0, *c0, *dy, *dcells;
    float *y, *cells, *gates, *dx, *dh0, *dc0;
    float *h, *c, *z; /* of running sequences: [running, d], [running, d], [running, 4d] */
    int64_t d, gate, cell, candidate;
    int32_t peephole;
    int32_t add[3]; /* outputs are added to */
} lstm;

/* Attributes, sizes, and the inputs that forward and backward share. */
static pk_status find(const pk_call *call, const pk_view *tokens, const pk_view *w,
                      const pk_view *b, const pk_view *h0, const pk_view *c0, lstm *l) {
    if (!tokens->offsets) return pk_fail(call, PK_BAD_SHAPE, -1, "the tokens come without offsets");
    l->peephole = call->attr[0].i != 0;
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
    pk_status bad = pk_check_size(call, "b", b, (l->peephole ? BIASES : BLOCKS) * l->d);
    if (!bad) bad = pk_check_size(call, "h0", h0, tokens->sequences * l->d);
    if (!bad) bad = pk_check_size(call, "c0", c0, tokens->sequences * l->d);
    l->b = pk_f32(b), l->h0 = pk_f32(h0), l->c0 = pk_f32(c0);
    return bad;
}

/* Room for the order, the running rows and the packed matrix. */
static pk_status take_room(const pk_call *call, const pk_view *tokens, const pk_view *order,
                           const pk_view *rows, const pk_view *panels, lstm *l) {
    const int64_t n = tokens->sequences, d = l->d;
    if (pk_count(order) < n || pk_count(rows) < n * (BLOCKS + 2) * d ||
        pk_count(panels) < pk_panels_floats(d, BLOCKS * d))
        return pk_fail(call, PK_BAD_SHAPE, -1, "the scratch is too small for %lld sequences",
                       (long long)n);
    l->steps = pk_steps_find(call, tokens, call->attr[1].i != 0, pk_i64(order));
    l->panels = pk_f32(panels);
    l->h = pk_f32(rows), l->c = l->h + n * d, l->z = l->c + n * d;
    return PK_OK;
}

/* One row of a step: z = h w; h and c are replaced. */
static void forward_row(const lstm *l, int64_t token, const float *z, float *h, float *c) {
    const int64_t d = l->d;
    const float *x = l->x + token * BLOCKS * d, *b = l->b;
    float *gates = l->gates + token * BLOCKS * d;
    PK_FOR16(j, n, d) {
        pk_vec v[BLOCKS];
        for (int k = 0; k < BLOCKS; k++) {
            v[k] = pk_add(pk_load_n(z + k * d + j, n), pk_load_n(x + k * d + j, n));
            if (b) v[k] = pk_add(v[k], pk_load_n(b + k * d + j, n));
        }
        const pk_vec old = pk_load_n(c + j, n);
        if (l->peephole) {
            v[INPUT] = pk_fma(pk_load_n(b + TO_INPUT * d + j, n), old, v[INPUT]);
            v[FORGET] = pk_fma(pk_load_n(b + TO_FORGET * d + j, n), old, v[FORGET]);
        }
        v[CANDIDATE] = pk_cell_activate(v[CANDIDATE], l->candidate);
        v[INPUT] = pk_cell_activate(v[INPUT], l->gate);
        v[FORGET] = pk_cell_activate(v[FORGET], l->gate);
        const pk_vec fresh = pk_fma(v[FORGET], old, pk_mul(v[INPUT], v[CANDIDATE]));
        if (l->peephole)
            v[OUTPUT] = pk_fma(pk_load_n(b + TO_OUTPUT * d + j, n), fresh, v[OUTPUT]);
        v[OUTPUT] = pk_cell_activate(v[OUTPUT], l->gate);
        const pk_vec y = pk_mul(v[OUTPUT], pk_cell_activate(fresh, l->cell));
        for (int k = 0; k < BLOCKS; k++) pk_put(gates + k * d + j, v[k], n, l->add[2]);
        pk_put(l->y + token * d + j, y, n, l->add[0]);
        pk_put(l->cells + token * d + j, fresh, n, l->add[1]);
        pk_store_n(h + j, y, n);
        pk_store_n(c + j, fresh, n);
    }
}

static void forward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const lstm *l = context;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const pk_group g = pk_group_of(&l->steps, i);
        float *h = l->h + g.base * l->d, *c = l->c + g.base * l->d, *z = l->z + g.base * BLOCKS * l->d;
        pk_group_start(&g, l->h0, l->d, h);
        pk_group_start(&g, l->c0, l->d, c);
        for (int64_t t = 0, n = g.rows; (n = pk_group_running(&g, t, n)) > 0; t++) {
            pk_panels_multiply(h, l->d, n, l->d, l->panels, BLOCKS * l->d, z, BLOCKS * l->d, 0,
                               scratch);
            for (int64_t r = 0; r < n; r++) {
                if (r + 1 < n) {
                    const int64_t next = pk_group_token(&g, r + 1, t);
                    pk_prefetch(l->x + next * BLOCKS * l->d, BLOCKS * l->d);
                    pk_prefetch_write(l->gates + next * BLOCKS * l->d, BLOCKS * l->d);
                    pk_prefetch_write(l->y + next * l->d, l->d);
                    pk_prefetch_write(l->cells + next * l->d, l->d);
                }
                forward_row(l, pk_group_token(&g, r, t), z + r * BLOCKS * l->d, h + r * l->d,
                            c + r * l->d);
            }
        }
    }
}

static pk_status dynamic_lstm_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *w = &call->in[1];
    lstm l = {.x = pk_f32(x)};
    pk_status bad = find(call, x, w, &call->in[2], &call->in[3], &call->in[4], &l);
    if (!bad) bad = pk_check_size(call, "y", &call->out[0], x->dim[0] * l.d);
    if (!bad) bad = pk_check_size(call, "cells", &call->out[1], x->dim[0] * l.d);
    if (!bad) bad = pk_check_size(call, "gates", &call->out[2], pk_count(x));
    if (!bad) bad = take_room(call, x, &call->out[3], &call->out[4], &call->out[5], &l);
    if (bad) return bad;
    l.y = pk_f32(&call->out[0]), l.cells = pk_f32(&call->out[1]), l.gates = pk_f32(&call->out[2]);
    for (int32_t i = 0; i < 3; i++) l.add[i] = pk_adds(call, i);
    pk_panels_pack(call, pk_f32(w), BLOCKS * l.d, 0, l.d, BLOCKS * l.d, pk_f32(&call->out[5]));
    pk_parallel(call, l.steps.groups, 1, forward_task, &l);
    return PK_OK;
}

/* One row of a step backwards: dh and dc come from the step after; dz is written, dc is replaced by
 * what goes on to the step before. */
static void backward_row(const lstm *l, int64_t token, const float *before, const float *dh,
                         float *dc, float *dz) {
    const int64_t d = l->d;
    const float *gates = l->gates + token * BLOCKS * d, *b = l->b;
    float *dx = l->dx + token * BLOCKS * d;
    PK_FOR16(j, n, d) {
        pk_vec v[BLOCKS], dv[BLOCKS];
        for (int k = 0; k < BLOCKS; k++) v[k] = pk_load_n(gates + k * d + j, n);
        const pk_vec old = before ? pk_load_n(before + j, n) : pk_zero();
        const pk_vec act = pk_cell_activate(pk_load_n(l->cells + token * d + j, n), l->cell);
        pk_vec dy = pk_load_n(dh + j, n), dnew = pk_load_n(dc + j, n);
        if (l->dy) dy = pk_add(dy, pk_load_n(l->dy + token * d + j, n));
        if (l->dcells) dnew = pk_add(dnew, pk_load_n(l->dcells + token * d + j, n));
        dv[OUTPUT] = pk_cell_derive(v[OUTPUT], pk_mul(dy, act), l->gate);
        dnew = pk_add(dnew, pk_cell_derive(act, pk_mul(dy, v[OUTPUT]), l->cell));
        if (l->peephole) dnew = pk_fma(dv[OUTPUT], pk_load_n(b + TO_OUTPUT * d + j, n), dnew);
        dv[CANDIDATE] = pk_cell_derive(v[CANDIDATE], pk_mul(dnew, v[INPUT]), l->candidate);
        dv[INPUT] = pk_cell_derive(v[INPUT], pk_mul(dnew, v[CANDIDATE]), l->gate);
        dv[FORGET] = pk_cell_derive(v[FORGET], pk_mul(dnew, old), l->gate);
        pk_vec dold = pk_mul(dnew, v[FORGET]);
        if (l->peephole) {
            dold = pk_fma(dv[INPUT], pk_load_n(b + TO_INPUT * d + j, n), dold);
            dold = pk_fma(dv[FORGET], pk_load_n(b + TO_FORGET * d + j, n), dold);
        }
        for (int k = 0; k < BLOCKS; k++) {
            pk_store_n(dz + k * d + j, dv[k], n);
            pk_put(dx + k * d + j, dv[k], n, l->add[0]);
        }
        pk_store_n(dc + j, dold, n);
    }
}

static void backward_task(void *context, int64_t begin, int64_t end, int32_t thread,
                          void *scratch) {
    const lstm *l = context;
    (void)thread;
    const int64_t d = l->d;
    for (int64_t i = begin; i < end; i++) {
        const pk_group g = pk_group_of(&l->steps, i);
        float *dh = l->h + g.base * d, *dc = l->c + g.base * d, *dz = l->z + g.base * BLOCKS * d;
        pk_group_start(&g, NULL, d, dh);
        pk_group_start(&g, NULL, d, dc);
        const int64_t longest = g.rows > 0 ? pk_group_length(&g, 0) : 0;
        for (int64_t t = longest, n = 0; t-- > 0;) {
            while (n < g.rows && pk_group_length(&g, n) > t) n++;
            for (int64_t r = 0; r < n; r++) {
                if (r + 1 < n) {
                    const int64_t next = pk_group_token(&g, r + 1, t);
                    pk_prefetch(l->gates + next * BLOCKS * d, BLOCKS * d);
                    pk_prefetch_write(l->dx + next * BLOCKS * d, BLOCKS * d);
                    if (l->dy) pk_prefetch(l->dy + next * d, d);
                }
                const float *before = l->c0 ? l->c0 + pk_group_sequence(&g, r) * d : NULL;
                if (t > 0) before = l->cells + pk_group_token(&g, r, t - 1) * d;
                backward_row(l, pk_group_token(&g, r, t), before, dh + r * d, dc + r * d,
                             dz + r * BLOCKS * d);
            }
            pk_panels_multiply(dz, BLOCKS * d, n, BLOCKS * d, l->panels, d, dh, d, 0, scratch);
        }
        pk_group_finish(&g, dh, d, l->dh0, l->add[1]);
        pk_group_finish(&g, dc, d, l->dc0, l->add[2]);
    }
}

static pk_status dynamic_lstm_backward(const pk_call *call) {
    const pk_view *in = call->in, *out = call->out, *gates = &in[4], *w = &in[5];
    lstm l = {.dy = pk_f32(&in[0]), .dcells = pk_f32(&in[1]), .cells = pk_f32(&in[3]),
              .gates = pk_f32(gates)};
    pk_status bad = find(call, gates, w, &in[6], &in[2], &in[7], &l);
    const int64_t tokens = gates->dim[0], starts = gates->sequences * l.d;
    if (!bad) bad = pk_check_size(call, "dy", &in[0], tokens * l.d);
    if (!bad) bad = pk_check_size(call, "dcells", &in[1], tokens * l.d);
    if (!bad) bad = pk_check_size(call, "cells", &in[3], tokens * l.d);
    if (!bad) bad = pk_check_size(call, "dx", &out[0], pk_count(gates));
    if (!bad) bad = pk_check_size(call, "dh0", &out[1], starts);
    if (!bad) bad = pk_check_size(call, "dc0", &out[2], starts);
    if (!bad) bad = take_room(call, gates, &out[3], &out[4], &out[5], &l);
    if (bad) return bad;
    l.dx = pk_f32(&out[0]), l.dh0 = pk_f32(&out[1]), l.dc0 = pk_f32(&out[2]);
    for (int32_t i = 0; i < 3; i++) l.add[i] = pk_adds(call, i);
    pk_panels_pack(call, pk_f32(w), BLOCKS * l.d, 1, BLOCKS * l.d, l.d, pk_f32(&out[5]));
    pk_parallel(call, l.steps.groups, 1, backward_task, &l);
    pk_steps_clear_empty(&l.steps, l.dh0, l.d, l.add[1]);
    pk_steps_clear_empty(&l.steps, l.dc0, l.d, l.add[2]);
    return PK_OK;
}

/* dw = sum over tokens of h before^T dx */
static pk_status dynamic_lstm_backward_w(const pk_call *call) {
    const pk_view *y = &call->in[0], *dx = &call->in[1], *h0 = &call->in[2], *dw = &call->out[0];
    const int64_t d = dw->dim[0];
    if (!dx->offsets) return pk_fail(call, PK_BAD_SHAPE, -1, "the tokens come without offsets");
    pk_status bad = pk_check_size(call, "y", y, dx->dim[0] * d);
    if (!bad) bad = pk_check_size(call, "dx", dx, dx->dim[0] * BLOCKS * d);
    if (!bad) bad = pk_check_size(call, "dw", dw, BLOCKS * d * d);
    if (!bad) bad = pk_check_size(call, "h0", h0, dx->sequences * d);
    if (bad) return bad;
    const pk_recurrent p = {.tokens = dx, .reverse = call->attr[0].i != 0, .h = pk_f32(y),
                            .h0 = pk_f32(h0), .k = d, .n = BLOCKS * d, .dz = pk_f32(dx),
                            .dz_stride = BLOCKS * d, .dw = pk_f32(dw), .dw_stride = BLOCKS * d,
                            .accumulate = pk_adds(call, 0)};
    pk_recurrent_weights(call, &p);
    return PK_OK;
}

typedef struct peep {
    const int64_t *offsets;
    const float *dx, *cells, *c0;
    float *db;
    int64_t sequences, d;
    int32_t reverse, add;
} peep;

/* Columns j .. j + n of db where there are peepholes, all seven parts in one pass over the tokens:
 * sums of PK_ROW_CHUNK tokens, added in order. */
static void peep_columns(const peep *p, int64_t j, int64_t n) {
    const int64_t d = p->d, tokens = p->offsets[p->sequences];
    pk_vec total[BIASES];
    for (int k = 0; k < BIASES; k++)
        total[k] = p->add ? pk_load_n(p->db + k * d + j, n) : pk_zero();
    for (int64_t s = 0, first = 0; first < tokens; first += PK_ROW_CHUNK) {
        pk_vec sum[BIASES];
        for (int k = 0; k < BIASES; k++) sum[k] = pk_zero();
        for (int64_t t = first; t < pk_min_i64(first + PK_ROW_CHUNK, tokens); t++) {
            while (p->offsets[s + 1] <= t) s++;
            const int64_t from = p->reverse ? t + 1 : t - 1;
            const float *dz = p->dx + t * BLOCKS * d + j, *old = NULL;
            if (from >= p->offsets[s] && from < p->offsets[s + 1]) old = p->cells + from * d + j;
            else if (p->c0) old = p->c0 + s * d + j;
            pk_vec v[BLOCKS];
            for (int k = 0; k < BLOCKS; k++) {
                v[k] = pk_load_n(dz + k * d, n);
                sum[k] = pk_add(sum[k], v[k]);
            }
            if (old) {
                const pk_vec c = pk_load_n(old, n);
                sum[TO_INPUT] = pk_fma(v[INPUT], c, sum[TO_INPUT]);
                sum[TO_FORGET] = pk_fma(v[FORGET], c, sum[TO_FORGET]);
            }
            sum[TO_OUTPUT] = pk_fma(v[OUTPUT], pk_load_n(p->cells + t * d + j, n), sum[TO_OUTPUT]);
        }
        for (int k = 0; k < BIASES; k++) total[k] = pk_add(total[k], sum[k]);
    }
    for (int k = 0; k < BIASES; k++) pk_store_n(p->db + k * d + j, total[k], n);
}

static void peep_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const peep *p = context;
    (void)thread, (void)scratch;
    for (int64_t v = begin; v < end; v++)
        peep_columns(p, 16 * v, pk_min_i64(16, p->d - 16 * v));
}

static pk_status dynamic_lstm_backward_b(const pk_call *call) {
    const pk_view *dx = &call->in[0], *cells = &call->in[1], *c0 = &call->in[2],
                  *db = &call->out[0];
    const int32_t peephole = call->attr[0].i != 0;
    const int64_t d = pk_inner(dx, 1) / BLOCKS;
    if (!dx->offsets) return pk_fail(call, PK_BAD_SHAPE, -1, "the tokens come without offsets");
    pk_status bad = pk_check_size(call, "db", db, (peephole ? BIASES : BLOCKS) * d);
    if (!bad) bad = pk_check_size(call, "cells", cells, dx->dim[0] * d);
    if (!bad) bad = pk_check_size(call, "c0", c0, dx->sequences * d);
    if (bad) return bad;
    peep p = {dx->offsets, pk_f32(dx), pk_f32(cells), pk_f32(c0), pk_f32(db), dx->sequences, d,
              call->attr[1].i != 0, pk_adds(call, 0)};
    if (peephole) pk_parallel(call, pk_ceil_div(d, 16), 1, peep_task, &p);
    else pk_sum_columns(call, p.dx, BLOCKS * d, dx->dim[0], BLOCKS * d, p.add, p.db);
    return PK_OK;
}

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
