/* sequence_enumerate: the window of ids that starts at each token. */
#include "packed.h"

typedef struct windows {
    int64_t *y; /* [tokens, size] */
    const int64_t *x, *offsets;
    int64_t size, pad;
} windows;

static void enumerate_task(void *context, int64_t begin, int64_t end, int32_t thread,
                           void *scratch) {
    const windows *w = context;
    (void)thread, (void)scratch;
    for (int64_t s = begin; s < end; s++)
        for (int64_t t = w->offsets[s]; t < w->offsets[s + 1]; t++)
            for (int64_t j = 0; j < w->size; j++)
                w->y[t * w->size + j] = t + j < w->offsets[s + 1] ? w->x[t + j] : w->pad;
}

static pk_status sequence_enumerate_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *y = &call->out[0];
    const windows w = {pk_i64(y), pk_i64(x), x->offsets, call->attr[0].i, call->attr[1].i};
    pk_status bad = pk_check_packed(call, "x", x);
    if (!bad) bad = pk_check_size(call, "x", x, x->dim[0]);
    if (!bad && (y->ndim != 2 || y->dim[0] != x->dim[0] || y->dim[1] != w.size))
        bad = pk_fail(call, PK_BAD_SHAPE, -1, "%lld windows of %lld ids for %lld tokens",
                      (long long)y->dim[0], (long long)pk_inner(y, 1), (long long)x->dim[0]);
    if (!bad && pk_adds(call, 0))
        bad = pk_fail(call, PK_BAD_CALL, -1, "an id cannot be added to");
    if (bad) return bad;
    pk_parallel(call, x->sequences, 64, enumerate_task, (void *)(uintptr_t)&w);
    return PK_OK;
}

PK_OP(sequence_enumerate, {"sequence_enumerate.forward(x: i64; size: int, pad: int) -> (y: i64)",
                           sequence_enumerate_forward});
