/* repeat_rows: the row of each sequence repeated for its tokens, and the sum over the tokens. */
#include "sort.cuh"

namespace {
/* rows [sequences, width], tokens [offsets[sequences], width] */
pk_status check(const pk_call *call, const pk_view *rows, const pk_view *tokens,
                const pk_view *of) {
    if (!of->offsets) return pk_fail(call, PK_BAD_SHAPE, -1, "the tokens come without offsets");
    if (rows->dim[0] != of->sequences || pk_inner(tokens, 1) != pk_inner(rows, 1) ||
        of->dim[0] != tokens->dim[0])
        return pk_fail(
            call, PK_BAD_SHAPE, -1, "%lld rows of %lld for %lld sequences with %lld tokens of %lld",
            (long long)rows->dim[0], (long long)pk_inner(rows, 1), (long long)of->sequences,
            (long long)tokens->dim[0], (long long)pk_inner(tokens, 1));
    return PK_OK;
}

struct repeat {
    float *y;
    const float *x;
    const int64_t *offsets;
    int64_t sequences, width;
    int add;
    PK_DEVICE void operator()(int64_t e) const {
        pk_put(y + e, x[pk_sequence_of(offsets, sequences, e / width) * width + e % width], add);
    }
};
struct add_tokens {
    float *dx;
    const float *dy;
    const int64_t *offsets;
    int64_t width;
    int add;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t s = e / width;
        float sum = 0.0f;
        for (int64_t t = offsets[s]; t < offsets[s + 1]; t++) sum += dy[t * width + e % width];
        pk_put(dx + e, sum, add);
    }
};

pk_status repeat_rows_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *like = &call->in[1], *y = &call->out[0];
    PK_TRY(check(call, x, y, like));
    return pk_each(call, pk_count(y),
                   repeat{pk_f32(y), pk_f32(x), like->offsets, like->sequences, pk_inner(x, 1),
                          pk_adds(call, 0)});
}
pk_status repeat_rows_backward(const pk_call *call) {
    const pk_view *dy = &call->in[0], *dx = &call->out[0];
    PK_TRY(check(call, dx, dy, dy));
    return pk_each(
        call, pk_count(dx),
        add_tokens{pk_f32(dx), pk_f32(dy), dy->offsets, pk_inner(dx, 1), pk_adds(call, 0)});
}
} /* namespace */

PK_OP(repeat_rows, {"repeat_rows.forward(x: f32, like: any) -> (y: f32)", repeat_rows_forward},
      {"repeat_rows.backward(dy: f32) -> (dx: f32)", repeat_rows_backward});
