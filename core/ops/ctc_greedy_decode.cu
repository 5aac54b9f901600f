/* ctc_greedy_decode: each frame's best class, repeats and blanks taken out. */
#include "packed.cuh"

namespace {
struct decode_sequence {
    int64_t *y, *count; /* [frames], [sequences] */
    const float *x; /* [frames, classes] */
    const int64_t *offsets;
    int64_t classes, blank;
    PK_DEVICE void operator()(int64_t s) const {
        int64_t to = offsets[s], before = -1;
        for (int64_t t = offsets[s]; t < offsets[s + 1]; t++) {
            const float *row = x + t * classes;
            int64_t best = 0;
            for (int64_t c = 1; c < classes; c++)
                if (row[c] > row[best]) best = c;
            if (best != before && best != blank) y[to++] = best;
            before = best;
        }
        count[s] = to - offsets[s];
        while (to < offsets[s + 1]) y[to++] = -1;
    }
};

pk_status ctc_greedy_decode_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *out = call->out;
    PK_TRY(pk_check_packed(call, "x", x));
    PK_TRY(pk_check_size(call, "y", &out[0], x->dim[0]));
    PK_TRY(pk_check_size(call, "count", &out[1], x->sequences));
    if (call->accumulate) return pk_fail(call, PK_BAD_CALL, -1, "a class cannot be added to");
    return pk_each(call, x->sequences,
                   decode_sequence{pk_i64(&out[0]), pk_i64(&out[1]), pk_f32(x), x->offsets,
                                   pk_inner(x, 1), call->attr[0].i});
}
} /* namespace */

PK_OP(ctc_greedy_decode, {"ctc_greedy_decode.forward(x: f32; blank: int) -> (y: i64, count: i64)",
                          ctc_greedy_decode_forward});
