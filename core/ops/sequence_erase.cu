/* sequence_erase: ids without those of a list. */
#include "packed.cuh"

namespace {
const int MOST_IDS = 32;

struct erase_sequence {
    int64_t *y, *count; /* [tokens], [sequences] */
    const int64_t *x, *offsets;
    int64_t ids, id[MOST_IDS];
    PK_DEVICE int is_erased(int64_t wanted) const {
        for (int64_t i = 0; i < ids; i++)
            if (id[i] == wanted) return 1;
        return 0;
    }
    PK_DEVICE void operator()(int64_t s) const {
        int64_t to = offsets[s];
        for (int64_t t = offsets[s]; t < offsets[s + 1]; t++)
            if (!is_erased(x[t])) y[to++] = x[t];
        count[s] = to - offsets[s];
        while (to < offsets[s + 1]) y[to++] = -1;
    }
};

pk_status sequence_erase_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *out = call->out;
    const int64_t *list = call->attr[0].list;
    PK_TRY(pk_check_packed(call, "x", x));
    PK_TRY(pk_check_size(call, "x", x, x->dim[0]));
    PK_TRY(pk_check_size(call, "y", &out[0], x->dim[0]));
    PK_TRY(pk_check_size(call, "count", &out[1], x->sequences));
    if (call->accumulate || list[0] > MOST_IDS)
        return pk_fail(call, PK_BAD_CALL, -1, "an id cannot be added to, %lld ids are erased",
                       (long long)list[0]);
    erase_sequence k = {pk_i64(&out[0]), pk_i64(&out[1]), pk_i64(x), x->offsets, list[0], {}};
    for (int64_t i = 0; i < list[0]; i++) k.id[i] = list[i + 1];
    return pk_each(call, x->sequences, k);
}
} /* namespace */

PK_OP(sequence_erase, {"sequence_erase.forward(x: i64; ids: list) -> (y: i64, count: i64)",
                       sequence_erase_forward});
