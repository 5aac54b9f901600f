/* softmax: y = exp(x - max) / sum, x - max held above -64 so that no probability becomes 0 (its
 * logarithm stays finite). */
#include "distributions.cuh"

namespace {
/* Held so that no probability becomes 0. */
PK_DEVICE float power(float x, float most) {
    const float d = x - most;
    return expf(d < -64.0f ? -64.0f : d);
}

struct share {
    pk_places s = {};
    float *out;
    const float *x;
    int add;
    PK_DEVICE void at(int64_t, int64_t first, int lane) const {
        const float *from = x + first, most = pk_place_max(s, from, lane);
        float sum = 0.0f;
        PK_EACH_CLASS(c, s, lane) sum += power(from[c * s.inner], most);
        const float part = 1.0f / pk_warp_sum(sum);
        PK_EACH_CLASS(c, s, lane)
        pk_put(out + first + c * s.inner, power(from[c * s.inner], most) * part, add);
    }
};

/* dx = y*(dy - sum(y*dy)) along the classes */
struct back {
    pk_places s = {};
    float *dx;
    const float *y, *dy;
    int add;
    PK_DEVICE void at(int64_t, int64_t first, int lane) const {
        float dot = 0.0f;
        PK_EACH_CLASS(c, s, lane) dot = fmaf(y[first + c * s.inner], dy[first + c * s.inner], dot);
        dot = pk_warp_sum(dot);
        PK_EACH_CLASS(c, s, lane) {
            const int64_t e = first + c * s.inner;
            pk_put(dx + e, y[e] * (dy[e] - dot), add);
        }
    }
};

/* x, y, dy, dx: any equal shape */
pk_status forward(const pk_call *call) {
    pk_places s = {};
    PK_TRY(pk_places_of(call, &call->in[0], call->attr[0].i, &s));
    return pk_each_place(call, s,
                         share{s, pk_f32(&call->out[0]), pk_f32(&call->in[0]), pk_adds(call, 0)});
}
pk_status backward(const pk_call *call) {
    pk_places s = {};
    PK_TRY(pk_places_of(call, &call->in[0], call->attr[0].i, &s));
    return pk_each_place(call, s,
                         back{s, pk_f32(&call->out[0]), pk_f32(&call->in[0]), pk_f32(&call->in[1]),
                              pk_adds(call, 0)});
}
} /* namespace */

PK_OP(softmax, {"softmax.forward(x: f32; axis: int) -> (y: f32)", forward},
      {"softmax.backward(y: f32, dy: f32; axis: int) -> (dx: f32)", backward});
