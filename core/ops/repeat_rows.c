/* repeat_rows: the row of each sequence repeated for its tokens, and the sum over the tokens. */
#include "pk_kernel.h"
#include "pk_simd.h"

/* rows [sequences, width], tokens [offsets[sequences], width] */
typedef struct repeat {
    const int64_t *offsets;
    const float *in;
    float *out;
    int64_t width, sequences;
    int add;
} repeat;

static pk_status find(const pk_call *call, const pk_view *rows, const pk_view *tokens,
                      const int64_t *offsets, int64_t sequences, repeat *r) {
    if (!offsets) return pk_fail(call, PK_BAD_SHAPE, -1, "the tokens come without offsets");
    *r = (repeat){.offsets = offsets, .width = pk_inner(rows, 1), .sequences = sequences};
    r->in = pk_f32(&call->in[0]), r->out = pk_f32(&call->out[0]), r->add = pk_adds(call, 0);
    if (rows->dim[0] != sequences || pk_inner(tokens, 1) != r->width ||
        offsets[sequences] != tokens->dim[0])
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "%lld rows of %lld for %lld sequences with %lld tokens of %lld",
                       (long long)rows->dim[0], (long long)r->width, (long long)sequences,
                       (long long)tokens->dim[0], (long long)pk_inner(tokens, 1));
    return PK_OK;
}

static void repeat_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const repeat *r = context;
    (void)thread, (void)scratch;
    for (int64_t s = begin; s < end; s++)
        for (int64_t t = r->offsets[s]; t < r->offsets[s + 1]; t++)
            PK_FOR16(i, c, r->width) {
                const pk_vec v = pk_load_n(r->in + s * r->width + i, c);
                float *y = r->out + t * r->width + i;
                pk_store_n(y, r->add ? pk_add(pk_load_n(y, c), v) : v, c);
            }
}

static void sum_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const repeat *r = context;
    (void)thread, (void)scratch;
    for (int64_t s = begin; s < end; s++)
        PK_FOR16(i, c, r->width) {
            pk_vec v = pk_zero();
            for (int64_t t = r->offsets[s]; t < r->offsets[s + 1]; t++)
                v = pk_add(v, pk_load_n(r->in + t * r->width + i, c));
            float *dx = r->out + s * r->width + i;
            pk_store_n(dx, r->add ? pk_add(pk_load_n(dx, c), v) : v, c);
        }
}

static void run(const pk_call *call, repeat *r, pk_task task) {
    const int64_t each = r->sequences > 0 ? r->offsets[r->sequences] * r->width / r->sequences : 0;
    pk_parallel(call, r->sequences, pk_max_i64(1, 8192 / pk_max_i64(1, each)), task, r);
}

static pk_status repeat_rows_forward(const pk_call *call) {
    const pk_view *like = &call->in[1];
    repeat r;
    const pk_status bad =
        find(call, &call->in[0], &call->out[0], like->offsets, like->sequences, &r);
    if (bad) return bad;
    run(call, &r, repeat_task);
    return PK_OK;
}

static pk_status repeat_rows_backward(const pk_call *call) {
    const pk_view *dy = &call->in[0];
    repeat r;
    const pk_status bad = find(call, &call->out[0], dy, dy->offsets, dy->sequences, &r);
    if (bad) return bad;
    run(call, &r, sum_task);
    return PK_OK;
}

PK_OP(repeat_rows, {"repeat_rows.forward(x: f32, like: any) -> (y: f32)", repeat_rows_forward},
      {"repeat_rows.backward(dy: f32) -> (dx: f32)", repeat_rows_backward});
