/* prelu: y = x above 0, alpha*x elsewhere.  A row of x is cut into as many spans as there are
 * slopes: one for all, one a channel or one an element. */
#include "packed.cuh"
#include "reductions.cuh"

namespace {
const int THREADS = 256;

/* x, dy, out [rows, slopes, span]; alpha, dalpha [slopes] */
struct prelu {
    const float *x, *alpha, *dy;
    float *out;
    int64_t rows, slopes, span;
    int add;
    /* y, or dx where dy is given */
    PK_DEVICE void operator()(int64_t i) const {
        const float v = dy ? dy[i] : x[i];
        pk_put(out + i, x[i] > 0.0f ? v : v * alpha[i / span % slopes], add);
    }
    PK_DEVICE double at(int64_t i) const { return x[i] > 0.0f ? 0.0 : (double)x[i] * dy[i]; }
};

/* A block has a slope. */
struct sum_slope {
    prelu p;
    PK_DEVICE void operator()() const {
        const int64_t a = blockIdx.x, n = p.rows * p.span;
        double sum = 0.0;
        for (int64_t e = threadIdx.x; e < n; e += THREADS)
            sum += p.at((e / p.span * p.slopes + a) * p.span + e % p.span);
        sum = pk_block_sum(sum);
        if (threadIdx.x == 0) pk_put(p.out + a, (float)sum, p.add);
    }
};
struct sum_rows {
    prelu p;
    PK_DEVICE void operator()(int64_t a) const {
        double sum = 0.0;
        for (int64_t r = 0; r < p.rows; r++) sum += p.at(r * p.slopes + a);
        pk_put(p.out + a, (float)sum, p.add);
    }
};

pk_status find(const pk_call *call, const pk_view *alpha, prelu *p) {
    const pk_view *x = &call->in[0];
    const int64_t row = pk_inner(x, 1), slopes = pk_count(alpha);
    if (x->ndim < 2 || (slopes != 1 && slopes != x->dim[1] && slopes != row))
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld slopes, a row of x has %lld elements",
                       (long long)slopes, (long long)row);
    if (row == 0) return pk_fail(call, PK_BAD_SHAPE, -1, "rows without elements");
    p->x = pk_f32(x), p->rows = x->dim[0], p->slopes = slopes, p->span = row / slopes;
    p->out = pk_f32(&call->out[0]), p->add = pk_adds(call, 0);
    return PK_OK;
}

/* x, alpha -> y */
pk_status forward(const pk_call *call) {
    prelu p = {};
    p.alpha = pk_f32(&call->in[1]);
    PK_TRY(find(call, &call->in[1], &p));
    PK_TRY(pk_check_size(call, "y", &call->out[0], pk_count(&call->in[0])));
    return pk_each(call, pk_count(&call->in[0]), p);
}
/* x, alpha, dy -> dx */
pk_status backward_x(const pk_call *call) {
    prelu p = {};
    p.alpha = pk_f32(&call->in[1]), p.dy = pk_f32(&call->in[2]);
    PK_TRY(find(call, &call->in[1], &p));
    PK_TRY(pk_check_size(call, "dy", &call->in[2], pk_count(&call->in[0])));
    PK_TRY(pk_check_size(call, "dx", &call->out[0], pk_count(&call->in[0])));
    return pk_each(call, pk_count(&call->in[0]), p);
}
/* x, dy -> dalpha = sum of dy*x where x is not above 0 */
pk_status backward_alpha(const pk_call *call) {
    prelu p = {};
    p.dy = pk_f32(&call->in[1]);
    PK_TRY(find(call, &call->out[0], &p));
    PK_TRY(pk_check_size(call, "dy", &call->in[1], pk_count(&call->in[0])));
    if (p.slopes == 1)
        return pk_flat_sum<double>(call, p.rows * p.span, p, pk_scaled_result{p.out, 1.0f, p.add});
    if (p.span == 1) return pk_each(call, p.slopes, sum_rows{p});
    return PK_LAUNCH(call, pk_dim((unsigned)p.slopes), pk_dim(THREADS), sum_slope{p});
}
} /* namespace */

PK_OP(prelu, {"prelu.forward(x: f32, alpha: f32) -> (y: f32)", forward},
      {"prelu.backward_x(x: f32, alpha: f32, dy: f32) -> (dx: f32)", backward_x},
      {"prelu.backward_alpha(x: f32, dy: f32) -> (dalpha: f32)", backward_alpha});
