/* cross_entropy: x holds probabilities; loss = -log(x[label]), or -sum(label*log(x)) for soft
 * labels.
 *
 * Infinities are held at +-1e20; where the loss is held there is no slope. */
#include "distributions.cuh"
#include "rows.cuh"

namespace {
/* Infinities are held at +-1e20. */
PK_DEVICE float held_log(float x) {
    const float v = logf(x);
    return v > 1e20f ? 1e20f : v < -1e20f ? -1e20f : v;
}

/* A warp for each row. */
struct loss {
    float *out; /* [rows] */
    const float *x; /* [rows, classes] */
    const int64_t *label; /* hard: [rows] */
    const float *soft; /* soft: [rows, classes] */
    int64_t classes, ignore;
    int add;
    PK_DEVICE void at(int64_t row, int64_t first, int lane) const {
        float value = 0.0f;
        if (soft) {
            float sum = 0.0f;
            for (int64_t i = first + lane; i < first + classes; i += PK_WARP)
                sum = fmaf(soft[i], held_log(x[i]), sum);
            value = -pk_warp_sum(sum);
        } else if (label[row] != ignore) {
            value = -held_log(x[first + label[row]]);
        }
        if (lane == 0) pk_put(out + row, value, add);
    }
};

/* dx = -dloss*label/x, 0 where the logarithm was infinite */
struct slope {
    float *out; /* [rows, classes] */
    const float *x, *dloss; /* dloss [rows] */
    const int64_t *label;
    const float *soft;
    int64_t classes, ignore;
    int add;
    PK_DEVICE void operator()(int64_t i) const {
        const int64_t row = i / classes;
        float v = 0.0f;
        if (soft) {
            if (x[i] != 0.0f) v = -dloss[row] * soft[i] / x[i];
        } else if (label[row] != ignore && i % classes == label[row] && x[i] != 0.0f) {
            v = -(dloss[row] / x[i]);
        }
        pk_put(out + i, v, add);
    }
};

/* Attributes: soft_label, ignore_index. */
pk_status check(const pk_call *call, int64_t *classes, int64_t *rows) {
    const pk_view *x = &call->in[0], *label = &call->in[1];
    const int soft = call->attr[0].i != 0;
    *classes = x->dim[x->ndim - 1], *rows = *classes == 0 ? 0 : pk_count(x) / *classes;
    const int64_t wanted = soft ? pk_count(x) : *rows;
    if (pk_count(label) != wanted || label->dtype != (soft ? PK_F32 : PK_I64))
        return pk_fail(
            call, PK_BAD_SHAPE, -1, "label has %lld elements of type %d, %lld %s are needed",
            (long long)pk_count(label), (int)label->dtype, (long long)wanted, soft ? "f32" : "i64");
    if (soft) return PK_OK;
    return pk_check_index(call, pk_i64(label), *rows, *classes, call->attr[1].i, 1,
                          "label %lld is not one of %lld classes");
}
const int64_t *hard_of(const pk_call *call) {
    return call->attr[0].i ? NULL : pk_i64(&call->in[1]);
}
const float *soft_of(const pk_call *call) { return call->attr[0].i ? pk_f32(&call->in[1]) : NULL; }

/* x [.., classes], label [..] or as x, loss [..]; dloss as loss, dx as x */
pk_status forward(const pk_call *call) {
    int64_t classes, rows;
    PK_TRY(check(call, &classes, &rows));
    return pk_each_place(call, pk_places{rows, classes, 1},
                         loss{pk_f32(&call->out[0]), pk_f32(&call->in[0]), hard_of(call),
                              soft_of(call), classes, call->attr[1].i, pk_adds(call, 0)});
}
pk_status backward_x(const pk_call *call) {
    int64_t classes, rows;
    PK_TRY(check(call, &classes, &rows));
    return pk_each(call, rows * classes,
                   slope{pk_f32(&call->out[0]), pk_f32(&call->in[0]), pk_f32(&call->in[2]),
                         hard_of(call), soft_of(call), classes, call->attr[1].i, pk_adds(call, 0)});
}
} /* namespace */

PK_OP(
    cross_entropy,
    {"cross_entropy.forward(x: f32, label: any; soft_label: bool, ignore_index: int) -> (loss: f32)",
     forward},
    {"cross_entropy.backward_x(x: f32, label: any, dloss: f32; soft_label: bool, ignore_index: int) -> (dx: f32)",
     backward_x});
