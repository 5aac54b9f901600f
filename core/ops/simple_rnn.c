/* simple_rnn: all steps of all sequences in one call. */
#include "elementwise.h"
#include "packed.h"
#include "recurrences.h"

/* x, y, dy, dx [T, d]; w [d, d]; b [d]; h0, dh0 [sequences, d] */
typedef struct rnn {
    pk_steps steps;
    const float *panels, *x, *b, *h0, *dy, *seen;
    float *y, *dx, *dh0;
    float *h, *z; /* of running sequences: [running, d] both */
    int64_t d, activation;
    int32_t add[2];
} rnn;

/* Attributes (reverse, activation) and room for the order, the running rows and the packed
 * matrix. */
static pk_status find(const pk_call *call, const pk_view *tokens, const pk_view *w,
                      const pk_view *room, int32_t turned, rnn *k) {
    const int64_t n = tokens->sequences, d = pk_inner(tokens, 1);
    k->d = d, k->activation = call->attr[1].i;
    k->add[0] = pk_adds(call, 0), k->add[1] = pk_adds(call, 1);
    if (k->activation < 0 || k->activation >= PK_CELL_ACTIVATIONS)
        return pk_fail(call, PK_BAD_CALL, -1, "activation %lld", (long long)k->activation);
    pk_status bad = pk_check_packed(call, "x", tokens);
    if (!bad) bad = pk_check_size(call, "w", w, d * d);
    if (bad) return bad;
    if (pk_count(&room[0]) < n || pk_count(&room[1]) < n * 2 * d ||
        pk_count(&room[2]) < pk_panels_floats(d, d))
        return pk_fail(call, PK_BAD_SHAPE, -1, "the scratch is too small for %lld sequences",
                       (long long)n);
    k->steps = pk_steps_find(call, tokens, call->attr[0].i != 0, pk_i64(&room[0]));
    k->h = pk_f32(&room[1]), k->z = k->h + n * d, k->panels = pk_f32(&room[2]);
    pk_panels_pack(call, pk_f32(w), d, turned, d, d, pk_f32(&room[2]));
    return PK_OK;
}

static void forward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const rnn *k = context;
    (void)thread;
    const int64_t d = k->d;
    for (int64_t i = begin; i < end; i++) {
        const pk_group group = pk_group_of(&k->steps, i);
        float *h = k->h + group.base * d, *z = k->z + group.base * d;
        pk_group_start(&group, k->h0, d, h);
        for (int64_t t = 0, n = group.rows; (n = pk_group_running(&group, t, n)) > 0; t++) {
            pk_panels_multiply(h, d, n, d, k->panels, d, z, d, 0, scratch);
            for (int64_t r = 0; r < n; r++) {
                const int64_t token = pk_group_token(&group, r, t);
                PK_FOR16(j, c, d) {
                    pk_vec v = pk_add(pk_load_n(z + r * d + j, c),
                                      pk_load_n(k->x + token * d + j, c));
                    if (k->b) v = pk_add(v, pk_load_n(k->b + j, c));
                    v = pk_cell_activate(v, k->activation);
                    pk_store_n(h + r * d + j, v, c);
                    pk_put(k->y + token * d + j, v, c, k->add[0]);
                }
            }
        }
    }
}

static pk_status simple_rnn_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *b = &call->in[2], *h0 = &call->in[3];
    rnn k = {.x = pk_f32(x), .b = pk_f32(b), .h0 = pk_f32(h0), .y = pk_f32(&call->out[0])};
    pk_status bad = find(call, x, &call->in[1], &call->out[1], 0, &k);
    if (!bad) bad = pk_check_size(call, "b", b, k.d);
    if (!bad) bad = pk_check_size(call, "h0", h0, x->sequences * k.d);
    if (!bad) bad = pk_check_size(call, "y", &call->out[0], pk_count(x));
    if (bad) return bad;
    pk_parallel(call, k.steps.groups, 1, forward_task, &k);
    return PK_OK;
}

static void backward_task(void *context, int64_t begin, int64_t end, int32_t thread,
                          void *scratch) {
    const rnn *k = context;
    (void)thread;
    const int64_t d = k->d;
    for (int64_t i = begin; i < end; i++) {
        const pk_group group = pk_group_of(&k->steps, i);
        float *dh = k->h + group.base * d, *dz = k->z + group.base * d;
        pk_group_start(&group, NULL, d, dh);
        for (int64_t t = group.rows > 0 ? pk_group_length(&group, 0) : 0, n = 0; t-- > 0;) {
            while (n < group.rows && pk_group_length(&group, n) > t) n++;
            for (int64_t r = 0; r < n; r++) {
                const int64_t token = pk_group_token(&group, r, t);
                PK_FOR16(j, c, d) {
                    const pk_vec dy = pk_add(pk_load_n(dh + r * d + j, c),
                                             pk_load_n(k->dy + token * d + j, c));
                    const pk_vec v = pk_cell_derive(pk_load_n(k->seen + token * d + j, c), dy,
                                                    k->activation);
                    pk_store_n(dz + r * d + j, v, c);
                    pk_put(k->dx + token * d + j, v, c, k->add[0]);
                }
            }
            pk_panels_multiply(dz, d, n, d, k->panels, d, dh, d, 0, scratch);
        }
        pk_group_finish(&group, dh, d, k->dh0, k->add[1]);
    }
}

static pk_status simple_rnn_backward(const pk_call *call) {
    const pk_view *dy = &call->in[0], *y = &call->in[1], *out = call->out;
    rnn k = {.dy = pk_f32(dy), .seen = pk_f32(y), .dx = pk_f32(&out[0]), .dh0 = pk_f32(&out[1])};
    pk_status bad = find(call, y, &call->in[2], &out[2], 1, &k);
    if (!bad) bad = pk_check_size(call, "dy", dy, pk_count(y));
    if (!bad) bad = pk_check_size(call, "dx", &out[0], pk_count(y));
    if (!bad) bad = pk_check_size(call, "dh0", &out[1], y->sequences * k.d);
    if (bad) return bad;
    pk_parallel(call, k.steps.groups, 1, backward_task, &k);
    pk_steps_clear_empty(&k.steps, k.dh0, k.d, k.add[1]);
    return PK_OK;
}

/* dw = sum over tokens of y before^T dx */
static pk_status simple_rnn_backward_w(const pk_call *call) {
    const pk_view *y = &call->in[0], *dx = &call->in[1], *h0 = &call->in[2], *dw = &call->out[0];
    const int64_t d = dw->dim[0];
    pk_status bad = pk_check_packed(call, "dx", dx);
    if (!bad) bad = pk_check_size(call, "y", y, dx->dim[0] * d);
    if (!bad) bad = pk_check_size(call, "dx", dx, dx->dim[0] * d);
    if (!bad) bad = pk_check_size(call, "dw", dw, d * d);
    if (!bad) bad = pk_check_size(call, "h0", h0, dx->sequences * d);
    if (bad) return bad;
    const pk_recurrent p = {.tokens = dx, .reverse = call->attr[0].i != 0, .h = pk_f32(y),
                            .h0 = pk_f32(h0), .k = d, .n = d, .dz = pk_f32(dx), .dz_stride = d,
                            .dw = pk_f32(dw), .dw_stride = d, .accumulate = pk_adds(call, 0)};
    pk_recurrent_weights(call, &p);
    return PK_OK;
}

#define OWN "reverse: bool, activation: int"
PK_OP(simple_rnn,
      {"simple_rnn.forward(x: f32, w: f32, b?: f32, h0?: f32; " OWN ")"
       " -> (y: f32, work_order: i64, work_rows: f32, work_panels: f32)",
       simple_rnn_forward},
      {"simple_rnn.backward(dy: f32, y: f32, w: f32; " OWN ")"
       " -> (dx: f32, dh0: f32, work_order: i64, work_rows: f32, work_panels: f32)",
       simple_rnn_backward},
      {"simple_rnn.backward_w(y: f32, dx: f32, h0?: f32; reverse: bool) -> (dw: f32)",
       simple_rnn_backward_w});
