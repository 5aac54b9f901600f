/* sequence_expand: whole sequences repeated, and the sum over the copies. */
#include "packed.cuh"

namespace {
/* offsets of x, like and y; y has a sequence for each row of like */
struct expand {
    const int64_t *own, *like, *copies;
    const float *in;
    float *out;
    int64_t sequences, rows, width; /* of x; of like */
    int add;
};

struct copy_each {
    expand k;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t t = e / k.width, r = pk_sequence_of(k.copies, k.rows, t),
                      s = pk_sequence_of(k.like, k.sequences, r);
        pk_put(k.out + e, k.in[(k.own[s] + t - k.copies[r]) * k.width + e % k.width], k.add);
    }
};
struct sum_each {
    expand k;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t t = e / k.width, s = pk_sequence_of(k.own, k.sequences, t);
        float sum = 0.0f;
        for (int64_t r = k.like[s]; r < k.like[s + 1]; r++)
            sum += k.in[(k.copies[r] + t - k.own[s]) * k.width + e % k.width];
        pk_put(k.out + e, sum, k.add);
    }
};

pk_status find(const pk_call *call, const pk_view *x, const pk_view *like, const pk_view *y,
               expand *e) {
    *e = expand{x->offsets, like->offsets, y->offsets, pk_f32(&call->in[0]), pk_f32(&call->out[0]),
                x->sequences, like->dim[0], pk_inner(x, 1), pk_adds(call, 0)};
    PK_TRY(pk_check_packed(call, "x", x));
    PK_TRY(pk_check_packed(call, "like", like));
    PK_TRY(pk_check_packed(call, "y", y));
    if (x->sequences != like->sequences || y->sequences != like->dim[0] ||
        pk_inner(y, 1) != e->width)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "%lld sequences of width %lld for %lld with %lld rows, %lld of width %lld",
                       (long long)x->sequences, (long long)e->width, (long long)like->sequences,
                       (long long)like->dim[0], (long long)y->sequences, (long long)pk_inner(y, 1));
    return PK_OK;
}

pk_status sequence_expand_forward(const pk_call *call) {
    expand e;
    PK_TRY(find(call, &call->in[0], &call->in[1], &call->out[0], &e));
    return pk_each(call, pk_count(&call->out[0]), copy_each{e});
}
pk_status sequence_expand_backward(const pk_call *call) {
    expand e;
    PK_TRY(find(call, &call->out[0], &call->in[1], &call->in[0], &e));
    return pk_each(call, pk_count(&call->out[0]), sum_each{e});
}
} /* namespace */

PK_OP(sequence_expand,
      {"sequence_expand.forward(x: f32, like: any) -> (y: f32)", sequence_expand_forward},
      {"sequence_expand.backward(dy: f32, like: any) -> (dx: f32)", sequence_expand_backward});
