/* log_softmax: y = x - max - log(sum(exp(x - max))) along the class axis. */
#include "distributions.cuh"

namespace {
struct logs {
    pk_places s = {};
    float *out;
    const float *x;
    int add;
    PK_DEVICE void at(int64_t, int64_t first, int lane) const {
        const float *from = x + first, most = pk_place_max(s, from, lane);
        const float l = logf(pk_place_exp_sum(s, from, most, -1, lane));
        PK_EACH_CLASS(c, s, lane)
        pk_put(out + first + c * s.inner, from[c * s.inner] - most - l, add);
    }
};

/* dx = dy - exp(y)*sum(dy) */
struct back {
    pk_places s = {};
    float *dx;
    const float *y, *dy;
    int add;
    PK_DEVICE void at(int64_t, int64_t first, int lane) const {
        float sum = 0.0f;
        PK_EACH_CLASS(c, s, lane) sum += dy[first + c * s.inner];
        sum = pk_warp_sum(sum);
        PK_EACH_CLASS(c, s, lane) {
            const int64_t e = first + c * s.inner;
            pk_put(dx + e, fmaf(-expf(y[e]), sum, dy[e]), add);
        }
    }
};

/* x, y, dy, dx: any equal shape */
pk_status forward(const pk_call *call) {
    pk_places s = {};
    PK_TRY(pk_places_of(call, &call->in[0], call->attr[0].i, &s));
    return pk_each_place(call, s,
                         logs{s, pk_f32(&call->out[0]), pk_f32(&call->in[0]), pk_adds(call, 0)});
}
pk_status backward(const pk_call *call) {
    pk_places s = {};
    PK_TRY(pk_places_of(call, &call->in[0], call->attr[0].i, &s));
    return pk_each_place(call, s,
                         back{s, pk_f32(&call->out[0]), pk_f32(&call->in[0]), pk_f32(&call->in[1]),
                              pk_adds(call, 0)});
}
} /* namespace */

PK_OP(log_softmax, {"log_softmax.forward(x: f32; axis: int) -> (y: f32)", forward},
      {"log_softmax.backward(y: f32, dy: f32; axis: int) -> (dx: f32)", backward});
