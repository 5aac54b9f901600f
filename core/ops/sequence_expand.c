/* sequence_expand: whole sequences repeated, and the sum over the copies. */
#include "elementwise.h"
#include "packed.h"

/* x [T, width]; y: for each row of sequence s of like, sequence s of x */
typedef struct expand {
    /* offsets of x, like and y; y has a sequence for each row of like */
    const int64_t *own, *like, *copies;
    const float *in;
    float *out;
    int64_t width;
    int add;
} expand;

static pk_status find(const pk_call *call, const pk_view *x, const pk_view *like, const pk_view *y,
                      expand *e) {
    *e = (expand){x->offsets, like->offsets, y->offsets, pk_f32(&call->in[0]),
                  pk_f32(&call->out[0]), pk_inner(x, 1), pk_adds(call, 0)};
    pk_status bad = pk_check_packed(call, "x", x);
    if (!bad) bad = pk_check_packed(call, "like", like);
    if (!bad) bad = pk_check_packed(call, "y", y);
    if (bad) return bad;
    if (x->sequences != like->sequences || y->sequences != like->dim[0] ||
        pk_inner(y, 1) != e->width)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "%lld sequences of width %lld for %lld with %lld rows, %lld of width %lld",
                       (long long)x->sequences, (long long)e->width, (long long)like->sequences,
                       (long long)like->dim[0], (long long)y->sequences, (long long)pk_inner(y, 1));
    for (int64_t s = 0; s < x->sequences; s++)
        for (int64_t r = like->offsets[s]; r < like->offsets[s + 1]; r++)
            if (y->offsets[r + 1] - y->offsets[r] != x->offsets[s + 1] - x->offsets[s])
                return pk_fail(call, PK_BAD_SHAPE, s, "copy %lld of sequence %lld has %lld rows",
                               (long long)r, (long long)s,
                               (long long)(y->offsets[r + 1] - y->offsets[r]));
    return PK_OK;
}

static void forward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const expand *e = context;
    (void)thread, (void)scratch;
    for (int64_t s = begin; s < end; s++) {
        const float *x = e->in + e->own[s] * e->width;
        const int64_t floats = (e->own[s + 1] - e->own[s]) * e->width;
        for (int64_t r = e->like[s]; r < e->like[s + 1]; r++) {
            float *y = e->out + e->copies[r] * e->width;
            PK_FOR16(i, c, floats) pk_put(y + i, pk_load_n(x + i, c), c, e->add);
        }
    }
}

static void backward_task(void *context, int64_t begin, int64_t end, int32_t thread,
                          void *scratch) {
    const expand *e = context;
    (void)thread, (void)scratch;
    for (int64_t s = begin; s < end; s++) {
        float *dx = e->out + e->own[s] * e->width;
        PK_FOR16(i, c, (e->own[s + 1] - e->own[s]) * e->width) {
            pk_vec sum = pk_zero();
            for (int64_t r = e->like[s]; r < e->like[s + 1]; r++)
                sum = pk_add(sum, pk_load_n(e->in + e->copies[r] * e->width + i, c));
            pk_put(dx + i, sum, c, e->add);
        }
    }
}

static pk_status sequence_expand_forward(const pk_call *call) {
    expand e;
    const pk_status bad = find(call, &call->in[0], &call->in[1], &call->out[0], &e);
    if (bad) return bad;
    pk_parallel(call, call->in[0].sequences, 1, forward_task, &e);
    return PK_OK;
}
static pk_status sequence_expand_backward(const pk_call *call) {
    expand e;
    const pk_status bad = find(call, &call->out[0], &call->in[1], &call->in[0], &e);
    if (bad) return bad;
    pk_parallel(call, call->out[0].sequences, 1, backward_task, &e);
    return PK_OK;
}

PK_OP(sequence_expand,
      {"sequence_expand.forward(x: f32, like: any) -> (y: f32)", sequence_expand_forward},
      {"sequence_expand.backward(dy: f32, like: any) -> (dx: f32)", sequence_expand_backward});
