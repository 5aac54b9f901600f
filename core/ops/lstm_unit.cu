/* lstm_unit: the gates and the cell of one step; the order of blocks as on the host. */
#include "packed.cuh"
#include "recurrences.cuh"

namespace {
enum { CANDIDATE, INPUT, FORGET, OUTPUT, BLOCKS };

/* x, gates, dx [n, 4d]; c, y, cells, dc [n, d]; peep [3d] or NULL */
struct unit {
    const float *x, *c, *peep, *cells, *gates, *dy, *dcells;
    float *out[3];
    int64_t n, d, gate, cell, candidate;
    float forget_bias;
    int add[3];
};

struct forward_each {
    unit u;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t d = u.d, r = e / d, j = e % d;
        const float *x = u.x + r * BLOCKS * d + j, *peep = u.peep;
        float v[BLOCKS];
        for (int k = 0; k < BLOCKS; k++) v[k] = x[k * d];
        const float old = u.c[e];
        v[FORGET] += u.forget_bias;
        if (peep) {
            v[INPUT] = fmaf(peep[j], old, v[INPUT]);
            v[FORGET] = fmaf(peep[d + j], old, v[FORGET]);
        }
        v[CANDIDATE] = pk_cell_activate(v[CANDIDATE], u.candidate);
        v[INPUT] = pk_cell_activate(v[INPUT], u.gate);
        v[FORGET] = pk_cell_activate(v[FORGET], u.gate);
        const float fresh = fmaf(v[FORGET], old, v[INPUT] * v[CANDIDATE]);
        if (peep) v[OUTPUT] = fmaf(peep[2 * d + j], fresh, v[OUTPUT]);
        v[OUTPUT] = pk_cell_activate(v[OUTPUT], u.gate);
        pk_put(u.out[0] + e, v[OUTPUT] * pk_cell_activate(fresh, u.cell), u.add[0]);
        pk_put(u.out[1] + e, fresh, u.add[1]);
        for (int k = 0; k < BLOCKS; k++)
            pk_put(u.out[2] + (r * BLOCKS + k) * d + j, v[k], u.add[2]);
    }
};
struct backward_each {
    unit u;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t d = u.d, r = e / d, j = e % d;
        const float *peep = u.peep;
        float v[BLOCKS], dv[BLOCKS];
        for (int k = 0; k < BLOCKS; k++) v[k] = u.gates[(r * BLOCKS + k) * d + j];
        const float old = u.c[e], act = pk_cell_activate(u.cells[e], u.cell),
                    dy = u.dy ? u.dy[e] : 0.0f;
        float dnew = u.dcells ? u.dcells[e] : 0.0f;
        dv[OUTPUT] = pk_cell_derive(v[OUTPUT], dy * act, u.gate);
        dnew += pk_cell_derive(act, dy * v[OUTPUT], u.cell);
        if (peep) dnew = fmaf(dv[OUTPUT], peep[2 * d + j], dnew);
        dv[CANDIDATE] = pk_cell_derive(v[CANDIDATE], dnew * v[INPUT], u.candidate);
        dv[INPUT] = pk_cell_derive(v[INPUT], dnew * v[CANDIDATE], u.gate);
        dv[FORGET] = pk_cell_derive(v[FORGET], dnew * old, u.gate);
        float dold = dnew * v[FORGET];
        if (peep) {
            dold = fmaf(dv[INPUT], peep[j], dold);
            dold = fmaf(dv[FORGET], peep[d + j], dold);
        }
        for (int k = 0; k < BLOCKS; k++)
            pk_put(u.out[0] + (r * BLOCKS + k) * d + j, dv[k], u.add[0]);
        pk_put(u.out[1] + e, dold, u.add[1]);
    }
};
struct peep_each {
    unit u;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t d = u.d, k = e / d, j = e % d;
        const float *with = k == 2 ? u.cells : u.c;
        float sum = 0.0f;
        for (int64_t r = 0; r < u.n; r++)
            sum = fmaf(u.x[(r * BLOCKS + INPUT + k) * d + j], with[r * d + j], sum);
        pk_put(u.out[0] + e, sum, u.add[0]);
    }
};

/* kinds: the first of the three activations among the attributes */
pk_status find(const pk_call *call, const pk_view *x, const pk_view *c, const pk_view *peep,
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
    PK_TRY(pk_check_size(call, "x", x, u->n * BLOCKS * u->d));
    return pk_check_size(call, "peep", peep, 3 * u->d);
}

pk_status lstm_unit_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *c = &call->in[1];
    unit u = {};
    u.x = pk_f32(x), u.forget_bias = (float)call->attr[0].f;
    PK_TRY(find(call, x, c, &call->in[2], 1, &u));
    PK_TRY(pk_check_size(call, "y", &call->out[0], pk_count(c)));
    PK_TRY(pk_check_size(call, "cells", &call->out[1], pk_count(c)));
    PK_TRY(pk_check_size(call, "gates", &call->out[2], pk_count(x)));
    return pk_each(call, pk_count(c), forward_each{u});
}
pk_status lstm_unit_backward(const pk_call *call) {
    const pk_view *in = call->in, *c = &in[2];
    unit u = {};
    u.gates = pk_f32(&in[0]), u.cells = pk_f32(&in[1]);
    u.dy = pk_f32(&in[4]), u.dcells = pk_f32(&in[5]);
    PK_TRY(find(call, &in[0], c, &in[3], 0, &u));
    PK_TRY(pk_check_size(call, "cells", &in[1], pk_count(c)));
    PK_TRY(pk_check_size(call, "dy", &in[4], pk_count(c)));
    PK_TRY(pk_check_size(call, "dcells", &in[5], pk_count(c)));
    PK_TRY(pk_check_size(call, "dx", &call->out[0], pk_count(&in[0])));
    PK_TRY(pk_check_size(call, "dc", &call->out[1], pk_count(c)));
    return pk_each(call, pk_count(c), backward_each{u});
}
pk_status lstm_unit_backward_peep(const pk_call *call) {
    const pk_view *dx = &call->in[0], *c = &call->in[1], *cells = &call->in[2];
    unit u = {};
    u.x = pk_f32(dx), u.c = pk_f32(c), u.cells = pk_f32(cells);
    u.n = c->dim[0], u.d = pk_inner(c, 1);
    u.out[0] = pk_f32(&call->out[0]), u.add[0] = pk_adds(call, 0);
    PK_TRY(pk_check_size(call, "dx", dx, u.n * BLOCKS * u.d));
    PK_TRY(pk_check_size(call, "cells", cells, pk_count(c)));
    PK_TRY(pk_check_size(call, "dpeep", &call->out[0], 3 * u.d));
    return pk_each(call, 3 * u.d, peep_each{u});
}
} /* namespace */

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
