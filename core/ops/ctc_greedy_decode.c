/* ctc_greedy_decode: each frame's best class, repeats and blanks taken out. */
#include "packed.h"

typedef struct decode {
    int64_t *y, *count; /* [frames], [sequences] */
    const float *x;     /* [frames, classes] */
    const int64_t *offsets;
    int64_t classes, blank;
} decode;

static int64_t best_of(const float *x, int64_t classes) {
    int64_t best = 0;
    for (int64_t c = 1; c < classes; c++)
        if (x[c] > x[best]) best = c;
    return best;
}

static void decode_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const decode *k = context;
    (void)thread, (void)scratch;
    for (int64_t s = begin; s < end; s++) {
        int64_t to = k->offsets[s], before = -1;
        for (int64_t t = k->offsets[s]; t < k->offsets[s + 1]; t++) {
            const int64_t best = best_of(k->x + t * k->classes, k->classes);
            if (best != before && best != k->blank) k->y[to++] = best;
            before = best;
        }
        k->count[s] = to - k->offsets[s];
        while (to < k->offsets[s + 1]) k->y[to++] = -1;
    }
}

static pk_status ctc_greedy_decode_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *out = call->out;
    const decode k = {pk_i64(&out[0]), pk_i64(&out[1]), pk_f32(x), x->offsets, pk_inner(x, 1),
                      call->attr[0].i};
    pk_status bad = pk_check_packed(call, "x", x);
    if (!bad) bad = pk_check_size(call, "y", &out[0], x->dim[0]);
    if (!bad) bad = pk_check_size(call, "count", &out[1], x->sequences);
    if (!bad && call->accumulate)
        bad = pk_fail(call, PK_BAD_CALL, -1, "a class cannot be added to");
    if (bad) return bad;
    pk_parallel(call, x->sequences, 4, decode_task, (void *)(uintptr_t)&k);
    return PK_OK;
}

PK_OP(ctc_greedy_decode, {"ctc_greedy_decode.forward(x: f32; blank: int) -> (y: i64, count: i64)",
                          ctc_greedy_decode_forward});
