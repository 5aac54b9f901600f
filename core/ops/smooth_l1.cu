/* smooth_l1: per row the sum of 0.5*sigma^2*d^2 where |d| < 1/sigma^2, else |d| - 0.5/sigma^2, with
 * d = x - label. */
#include "distributions.cuh"

namespace {
/* A warp for each row. */
struct loss {
    float *out; /* [rows] */
    const float *x, *label; /* [rows, size] */
    int64_t size;
    float square; /* sigma^2 */
    int add;
    PK_DEVICE void at(int64_t row, int64_t first, int lane) const {
        float sum = 0.0f;
        for (int64_t i = first + lane; i < first + size; i += PK_WARP) {
            const float a = fabsf(x[i] - label[i]);
            sum += a >= 1.0f / square ? a - 0.5f / square : 0.5f * square * a * a;
        }
        sum = pk_warp_sum(sum);
        if (lane == 0) pk_put(out + row, sum, add);
    }
};
struct slope {
    float *out; /* [rows, size] */
    const float *x, *label, *dloss; /* dloss [rows] */
    int64_t size;
    float square, sign; /* sign: 1 for dx, -1 for dlabel */
    int add;
    PK_DEVICE void operator()(int64_t i) const {
        const float gap = square * (x[i] - label[i]);
        pk_put(out + i,
               (gap < -1.0f  ? -1.0f
                : gap > 1.0f ? 1.0f
                             : gap) *
                   (sign * dloss[i / size]),
               add);
    }
};

pk_status check(const pk_call *call) {
    const pk_view *x = &call->in[0], *label = &call->in[1];
    if (pk_count(x) == pk_count(label)) return PK_OK;
    return pk_fail(call, PK_BAD_SHAPE, -1, "x has %lld elements, label %lld",
                   (long long)pk_count(x), (long long)pk_count(label));
}
float square(const pk_call *call) { return (float)call->attr[0].f * (float)call->attr[0].f; }

/* x, label [rows, ..], loss [rows, 1]; dloss as loss, dx and dlabel as x */
pk_status forward(const pk_call *call) {
    const pk_view *x = &call->in[0];
    const int64_t size = pk_inner(x, 1);
    PK_TRY(check(call));
    return pk_each_place(call, pk_places{x->dim[0], pk_max_i64(1, size), 1},
                         loss{pk_f32(&call->out[0]), pk_f32(x), pk_f32(&call->in[1]), size,
                              square(call), pk_adds(call, 0)});
}
pk_status back(const pk_call *call, float sign) {
    const pk_view *x = &call->in[0];
    PK_TRY(check(call));
    return pk_each(call, pk_count(x),
                   slope{pk_f32(&call->out[0]), pk_f32(x), pk_f32(&call->in[1]),
                         pk_f32(&call->in[2]), pk_inner(x, 1), square(call), sign,
                         pk_adds(call, 0)});
}
pk_status backward_x(const pk_call *call) { return back(call, 1.0f); }
pk_status backward_label(const pk_call *call) { return back(call, -1.0f); }
} /* namespace */

PK_OP(smooth_l1, {"smooth_l1.forward(x: f32, label: f32; sigma: float) -> (loss: f32)", forward},
      {"smooth_l1.backward_x(x: f32, label: f32, dloss: f32; sigma: float) -> (dx: f32)",
       backward_x},
      {"smooth_l1.backward_label(x: f32, label: f32, dloss: f32; sigma: float) -> (dlabel: f32)",
       backward_label});
