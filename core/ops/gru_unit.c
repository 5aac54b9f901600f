/* gru_unit: one step of gated recurrent units. Blocks of a row stand in the order update, reset,
 * candidate; w holds [d, 2d] for the first two, then [d, d]. */
#include "elementwise.h"
#include "packed.h"
#include "products.h"
#include "recurrences.h"

enum { UPDATE, RESET, CANDIDATE, BLOCKS };

/* x, gates, dx [n, 3d]; h, y, kept, dh, dy [n, d]; w [d, 2d] then [d, d]; z: scratch */
typedef struct unit {
    const float *x, *h, *w, *b, *dy, *saved;
    float *y, *gates, *kept, *dx, *dh, *z, *dkept;
    int64_t n, d, gate, candidate;
    int origin, add[3];
} unit;

static pk_status find(const pk_call *call, const pk_view *x, const pk_view *h, const pk_view *w,
                      unit *u) {
    u->n = h->dim[0], u->d = pk_inner(h, 1), u->h = pk_f32(h), u->w = pk_f32(w);
    u->gate = call->attr[0].i, u->candidate = call->attr[1].i, u->origin = call->attr[2].i != 0;
    for (int i = 0; i < 2; i++)
        if (call->attr[i].i < 0 || call->attr[i].i >= PK_CELL_ACTIVATIONS)
            return pk_fail(call, PK_BAD_CALL, -1, "activation %lld", (long long)call->attr[i].i);
    for (int32_t i = 0; i < 3; i++) u->add[i] = pk_adds(call, i);
    pk_status bad = pk_check_size(call, "x", x, u->n * BLOCKS * u->d);
    if (!bad) bad = pk_check_size(call, "w", w, BLOCKS * u->d * u->d);
    return bad;
}

static void run(const pk_call *call, unit *u, pk_task task) {
    pk_parallel(call, u->n, pk_max_i64(1, 2048 / pk_max_i64(1, u->d)), task, u);
}

/* z holds h w of update and reset, which become the gates; gives r h in the candidate's block. */
static void gates_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const unit *u = context;
    (void)thread, (void)scratch;
    const int64_t d = u->d;
    for (int64_t r = begin; r < end; r++) {
        float *z = u->z + r * BLOCKS * d;
        const float *x = u->x + r * BLOCKS * d;
        PK_FOR16(j, n, d) {
            pk_vec v[2];
            for (int k = 0; k < 2; k++) {
                v[k] = pk_add(pk_load_n(z + k * d + j, n), pk_load_n(x + k * d + j, n));
                if (u->b) v[k] = pk_add(v[k], pk_load_n(u->b + k * d + j, n));
                v[k] = pk_cell_activate(v[k], u->gate);
                pk_store_n(z + k * d + j, v[k], n);
                pk_put(u->gates + (r * BLOCKS + k) * d + j, v[k], n, u->add[1]);
            }
            const pk_vec kept = pk_mul(v[RESET], pk_load_n(u->h + r * d + j, n));
            pk_store_n(z + CANDIDATE * d + j, kept, n);
            pk_put(u->kept + r * d + j, kept, n, u->add[2]);
        }
    }
}
/* z holds the update gate and, where r was, (r h) w of the candidate. */
static void state_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const unit *u = context;
    (void)thread, (void)scratch;
    const int64_t d = u->d, at = CANDIDATE * d;
    for (int64_t r = begin; r < end; r++) {
        const float *z = u->z + r * BLOCKS * d;
        PK_FOR16(j, n, d) {
            pk_vec v = pk_add(pk_load_n(z + RESET * d + j, n),
                              pk_load_n(u->x + r * BLOCKS * d + at + j, n));
            if (u->b) v = pk_add(v, pk_load_n(u->b + at + j, n));
            v = pk_cell_activate(v, u->candidate);
            const pk_vec gate = pk_load_n(z + j, n), old = pk_load_n(u->h + r * d + j, n),
                         rest = pk_sub(pk_set1(1.0f), gate);
            const pk_vec y = u->origin ? pk_fma(gate, old, pk_mul(rest, v))
                                       : pk_fma(gate, v, pk_mul(rest, old));
            pk_put(u->gates + r * BLOCKS * d + at + j, v, n, u->add[1]);
            pk_put(u->y + r * d + j, y, n, u->add[0]);
        }
    }
}

static pk_status gru_unit_forward(const pk_call *call) {
    const pk_view *in = call->in, *out = call->out;
    unit u = {.x = pk_f32(&in[0]), .b = pk_f32(&in[3]), .y = pk_f32(&out[0]),
              .gates = pk_f32(&out[1]), .kept = pk_f32(&out[2]), .z = pk_f32(&out[3])};
    pk_status bad = find(call, &in[0], &in[1], &in[2], &u);
    if (!bad) bad = pk_check_size(call, "b", &in[3], BLOCKS * u.d);
    if (!bad) bad = pk_check_size(call, "y", &out[0], u.n * u.d);
    if (!bad) bad = pk_check_size(call, "gates", &out[1], u.n * BLOCKS * u.d);
    if (!bad) bad = pk_check_size(call, "kept", &out[2], u.n * u.d);
    if (!bad) bad = pk_check_size(call, "work", &out[3], u.n * BLOCKS * u.d);
    if (bad) return bad;
    const int64_t d = u.d;
    pk_product p = {.m = u.n, .n = 2 * d, .k = d, .a = u.h, .a_stride = d, .b = u.w,
                    .b_stride = 2 * d, .c = u.z, .c_stride = BLOCKS * d};
    pk_multiply(call, &p);
    run(call, &u, gates_task);
    p.n = d, p.a = u.z + CANDIDATE * d, p.a_stride = BLOCKS * d;
    p.b = u.w + 2 * d * d, p.b_stride = d, p.c = u.z + RESET * d;
    pk_multiply(call, &p);
    run(call, &u, state_task);
    return PK_OK;
}

/* The candidate's and the update gate's share; what passes by to h goes to dh. */
static void backward_state_task(void *context, int64_t begin, int64_t end, int32_t thread,
                                void *scratch) {
    const unit *u = context;
    (void)thread, (void)scratch;
    const int64_t d = u->d;
    for (int64_t r = begin; r < end; r++) {
        const float *gates = u->saved + r * BLOCKS * d;
        float *z = u->z + r * BLOCKS * d;
        PK_FOR16(j, n, d) {
            const pk_vec gate = pk_load_n(gates + j, n),
                         c = pk_load_n(gates + CANDIDATE * d + j, n),
                         old = pk_load_n(u->h + r * d + j, n), dy = pk_load_n(u->dy + r * d + j, n),
                         rest = pk_sub(pk_set1(1.0f), gate), change = pk_sub(c, old);
            const pk_vec du = u->origin ? pk_neg(pk_mul(dy, change)) : pk_mul(dy, change);
            pk_store_n(z + j, pk_cell_derive(gate, du, u->gate), n);
            pk_store_n(z + CANDIDATE * d + j,
                       pk_cell_derive(c, pk_mul(dy, u->origin ? rest : gate), u->candidate), n);
            pk_put(u->dh + r * d + j, pk_mul(dy, u->origin ? gate : rest), n, u->add[1]);
        }
    }
}
static void backward_gates_task(void *context, int64_t begin, int64_t end, int32_t thread,
                                void *scratch) {
    const unit *u = context;
    (void)thread, (void)scratch;
    const int64_t d = u->d;
    for (int64_t r = begin; r < end; r++) {
        float *z = u->z + r * BLOCKS * d, *dh = u->dh + r * d;
        PK_FOR16(j, n, d) {
            const pk_vec reset = pk_load_n(u->saved + (r * BLOCKS + RESET) * d + j, n),
                         dkept = pk_load_n(u->dkept + r * d + j, n),
                         old = pk_load_n(u->h + r * d + j, n);
            pk_store_n(z + RESET * d + j, pk_cell_derive(reset, pk_mul(dkept, old), u->gate), n);
            pk_store_n(dh + j, pk_fma(dkept, reset, pk_load_n(dh + j, n)), n);
            for (int k = 0; k < BLOCKS; k++)
                pk_put(u->dx + (r * BLOCKS + k) * d + j, pk_load_n(z + k * d + j, n), n, u->add[0]);
        }
    }
}

static pk_status gru_unit_backward(const pk_call *call) {
    const pk_view *in = call->in, *out = call->out;
    unit u = {.saved = pk_f32(&in[0]), .dy = pk_f32(&in[3]), .dx = pk_f32(&out[0]),
              .dh = pk_f32(&out[1]), .z = pk_f32(&out[2])};
    pk_status bad = find(call, &in[0], &in[1], &in[2], &u);
    if (!bad) bad = pk_check_size(call, "dy", &in[3], u.n * u.d);
    if (!bad) bad = pk_check_size(call, "dx", &out[0], u.n * BLOCKS * u.d);
    if (!bad) bad = pk_check_size(call, "dh", &out[1], u.n * u.d);
    if (!bad) bad = pk_check_size(call, "work", &out[2], u.n * (BLOCKS + 1) * u.d);
    if (bad) return bad;
    const int64_t d = u.d;
    u.dkept = u.z + u.n * BLOCKS * d;
    run(call, &u, backward_state_task);
    pk_product p = {.m = u.n, .n = d, .k = d, .a = u.z + CANDIDATE * d, .a_stride = BLOCKS * d,
                    .b = u.w + 2 * d * d, .b_stride = d, .b_transposed = 1, .c = u.dkept,
                    .c_stride = d};
    pk_multiply(call, &p);
    run(call, &u, backward_gates_task);
    p.k = 2 * d, p.a = u.z, p.b = u.w, p.b_stride = 2 * d, p.c = u.dh, p.accumulate = 1;
    pk_multiply(call, &p);
    return PK_OK;
}

/* dw = h^T dx of update and reset, then (r h)^T dx of the candidate */
static pk_status gru_unit_backward_w(const pk_call *call) {
    const pk_view *dx = &call->in[0], *h = &call->in[1], *kept = &call->in[2], *dw = &call->out[0];
    const int64_t n = h->dim[0], d = pk_inner(h, 1);
    pk_status bad = pk_check_size(call, "dx", dx, n * BLOCKS * d);
    if (!bad) bad = pk_check_size(call, "kept", kept, n * d);
    if (!bad) bad = pk_check_size(call, "dw", dw, BLOCKS * d * d);
    if (bad) return bad;
    pk_product p = {.m = d, .n = 2 * d, .k = n, .a = pk_f32(h), .a_stride = d, .a_transposed = 1,
                    .b = pk_f32(dx), .b_stride = BLOCKS * d, .c = pk_f32(dw), .c_stride = 2 * d,
                    .accumulate = pk_adds(call, 0)};
    pk_multiply(call, &p);
    p.n = d, p.a = pk_f32(kept), p.b += CANDIDATE * d, p.c += 2 * d * d, p.c_stride = d;
    pk_multiply(call, &p);
    return PK_OK;
}

#define OWN "gate: int, candidate: int, origin_mode: bool"
PK_OP(gru_unit,
      {"gru_unit.forward(x: f32, h: f32, w: f32, b?: f32; " OWN ")"
       " -> (y: f32, gates: f32, kept: f32, work: f32)",
       gru_unit_forward},
      {"gru_unit.backward(gates: f32, h: f32, w: f32, dy: f32; " OWN ")"
       " -> (dx: f32, dh: f32, work: f32)",
       gru_unit_backward},
      {"gru_unit.backward_w(dx: f32, h: f32, kept: f32) -> (dw: f32)", gru_unit_backward_w});
