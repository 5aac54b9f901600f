/* dynamic_gru: all steps of all sequences in one call. The three blocks of a row of x and of a bias
 * stand in the order update, reset, candidate; w holds [d, 2d] for the first two, then [d, d]. */
#include "elementwise.h"
#include "packed.h"
#include "recurrences.h"

enum { UPDATE, RESET, CANDIDATE, BLOCKS };

/* x, gates, dx [T, 3d]; y [T, d]; h0 [sequences, d] */
typedef struct gru {
    pk_steps steps;
    const float *panels, *candidate_panels;
    const float *x, *b, *h0, *dy, *seen; /* seen: y, backwards */
    float *y, *gates, *dx, *dh0;
    float *h, *rh, *z; /* of running sequences: [running, d], [running, d], [running, 3d] */
    int64_t d, gate, candidate;
    int32_t origin;
    int32_t add[2]; /* outputs are added to */
} gru;

/* Attributes (reverse, gate, candidate, origin), sizes, and the inputs that both directions share. */
static pk_status find(const pk_call *call, const pk_view *tokens, const pk_view *w,
                      const pk_view *h0, gru *g) {
    if (!tokens->offsets) return pk_fail(call, PK_BAD_SHAPE, -1, "the tokens come without offsets");
    g->gate = call->attr[1].i, g->candidate = call->attr[2].i, g->origin = call->attr[3].i != 0;
    for (int i = 1; i < 3; i++)
        if (call->attr[i].i < 0 || call->attr[i].i >= PK_CELL_ACTIVATIONS)
            return pk_fail(call, PK_BAD_CALL, -1, "activation %lld", (long long)call->attr[i].i);
    g->d = w->dim[0];
    if (w->ndim != 2 || w->dim[1] != BLOCKS * g->d || pk_inner(tokens, 1) != BLOCKS * g->d)
        return pk_fail(call, PK_BAD_SHAPE, -1, "w is [%lld, %lld], the tokens have width %lld",
                       (long long)w->dim[0], (long long)pk_inner(w, 1),
                       (long long)pk_inner(tokens, 1));
    g->h0 = pk_f32(h0);
    return pk_check_size(call, "h0", h0, tokens->sequences * g->d);
}

/* Room for the order, the running rows and both matrices, which are packed as they are multiplied. */
static pk_status take_room(const pk_call *call, const pk_view *tokens, const pk_view *w,
                           const pk_view *out, int32_t turned, gru *g) {
    const int64_t n = tokens->sequences, d = g->d;
    const int64_t first = turned ? pk_panels_floats(2 * d, d) : pk_panels_floats(d, 2 * d);
    if (pk_count(&out[0]) < n || pk_count(&out[1]) < n * (BLOCKS + 2) * d ||
        pk_count(&out[2]) < first + pk_panels_floats(d, d))
        return pk_fail(call, PK_BAD_SHAPE, -1, "the scratch is too small for %lld sequences",
                       (long long)n);
    g->steps = pk_steps_find(call, tokens, call->attr[0].i != 0, pk_i64(&out[0]));
    g->h = pk_f32(&out[1]), g->rh = g->h + n * d, g->z = g->rh + n * d;
    float *panels = pk_f32(&out[2]);
    g->panels = panels, g->candidate_panels = panels + first;
    pk_panels_pack(call, pk_f32(w), 2 * d, turned, turned ? 2 * d : d, turned ? d : 2 * d, panels);
    pk_panels_pack(call, pk_f32(w) + 2 * d * d, d, turned, d, d, panels + first);
    return PK_OK;
}

/* One row of a step, first half: z holds h w of update and reset; gives r h. */
static void gates_row(const gru *g, int64_t token, float *z, const float *h, float *rh) {
    const int64_t d = g->d;
    const float *x = g->x + token * BLOCKS * d, *b = g->b;
    PK_FOR16(j, n, d) {
        pk_vec v[2];
        for (int k = 0; k < 2; k++) {
            v[k] = pk_add(pk_load_n(z + k * d + j, n), pk_load_n(x + k * d + j, n));
            if (b) v[k] = pk_add(v[k], pk_load_n(b + k * d + j, n));
            v[k] = pk_cell_activate(v[k], g->gate);
            pk_store_n(z + k * d + j, v[k], n);
        }
        pk_store_n(rh + j, pk_mul(v[RESET], pk_load_n(h + j, n)), n);
    }
}

/* Second half: z holds the activated gates and (r h) w of the candidate; h is replaced. */
static void state_row(const gru *g, int64_t token, const float *z, const float *c, float *h) {
    const int64_t d = g->d;
    const float *x = g->x + (token * BLOCKS + CANDIDATE) * d,
                *b = g->b ? g->b + CANDIDATE * d : NULL;
    float *gates = g->gates + token * BLOCKS * d;
    PK_FOR16(j, n, d) {
        pk_vec v = pk_add(pk_load_n(c + j, n), pk_load_n(x + j, n));
        if (b) v = pk_add(v, pk_load_n(b + j, n));
        v = pk_cell_activate(v, g->candidate);
        const pk_vec u = pk_load_n(z + j, n), r = pk_load_n(z + d + j, n),
                     old = pk_load_n(h + j, n), rest = pk_sub(pk_set1(1.0f), u);
        const pk_vec fresh = g->origin ? pk_fma(u, old, pk_mul(rest, v))
                                       : pk_fma(u, v, pk_mul(rest, old));
        pk_put(gates + j, u, n, g->add[1]);
        pk_put(gates + d + j, r, n, g->add[1]);
        pk_put(gates + 2 * d + j, v, n, g->add[1]);
        pk_put(g->y + token * d + j, fresh, n, g->add[0]);
        pk_store_n(h + j, fresh, n);
    }
}

static void forward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const gru *g = context;
    (void)thread;
    const int64_t d = g->d;
    for (int64_t i = begin; i < end; i++) {
        const pk_group group = pk_group_of(&g->steps, i);
        float *h = g->h + group.base * d, *rh = g->rh + group.base * d,
              *z = g->z + group.base * BLOCKS * d, *c = z + 2 * d * group.rows;
        pk_group_start(&group, g->h0, d, h);
        for (int64_t t = 0, n = group.rows; (n = pk_group_running(&group, t, n)) > 0; t++) {
            pk_panels_multiply(h, d, n, d, g->panels, 2 * d, z, 2 * d, 0, scratch);
            for (int64_t r = 0; r < n; r++)
                gates_row(g, pk_group_token(&group, r, t), z + r * 2 * d, h + r * d, rh + r * d);
            pk_panels_multiply(rh, d, n, d, g->candidate_panels, d, c, d, 0, scratch);
            for (int64_t r = 0; r < n; r++)
                state_row(g, pk_group_token(&group, r, t), z + r * 2 * d, c + r * d, h + r * d);
        }
    }
}

static pk_status dynamic_gru_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *w = &call->in[1], *b = &call->in[2];
    gru g = {.x = pk_f32(x), .b = pk_f32(b), .y = pk_f32(&call->out[0]),
             .gates = pk_f32(&call->out[1])};
    pk_status bad = find(call, x, w, &call->in[3], &g);
    if (!bad) bad = pk_check_size(call, "b", b, BLOCKS * g.d);
    if (!bad) bad = pk_check_size(call, "y", &call->out[0], x->dim[0] * g.d);
    if (!bad) bad = pk_check_size(call, "gates", &call->out[1], pk_count(x));
    if (!bad) bad = take_room(call, x, w, &call->out[2], 0, &g);
    if (bad) return bad;
    g.add[0] = pk_adds(call, 0), g.add[1] = pk_adds(call, 1);
    pk_parallel(call, g.steps.groups, 1, forward_task, &g);
    return PK_OK;
}

/* One row of a step backwards, first half: the candidate's and the update gate's share. dh comes
 * from the step after and becomes what passes by to the step before. */
static void backward_state_row(const gru *g, int64_t token, const float *before, float *dh,
                               float *dz, float *dc) {
    const int64_t d = g->d;
    const float *gates = g->gates + token * BLOCKS * d;
    PK_FOR16(j, n, d) {
        const pk_vec u = pk_load_n(gates + j, n), c = pk_load_n(gates + 2 * d + j, n),
                     old = before ? pk_load_n(before + j, n) : pk_zero(),
                     rest = pk_sub(pk_set1(1.0f), u), change = pk_sub(c, old);
        pk_vec dy = pk_load_n(dh + j, n);
        if (g->dy) dy = pk_add(dy, pk_load_n(g->dy + token * d + j, n));
        const pk_vec du = g->origin ? pk_neg(pk_mul(dy, change)) : pk_mul(dy, change);
        pk_store_n(dz + j, pk_cell_derive(u, du, g->gate), n);
        pk_store_n(dc + j, pk_cell_derive(c, pk_mul(dy, g->origin ? rest : u), g->candidate), n);
        pk_store_n(dh + j, pk_mul(dy, g->origin ? u : rest), n);
    }
}

/* Second half: drh is the gradient of r h. */
static void backward_gates_row(const gru *g, int64_t token, const float *before, const float *drh,
                               const float *dc, float *dh, float *dz) {
    const int64_t d = g->d;
    const float *gates = g->gates + token * BLOCKS * d;
    float *dx = g->dx + token * BLOCKS * d;
    PK_FOR16(j, n, d) {
        const pk_vec r = pk_load_n(gates + d + j, n), v = pk_load_n(drh + j, n),
                     old = before ? pk_load_n(before + j, n) : pk_zero();
        const pk_vec dr = pk_cell_derive(r, pk_mul(v, old), g->gate);
        pk_store_n(dh + j, pk_fma(v, r, pk_load_n(dh + j, n)), n);
        pk_store_n(dz + d + j, dr, n);
        pk_put(dx + j, pk_load_n(dz + j, n), n, g->add[0]);
        pk_put(dx + d + j, dr, n, g->add[0]);
        pk_put(dx + 2 * d + j, pk_load_n(dc + j, n), n, g->add[0]);
    }
}

/* The row of h before a step of a row of a group; NULL for zeros. */
static const float *row_before(const gru *g, const pk_group *group, int64_t row, int64_t step) {
    if (step > 0) return g->seen + pk_group_token(group, row, step - 1) * g->d;
    return g->h0 ? g->h0 + pk_group_sequence(group, row) * g->d : NULL;
}

static void backward_task(void *context, int64_t begin, int64_t end, int32_t thread,
                          void *scratch) {
    const gru *g = context;
    (void)thread;
    const int64_t d = g->d;
    for (int64_t i = begin; i < end; i++) {
        const pk_group group = pk_group_of(&g->steps, i);
        float *dh = g->h + group.base * d, *drh = g->rh + group.base * d,
              *dz = g->z + group.base * BLOCKS * d, *dc = dz + 2 * d * group.rows;
        pk_group_start(&group, NULL, d, dh);
        for (int64_t t = group.rows > 0 ? pk_group_length(&group, 0) : 0, n = 0; t-- > 0;) {
            while (n < group.rows && pk_group_length(&group, n) > t) n++;
            for (int64_t r = 0; r < n; r++)
                backward_state_row(g, pk_group_token(&group, r, t), row_before(g, &group, r, t),
                                   dh + r * d, dz + r * 2 * d, dc + r * d);
            pk_panels_multiply(dc, d, n, d, g->candidate_panels, d, drh, d, 0, scratch);
            for (int64_t r = 0; r < n; r++)
                backward_gates_row(g, pk_group_token(&group, r, t), row_before(g, &group, r, t),
                                   drh + r * d, dc + r * d, dh + r * d, dz + r * 2 * d);
            pk_panels_multiply(dz, 2 * d, n, 2 * d, g->panels, d, dh, d, 1, scratch);
        }
        pk_group_finish(&group, dh, d, g->dh0, g->add[1]);
    }
}

static pk_status dynamic_gru_backward(const pk_call *call) {
    const pk_view *in = call->in, *out = call->out, *gates = &in[2], *w = &in[3];
    gru g = {.dy = pk_f32(&in[0]), .seen = pk_f32(&in[1]), .gates = pk_f32(gates),
             .dx = pk_f32(&out[0]), .dh0 = pk_f32(&out[1])};
    pk_status bad = find(call, gates, w, &in[4], &g);
    if (!bad) bad = pk_check_size(call, "dy", &in[0], gates->dim[0] * g.d);
    if (!bad) bad = pk_check_size(call, "y", &in[1], gates->dim[0] * g.d);
    if (!bad) bad = pk_check_size(call, "dx", &out[0], pk_count(gates));
    if (!bad) bad = pk_check_size(call, "dh0", &out[1], gates->sequences * g.d);
    if (!bad) bad = take_room(call, gates, w, &out[2], 1, &g);
    if (bad) return bad;
    g.add[0] = pk_adds(call, 0), g.add[1] = pk_adds(call, 1);
    pk_parallel(call, g.steps.groups, 1, backward_task, &g);
    pk_steps_clear_empty(&g.steps, g.dh0, g.d, g.add[1]);
    return PK_OK;
}

/* dw: sum over tokens of h before^T dz of update and reset, and of (r h before)^T dz of the
 * candidate. */
static pk_status dynamic_gru_backward_w(const pk_call *call) {
    const pk_view *y = &call->in[0], *gates = &call->in[1], *dx = &call->in[2], *h0 = &call->in[3],
                  *dw = &call->out[0];
    const int64_t d = dw->dim[0], tokens = dx->dim[0];
    if (!dx->offsets) return pk_fail(call, PK_BAD_SHAPE, -1, "the tokens come without offsets");
    pk_status bad = pk_check_size(call, "y", y, tokens * d);
    if (!bad) bad = pk_check_size(call, "gates", gates, tokens * BLOCKS * d);
    if (!bad) bad = pk_check_size(call, "dx", dx, tokens * BLOCKS * d);
    if (!bad) bad = pk_check_size(call, "dw", dw, BLOCKS * d * d);
    if (!bad) bad = pk_check_size(call, "h0", h0, dx->sequences * d);
    if (bad) return bad;
    pk_recurrent p = {.tokens = dx, .reverse = call->attr[0].i != 0, .h = pk_f32(y),
                      .h0 = pk_f32(h0), .k = d, .n = 2 * d, .dz = pk_f32(dx),
                      .dz_stride = BLOCKS * d, .dw = pk_f32(dw), .dw_stride = 2 * d,
                      .accumulate = pk_adds(call, 0)};
    pk_recurrent_weights(call, &p);
    p.n = d, p.dz += CANDIDATE * d, p.dw += 2 * d * d, p.dw_stride = d;
    p.times = pk_f32(gates) + RESET * d, p.times_stride = BLOCKS * d;
    pk_recurrent_weights(call, &p);
    return PK_OK;
}

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
