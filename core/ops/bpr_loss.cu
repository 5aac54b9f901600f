/* bpr_loss: mean over the classes j other than the label of log(1 + exp(x[j] - x[label])). */
#include "distributions.cuh"
#include "elementwise.cuh"
#include "rows.cuh"

namespace {
/* A warp for each row. */
struct loss {
    float *out; /* [rows] */
    const float *x; /* [rows, classes] */
    const int64_t *label; /* [rows] */
    int64_t classes;
    int add;
    PK_DEVICE void at(int64_t row, int64_t first, int lane) const {
        const float *from = x + first, own = from[label[row]];
        float sum = 0.0f;
        for (int64_t c = lane; c < classes; c += PK_WARP)
            if (c != label[row]) sum += pk_softplus(from[c] - own);
        sum = pk_warp_sum(sum);
        if (lane == 0) pk_put(out + row, sum / (float)(classes - 1), add);
    }
};
/* dx[j] = d*sigmoid(x[j] - x[label]) for the others, their negative sum for the label; d = dloss /
 * (classes - 1) */
struct slope {
    float *dx;
    const float *x, *dloss;
    const int64_t *label;
    int64_t classes;
    int add;
    PK_DEVICE void at(int64_t row, int64_t first, int lane) const {
        const float *from = x + first, own = from[label[row]],
                    d = dloss[row] / (float)(classes - 1);
        float sum = 0.0f;
        for (int64_t c = lane; c < classes; c += PK_WARP) {
            if (c == label[row]) continue;
            const float v = d * pk_sigmoid(from[c] - own);
            sum += v;
            pk_put(dx + first + c, v, add);
        }
        sum = pk_warp_sum(sum);
        if (lane == 0) pk_put(dx + first + label[row], -sum, add);
    }
};

pk_status check(const pk_call *call, int64_t *classes, int64_t *rows) {
    const pk_view *x = &call->in[0], *label = &call->in[1];
    *classes = x->dim[x->ndim - 1], *rows = pk_count(label);
    if (*classes < 2 || pk_count(x) != *rows * *classes)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld labels, %lld scores of %lld classes",
                       (long long)*rows, (long long)pk_count(x), (long long)*classes);
    return pk_check_index(call, pk_i64(label), *rows, *classes, INT64_MIN, 1,
                          "label %lld is not one of %lld classes");
}

/* x [.., classes], label [..], loss [..]; dloss as loss, dx as x */
pk_status forward(const pk_call *call) {
    int64_t classes, rows;
    PK_TRY(check(call, &classes, &rows));
    return pk_each_place(call, pk_places{rows, classes, 1},
                         loss{pk_f32(&call->out[0]), pk_f32(&call->in[0]), pk_i64(&call->in[1]),
                              classes, pk_adds(call, 0)});
}
pk_status backward_x(const pk_call *call) {
    int64_t classes, rows;
    PK_TRY(check(call, &classes, &rows));
    return pk_each_place(call, pk_places{rows, classes, 1},
                         slope{pk_f32(&call->out[0]), pk_f32(&call->in[0]), pk_f32(&call->in[2]),
                               pk_i64(&call->in[1]), classes, pk_adds(call, 0)});
}
} /* namespace */

PK_OP(bpr_loss, {"bpr_loss.forward(x: f32, label: i64) -> (loss: f32)", forward},
      {"bpr_loss.backward_x(x: f32, label: i64, dloss: f32) -> (dx: f32)", backward_x});
