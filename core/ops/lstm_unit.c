/* lstm_unit: the gates and the cell of one step. Blocks of a row stand in the order candidate,
 * input, forget, output; peepholes in the order input, forget, output. */
#include "elementwise.h"
#include "packed.h"
#include "recurrences.h"
#include "reductions.h"

enum { CANDIDATE, INPUT, FORGET, OUTPUT, BLOCKS };

/* x, gates, dx [n, 4d]; c, y, cells, dc [n, d]; peep [3d] or NULL */
typedef struct unit {
    const float *x, *c, *peep, *cells, *gates, *dy, *dcells;
    float *out[3];
    int64_t n, d, gate, cell, candidate;
    float forget_bias;
    int add[3];
} unit;

/* kinds: the first of the three activations among the attributes */
static pk_status find(const pk_call *call, const pk_view *x, const pk_view *c, const pk_view *peep,
                      int kinds, unit *u) {
    u->n = c->dim[0], u->d = pk_inner(c, 1);
    u->c = pk_f32(c), u->peep = pk_f32(peep);
    for (int i = kinds; i < kinds + 3; i++)
        if (call->attr[i].i < 0 || call->attr[i].i >= PK_CELL_ACTIVATIONS)
            return pk_fail(call, PK_BAD_CALL, -1, "activation %lld", (long long)call->attr[i].i);
    u->gate = call->attr[kinds].i, u->cell = call->attr[kinds + 1].i;
    u->candidate = call->attr[kinds + 2].i;
    for (int32_t i = 0; i < 3; i++)
        u->add[i] = pk_adds(call, i), u->out[i] = i < call->n_out ? pk_f32(&call->out[i]) : NULL;
    pk_status bad = pk_check_size(call, "x", x, u->n * BLOCKS * u->d);
    if (!bad) bad = pk_check_size(call, "peep", peep, 3 * u->d);
    return bad;
}

static void forward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const unit *u = context;
    (void)thread, (void)scratch;
    const int64_t d = u->d;
    for (int64_t r = begin; r < end; r++) {
        const float *x = u->x + r * BLOCKS * d, *peep = u->peep;
        float *gates = u->out[2] + r * BLOCKS * d;
        PK_FOR16(j, n, d) {
            pk_vec v[BLOCKS];
            for (int k = 0; k < BLOCKS; k++) v[k] = pk_load_n(x + k * d + j, n);
            const pk_vec old = pk_load_n(u->c + r * d + j, n);
            v[FORGET] = pk_add(v[FORGET], pk_set1(u->forget_bias));
            if (peep) {
                v[INPUT] = pk_fma(pk_load_n(peep + j, n), old, v[INPUT]);
                v[FORGET] = pk_fma(pk_load_n(peep + d + j, n), old, v[FORGET]);
            }
            v[CANDIDATE] = pk_cell_activate(v[CANDIDATE], u->candidate);
            v[INPUT] = pk_cell_activate(v[INPUT], u->gate);
            v[FORGET] = pk_cell_activate(v[FORGET], u->gate);
            const pk_vec fresh = pk_fma(v[FORGET], old, pk_mul(v[INPUT], v[CANDIDATE]));
            if (peep) v[OUTPUT] = pk_fma(pk_load_n(peep + 2 * d + j, n), fresh, v[OUTPUT]);
            v[OUTPUT] = pk_cell_activate(v[OUTPUT], u->gate);
            pk_put(u->out[0] + r * d + j, pk_mul(v[OUTPUT], pk_cell_activate(fresh, u->cell)), n,
                   u->add[0]);
            pk_put(u->out[1] + r * d + j, fresh, n, u->add[1]);
            for (int k = 0; k < BLOCKS; k++) pk_put(gates + k * d + j, v[k], n, u->add[2]);
        }
    }
}

static pk_status lstm_unit_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *c = &call->in[1];
    unit u = {.x = pk_f32(x), .forget_bias = (float)call->attr[0].f};
    pk_status bad = find(call, x, c, &call->in[2], 1, &u);
    if (!bad) bad = pk_check_size(call, "y", &call->out[0], pk_count(c));
    if (!bad) bad = pk_check_size(call, "cells", &call->out[1], pk_count(c));
    if (!bad) bad = pk_check_size(call, "gates", &call->out[2], pk_count(x));
    if (bad) return bad;
    pk_parallel(call, u.n, pk_max_i64(1, 2048 / pk_max_i64(1, u.d)), forward_task, &u);
    return PK_OK;
}

static void backward_task(void *context, int64_t begin, int64_t end, int32_t thread,
                          void *scratch) {
    const unit *u = context;
    (void)thread, (void)scratch;
    const int64_t d = u->d;
    for (int64_t r = begin; r < end; r++) {
        const float *gates = u->gates + r * BLOCKS * d, *peep = u->peep;
        PK_FOR16(j, n, d) {
            pk_vec v[BLOCKS], dv[BLOCKS];
            for (int k = 0; k < BLOCKS; k++) v[k] = pk_load_n(gates + k * d + j, n);
            const pk_vec old = pk_load_n(u->c + r * d + j, n),
                         act = pk_cell_activate(pk_load_n(u->cells + r * d + j, n), u->cell),
                         dy = u->dy ? pk_load_n(u->dy + r * d + j, n) : pk_zero();
            pk_vec dnew = u->dcells ? pk_load_n(u->dcells + r * d + j, n) : pk_zero();
            dv[OUTPUT] = pk_cell_derive(v[OUTPUT], pk_mul(dy, act), u->gate);
            dnew = pk_add(dnew, pk_cell_derive(act, pk_mul(dy, v[OUTPUT]), u->cell));
            if (peep) dnew = pk_fma(dv[OUTPUT], pk_load_n(peep + 2 * d + j, n), dnew);
            dv[CANDIDATE] = pk_cell_derive(v[CANDIDATE], pk_mul(dnew, v[INPUT]), u->candidate);
            dv[INPUT] = pk_cell_derive(v[INPUT], pk_mul(dnew, v[CANDIDATE]), u->gate);
            dv[FORGET] = pk_cell_derive(v[FORGET], pk_mul(dnew, old), u->gate);
            pk_vec dold = pk_mul(dnew, v[FORGET]);
            if (peep) {
                dold = pk_fma(dv[INPUT], pk_load_n(peep + j, n), dold);
                dold = pk_fma(dv[FORGET], pk_load_n(peep + d + j, n), dold);
            }
            for (int k = 0; k < BLOCKS; k++)
                pk_put(u->out[0] + (r * BLOCKS + k) * d + j, dv[k], n, u->add[0]);
            pk_put(u->out[1] + r * d + j, dold, n, u->add[1]);
        }
    }
}

static pk_status lstm_unit_backward(const pk_call *call) {
    const pk_view *in = call->in, *c = &in[2];
    unit u = {.gates = pk_f32(&in[0]), .cells = pk_f32(&in[1]), .dy = pk_f32(&in[4]),
              .dcells = pk_f32(&in[5])};
    pk_status bad = find(call, &in[0], c, &in[3], 0, &u);
    if (!bad) bad = pk_check_size(call, "cells", &in[1], pk_count(c));
    if (!bad) bad = pk_check_size(call, "dy", &in[4], pk_count(c));
    if (!bad) bad = pk_check_size(call, "dcells", &in[5], pk_count(c));
    if (!bad) bad = pk_check_size(call, "dx", &call->out[0], pk_count(&in[0]));
    if (!bad) bad = pk_check_size(call, "dc", &call->out[1], pk_count(c));
    if (bad) return bad;
    pk_parallel(call, u.n, pk_max_i64(1, 2048 / pk_max_i64(1, u.d)), backward_task, &u);
    return PK_OK;
}

/* Columns in chunks of PK_ROW_CHUNK rows, in order. */
static void peep_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const unit *u = context;
    (void)thread, (void)scratch;
    const int64_t d = u->d;
    for (int64_t v = begin; v < end; v++) {
        const int64_t j = 16 * v, n = pk_min_i64(16, d - j);
        pk_vec total[3] = {pk_zero(), pk_zero(), pk_zero()};
        for (int64_t first = 0; first < u->n; first += PK_ROW_CHUNK) {
            pk_vec sum[3] = {pk_zero(), pk_zero(), pk_zero()};
            for (int64_t r = first; r < pk_min_i64(first + PK_ROW_CHUNK, u->n); r++) {
                const float *dx = u->x + r * BLOCKS * d + j;
                const pk_vec old = pk_load_n(u->c + r * d + j, n),
                             fresh = pk_load_n(u->cells + r * d + j, n);
                sum[0] = pk_fma(pk_load_n(dx + INPUT * d, n), old, sum[0]);
                sum[1] = pk_fma(pk_load_n(dx + FORGET * d, n), old, sum[1]);
                sum[2] = pk_fma(pk_load_n(dx + OUTPUT * d, n), fresh, sum[2]);
            }
            for (int k = 0; k < 3; k++) total[k] = pk_add(total[k], sum[k]);
        }
        for (int k = 0; k < 3; k++) pk_put(u->out[0] + k * d + j, total[k], n, u->add[0]);
    }
}

static pk_status lstm_unit_backward_peep(const pk_call *call) {
    const pk_view *dx = &call->in[0], *c = &call->in[1], *cells = &call->in[2];
    unit u = {.x = pk_f32(dx), .c = pk_f32(c), .cells = pk_f32(cells), .n = c->dim[0],
              .d = pk_inner(c, 1), .out = {pk_f32(&call->out[0])}, .add = {pk_adds(call, 0)}};
    pk_status bad = pk_check_size(call, "dx", dx, u.n * BLOCKS * u.d);
    if (!bad) bad = pk_check_size(call, "cells", cells, pk_count(c));
    if (!bad) bad = pk_check_size(call, "dpeep", &call->out[0], 3 * u.d);
    if (bad) return bad;
    pk_parallel(call, pk_ceil_div(u.d, 16), 1, peep_task, &u);
    return PK_OK;
}

#define OWN "gate: int, cell: int, candidate: int"
PK_OP(lstm_unit,
      {"lstm_unit.forward(x: f32, c: f32, peep?: f32; forget_bias: float, " OWN ")"
       " -> (y: f32, cells: f32, gates: f32)",
       lstm_unit_forward},
      {"lstm_unit.backward(gates: f32, cells: f32, c: f32, peep?: f32, dy?: f32, dcells?: f32;"
       " " OWN ") -> (dx: f32, dc: f32)",
       lstm_unit_backward},
      {"lstm_unit.backward_peep(dx: f32, c: f32, cells: f32) -> (dpeep: f32)",
       lstm_unit_backward_peep});
