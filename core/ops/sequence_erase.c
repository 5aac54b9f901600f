/* sequence_erase: ids without those of a list. */
#include "packed.h"

typedef struct erase {
    int64_t *y, *count; /* [tokens], [sequences] */
    const int64_t *x, *offsets, *ids; /* ids: how many, then they */
} erase;

static int is_erased(const int64_t *ids, int64_t id) {
    for (int64_t i = 1; i <= ids[0]; i++)
        if (ids[i] == id) return 1;
    return 0;
}

static void erase_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const erase *k = context;
    (void)thread, (void)scratch;
    for (int64_t s = begin; s < end; s++) {
        const int64_t first = k->offsets[s], last = k->offsets[s + 1];
        int64_t to = first;
        for (int64_t t = first; t < last; t++)
            if (!is_erased(k->ids, k->x[t])) k->y[to++] = k->x[t];
        k->count[s] = to - first;
        while (to < last) k->y[to++] = -1;
    }
}

static pk_status sequence_erase_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *out = call->out;
    const erase k = {pk_i64(&out[0]), pk_i64(&out[1]), pk_i64(x), x->offsets, call->attr[0].list};
    pk_status bad = pk_check_packed(call, "x", x);
    if (!bad) bad = pk_check_size(call, "x", x, x->dim[0]);
    if (!bad) bad = pk_check_size(call, "y", &out[0], x->dim[0]);
    if (!bad) bad = pk_check_size(call, "count", &out[1], x->sequences);
    if (!bad && call->accumulate) bad = pk_fail(call, PK_BAD_CALL, -1, "an id cannot be added to");
    if (bad) return bad;
    pk_parallel(call, x->sequences, 64, erase_task, (void *)(uintptr_t)&k);
    return PK_OK;
}

PK_OP(sequence_erase, {"sequence_erase.forward(x: i64; ids: list) -> (y: i64, count: i64)",
                       sequence_erase_forward});
