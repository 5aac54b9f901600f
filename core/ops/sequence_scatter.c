/* sequence_scatter: a sequence of places and values added to each row. */
#include "packed.h"
#include "rows.h"

/* x, y [sequences, width]; ids, updates [tokens] */
typedef struct scatter {
    const float *in, *updates;
    float *out;
    const int64_t *ids, *offsets;
    int64_t width;
    int add;
} scatter;

static pk_status check(const pk_call *call, const pk_view *rows, const pk_view *ids,
                       const pk_view *updates) {
    pk_status bad = pk_check_packed(call, "ids", ids);
    if (!bad) bad = pk_check_size(call, "ids", ids, ids->dim[0]);
    if (!bad) bad = pk_check_size(call, "updates", updates, ids->dim[0]);
    if (!bad && (rows->ndim != 2 || rows->dim[0] != ids->sequences))
        bad = pk_fail(call, PK_BAD_SHAPE, -1, "%lld rows for %lld sequences",
                      (long long)rows->dim[0], (long long)ids->sequences);
    if (bad) return bad;
    return pk_check_index(call, pk_i64(ids), ids->dim[0], rows->dim[1], INT64_MIN, "id");
}

static void forward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const scatter *k = context;
    (void)thread, (void)scratch;
    for (int64_t s = begin; s < end; s++) {
        const float *x = k->in + s * k->width;
        float *y = k->out + s * k->width;
        PK_FOR16(i, c, k->width) {
            const pk_vec v = pk_load_n(x + i, c);
            pk_store_n(y + i, k->add ? pk_add(pk_load_n(y + i, c), v) : v, c);
        }
        for (int64_t t = k->offsets[s]; t < k->offsets[s + 1]; t++) y[k->ids[t]] += k->updates[t];
    }
}

static void backward_task(void *context, int64_t begin, int64_t end, int32_t thread,
                          void *scratch) {
    const scatter *k = context;
    (void)thread, (void)scratch;
    for (int64_t s = begin; s < end; s++)
        for (int64_t t = k->offsets[s]; t < k->offsets[s + 1]; t++)
            k->out[t] = (k->add ? k->out[t] : 0.0f) + k->in[s * k->width + k->ids[t]];
}

static pk_status sequence_scatter_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *ids = &call->in[1], *updates = &call->in[2];
    pk_status bad = check(call, x, ids, updates);
    if (!bad) bad = pk_check_size(call, "y", &call->out[0], pk_count(x));
    if (bad) return bad;
    scatter k = {pk_f32(x), pk_f32(updates), pk_f32(&call->out[0]), pk_i64(ids), ids->offsets,
                 x->dim[1], pk_adds(call, 0)};
    pk_parallel(call, x->dim[0], pk_max_i64(1, 8192 / pk_max_i64(1, k.width)), forward_task, &k);
    return PK_OK;
}

static pk_status sequence_scatter_backward_updates(const pk_call *call) {
    const pk_view *dy = &call->in[0], *ids = &call->in[1], *out = &call->out[0];
    const pk_status bad = check(call, dy, ids, out);
    if (bad) return bad;
    scatter k = {.in = pk_f32(dy), .out = pk_f32(out), .ids = pk_i64(ids), .offsets = ids->offsets,
                 .width = dy->dim[1], .add = pk_adds(call, 0)};
    pk_parallel(call, dy->dim[0], 64, backward_task, &k);
    return PK_OK;
}

PK_OP(sequence_scatter,
      {"sequence_scatter.forward(x: f32, ids: i64, updates: f32) -> (y: f32)",
       sequence_scatter_forward},
      {"sequence_scatter.backward_updates(dy: f32, ids: i64) -> (dupdates: f32)",
       sequence_scatter_backward_updates});
