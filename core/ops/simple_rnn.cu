/* simple_rnn: all steps of all sequences in one call. */
#include "packed.cuh"
#include "recurrences.cuh"

namespace {
/* x, y, dy, dx [T, d]; w [d, d]; b [d]; h0, dh0 [sequences, d]; rows [sequences, 2d] */
struct rnn {
    const int64_t *offsets;
    const float *x, *w, *b, *h0, *dy, *seen;
    float *y, *dx, *dh0, *rows;
    int64_t sequences, d, activation;
    int reverse, add[2];
};

struct forward_block {
    rnn k;
    PK_DEVICE void operator()() const {
        const int64_t d = k.d, s = blockIdx.x;
        const pk_walk walk(k.offsets, s, k.reverse);
        float *h = k.rows + s * 2 * d, *z = h + d;
        for (int64_t j = threadIdx.x; j < d; j += PK_RECURRENT_BLOCK)
            h[j] = k.h0 ? k.h0[s * d + j] : 0.0f;
        for (int64_t t = 0; t < walk.steps(); t++) {
            const int64_t at = walk.token(t) * d;
            pk_sync();
            pk_row_times(h, d, k.w, d, d, z, 0);
            pk_sync();
            for (int64_t j = threadIdx.x; j < d; j += PK_RECURRENT_BLOCK) {
                h[j] = pk_cell_activate(z[j] + k.x[at + j] + (k.b ? k.b[j] : 0.0f), k.activation);
                pk_put(k.y + at + j, h[j], k.add[0]);
            }
        }
    }
};
struct backward_block {
    rnn k;
    PK_DEVICE void operator()() const {
        const int64_t d = k.d, s = blockIdx.x;
        const pk_walk walk(k.offsets, s, k.reverse);
        float *dh = k.rows + s * 2 * d, *dz = dh + d;
        for (int64_t j = threadIdx.x; j < d; j += PK_RECURRENT_BLOCK) dh[j] = 0.0f;
        for (int64_t t = walk.steps(); t-- > 0;) {
            const int64_t at = walk.token(t) * d;
            pk_sync();
            for (int64_t j = threadIdx.x; j < d; j += PK_RECURRENT_BLOCK) {
                dz[j] = pk_cell_derive(k.seen[at + j], dh[j] + k.dy[at + j], k.activation);
                pk_put(k.dx + at + j, dz[j], k.add[0]);
            }
            pk_sync();
            pk_row_times_turned(dz, d, k.w, d, d, dh, 0);
        }
        pk_sync();
        for (int64_t j = threadIdx.x; j < d; j += PK_RECURRENT_BLOCK)
            pk_put(k.dh0 + s * d + j, dh[j], k.add[1]);
    }
};

pk_status find(const pk_call *call, const pk_view *tokens, const pk_view *w, const pk_view *rows,
               rnn *k) {
    k->offsets = tokens->offsets, k->sequences = tokens->sequences, k->d = pk_inner(tokens, 1);
    k->reverse = call->attr[0].i != 0, k->activation = call->attr[1].i;
    k->w = pk_f32(w), k->rows = pk_f32(rows);
    k->add[0] = pk_adds(call, 0), k->add[1] = pk_adds(call, 1);
    if (k->activation < 0 || k->activation >= PK_CELL_ACTIVATIONS)
        return pk_fail(call, PK_BAD_CALL, -1, "activation %lld", (long long)k->activation);
    PK_TRY(pk_check_packed(call, "x", tokens));
    PK_TRY(pk_check_size(call, "w", w, k->d * k->d));
    return pk_check_size(call, "work_rows", rows, k->sequences * 2 * k->d);
}

pk_status simple_rnn_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *b = &call->in[2], *h0 = &call->in[3];
    rnn k = {};
    k.x = pk_f32(x), k.b = pk_f32(b), k.h0 = pk_f32(h0), k.y = pk_f32(&call->out[0]);
    PK_TRY(find(call, x, &call->in[1], &call->out[2], &k));
    PK_TRY(pk_check_size(call, "b", b, k.d));
    PK_TRY(pk_check_size(call, "h0", h0, k.sequences * k.d));
    PK_TRY(pk_check_size(call, "y", &call->out[0], pk_count(x)));
    if (k.sequences == 0) return PK_OK;
    return PK_LAUNCH(call, pk_dim((unsigned)k.sequences), pk_dim(PK_RECURRENT_BLOCK),
                     forward_block{k});
}
pk_status simple_rnn_backward(const pk_call *call) {
    const pk_view *dy = &call->in[0], *y = &call->in[1], *out = call->out;
    rnn k = {};
    k.dy = pk_f32(dy), k.seen = pk_f32(y), k.dx = pk_f32(&out[0]), k.dh0 = pk_f32(&out[1]);
    PK_TRY(find(call, y, &call->in[2], &out[3], &k));
    PK_TRY(pk_check_size(call, "dy", dy, pk_count(y)));
    PK_TRY(pk_check_size(call, "dx", &out[0], pk_count(y)));
    PK_TRY(pk_check_size(call, "dh0", &out[1], k.sequences * k.d));
    if (k.sequences == 0) return PK_OK;
    return PK_LAUNCH(call, pk_dim((unsigned)k.sequences), pk_dim(PK_RECURRENT_BLOCK),
                     backward_block{k});
}
/* dw = sum over tokens of y before^T dx */
pk_status simple_rnn_backward_w(const pk_call *call) {
    const pk_view *y = &call->in[0], *dx = &call->in[1], *h0 = &call->in[2], *dw = &call->out[0];
    const int64_t d = dw->dim[0];
    PK_TRY(pk_check_packed(call, "dx", dx));
    PK_TRY(pk_check_size(call, "y", y, dx->dim[0] * d));
    PK_TRY(pk_check_size(call, "dx", dx, dx->dim[0] * d));
    PK_TRY(pk_check_size(call, "dw", dw, d * d));
    PK_TRY(pk_check_size(call, "h0", h0, dx->sequences * d));
    pk_recurrent_weights p = {};
    p.offsets = dx->offsets, p.sequences = dx->sequences, p.reverse = call->attr[0].i != 0;
    p.h = pk_f32(y), p.h0 = pk_f32(h0), p.dz = pk_f32(dx), p.dw = pk_f32(dw);
    p.k = d, p.n = d, p.dz_stride = d, p.add = pk_adds(call, 0);
    return pk_each(call, d * d, p);
}
} /* namespace */

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
