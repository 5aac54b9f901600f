/* triplet_margin_loss: max(0, d(a, p) - d(a, n) + margin), d(a, b) = sqrt(sum((a - b + epsilon)^2))
 * over a row. */
#include "distributions.cuh"

namespace {
struct rows {
    float *out; /* loss [rows], or a gradient [rows, size] */
    const float *a, *p, *n, *dloss; /* anchor, positive, negative [rows, size], [rows] */
    int64_t size;
    float margin, epsilon;
    float of_p, of_n; /* what the unit vectors of a - p and a - n count in the gradient */
    int add;
    /* Of a row, by all lanes of its warp. */
    PK_DEVICE float distance(const float *x, const float *y, int lane) const {
        float sum = 0.0f;
        for (int64_t i = lane; i < size; i += PK_WARP) {
            const float d = x[i] - y[i] + epsilon;
            sum = fmaf(d, d, sum);
        }
        return sqrtf(pk_warp_sum(sum));
    }
};
struct loss {
    rows k;
    PK_DEVICE void at(int64_t row, int64_t first, int lane) const {
        const float near = k.distance(k.a + first, k.p + first, lane);
        const float over = near - k.distance(k.a + first, k.n + first, lane) + k.margin;
        if (lane == 0) pk_put(k.out + row, over < 0.0f ? 0.0f : over, k.add);
    }
};
/* Distances of 0 have no direction: they pull nowhere. */
struct slope {
    rows k;
    PK_DEVICE void at(int64_t row, int64_t first, int lane) const {
        const float near = k.distance(k.a + first, k.p + first, lane);
        const float far = k.distance(k.a + first, k.n + first, lane);
        const float d = near - far + k.margin > 0.0f ? k.dloss[row] : 0.0f;
        const float of_p = near > 0.0f ? k.of_p * d / near : 0.0f,
                    of_n = far > 0.0f ? k.of_n * d / far : 0.0f;
        for (int64_t i = first + lane; i < first + k.size; i += PK_WARP) {
            const float p = k.a[i] - k.p[i] + k.epsilon, n = k.a[i] - k.n[i] + k.epsilon;
            pk_put(k.out + i, fmaf(p, of_p, n * of_n), k.add);
        }
    }
};

pk_status find(const pk_call *call, rows *k, int64_t *count) {
    const int64_t n = pk_count(&call->in[0]);
    if (pk_count(&call->in[1]) != n || pk_count(&call->in[2]) != n)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "anchor, positive and negative have %lld, %lld, %lld elements", (long long)n,
                       (long long)pk_count(&call->in[1]), (long long)pk_count(&call->in[2]));
    *count = call->in[0].dim[0];
    *k = rows{pk_f32(&call->out[0]),
              pk_f32(&call->in[0]),
              pk_f32(&call->in[1]),
              pk_f32(&call->in[2]),
              NULL,
              pk_inner(&call->in[0], 1),
              (float)call->attr[0].f,
              (float)call->attr[1].f,
              0,
              0,
              pk_adds(call, 0)};
    return PK_OK;
}

/* anchor, positive, negative [rows, size], loss [rows, 1]; attributes margin, epsilon */
pk_status forward(const pk_call *call) {
    rows k;
    int64_t count;
    PK_TRY(find(call, &k, &count));
    return pk_each_place(call, pk_places{count, pk_max_i64(1, k.size), 1}, loss{k});
}
pk_status back(const pk_call *call, float of_p, float of_n) {
    rows k;
    int64_t count;
    PK_TRY(find(call, &k, &count));
    k.dloss = pk_f32(&call->in[3]), k.of_p = of_p, k.of_n = of_n;
    return pk_each_place(call, pk_places{count, pk_max_i64(1, k.size), 1}, slope{k});
}
pk_status backward_anchor(const pk_call *call) { return back(call, 1, -1); }
pk_status backward_positive(const pk_call *call) { return back(call, -1, 0); }
pk_status backward_negative(const pk_call *call) { return back(call, 0, 1); }
} /* namespace */

#define TRIPLET "anchor: f32, positive: f32, negative: f32"
PK_OP(triplet_margin_loss,
      {"triplet_margin_loss.forward(" TRIPLET "; margin: float, epsilon: float) -> (loss: f32)",
       forward},
      {"triplet_margin_loss.backward_anchor(" TRIPLET
       ", dloss: f32; margin: float, epsilon: float) -> (danchor: f32)",
       backward_anchor},
      {"triplet_margin_loss.backward_positive(" TRIPLET
       ", dloss: f32; margin: float, epsilon: float) -> "
       "(dpositive: f32)",
       backward_positive},
      {"triplet_margin_loss.backward_negative(" TRIPLET
       ", dloss: f32; margin: float, epsilon: float) -> "
       "(dnegative: f32)",
       backward_negative});
