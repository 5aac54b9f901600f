/* cos_sim: cos = x.y/(|x||y|) for each row, each squared norm held at 1e-8 or above.
 *
 * Gradient: dx = d*(y/(|x||y|) - cos*x/|x|^2); where |x| is held its own change counts for nothing
 * and the second term falls away. */
#include "distributions.cuh"

namespace {
struct rows {
    float *out, *inverse_out; /* cos [rows, 1], inverse [rows, 2]; or the gradient */
    const float *x, *y; /* [rows, size]; a stride is 0 where there is one row */
    const float *cos, *inverse, *dcos;
    int64_t count, size, x_stride, y_stride;
    int mine; /* column of inverse that belongs to x: 0, or 1 when x and y changed places */
    int add, add_inverse;

    PK_DEVICE float least() const { return 1e-8f; }
    PK_DEVICE float dot(const float *a, const float *b, int lane) const {
        float sum = 0.0f;
        for (int64_t i = lane; i < size; i += PK_WARP) sum = fmaf(a[i], b[i], sum);
        return pk_warp_sum(sum);
    }
    PK_DEVICE float inverse_of(float squared) const {
        return 1.0f / sqrtf(squared < least() ? least() : squared);
    }
    /* Element i of row r of the gradient. */
    PK_DEVICE float slope(int64_t r, int64_t i) const {
        const float own = inverse[2 * r + mine], other = inverse[2 * r + 1 - mine];
        const float of_y = dcos[r] * own * other;
        const float of_x = own >= 1.0f / sqrtf(least()) ? 0.0f : dcos[r] * cos[r] * own * own;
        return fmaf(-x[r * x_stride + i], of_x, y[r * y_stride + i] * of_y);
    }
};
/* A warp for each row. */
struct measure {
    rows k;
    PK_DEVICE void at(int64_t r, int64_t, int lane) const {
        const float *x = k.x + r * k.x_stride, *y = k.y + r * k.y_stride;
        const float a = k.inverse_of(k.dot(x, x, lane)), b = k.inverse_of(k.dot(y, y, lane)),
                    xy = k.dot(x, y, lane);
        if (lane != 0) return;
        pk_put(k.out + r, xy * a * b, k.add);
        pk_put(k.inverse_out + 2 * r, a, k.add_inverse);
        pk_put(k.inverse_out + 2 * r + 1, b, k.add_inverse);
    }
};
struct slope_each {
    rows k;
    PK_DEVICE void operator()(int64_t e) const {
        pk_put(k.out + e, k.slope(e / k.size, e % k.size), k.add);
    }
};
/* The gradient of an operand of one row. */
struct slope_sum {
    rows k;
    PK_DEVICE void operator()(int64_t i) const {
        float sum = 0.0f;
        for (int64_t r = 0; r < k.count; r++) sum += k.slope(r, i);
        pk_put(k.out + i, sum, k.add);
    }
};

pk_status shape_of(const pk_call *call, rows *k) {
    const pk_view *x = &call->in[0], *y = &call->in[1];
    if (x->ndim != 2 || y->ndim != 2 || x->dim[1] != y->dim[1] ||
        (y->dim[0] != x->dim[0] && y->dim[0] != 1))
        return pk_fail(call, PK_BAD_SHAPE, -1, "x is [%lld, %lld], y is [%lld, %lld]",
                       (long long)x->dim[0], (long long)x->dim[1], (long long)y->dim[0],
                       (long long)y->dim[1]);
    *k = rows{};
    k->out = pk_f32(&call->out[0]), k->x = pk_f32(x), k->y = pk_f32(y);
    k->count = x->dim[0], k->size = x->dim[1], k->x_stride = x->dim[1];
    k->y_stride = y->dim[0] == x->dim[0] ? y->dim[1] : 0;
    k->add = pk_adds(call, 0);
    return PK_OK;
}

/* x [rows, size], y [rows or 1, size] -> cos [rows, 1], inverse [rows, 2] */
pk_status forward(const pk_call *call) {
    rows k;
    PK_TRY(shape_of(call, &k));
    k.inverse_out = pk_f32(&call->out[1]), k.add_inverse = pk_adds(call, 1);
    return pk_each_place(call, pk_places{k.count, pk_max_i64(1, k.size), 1}, measure{k});
}

/* x, y, cos, inverse, dcos [rows, 1] -> the gradient of x, or of y */
pk_status backward(const pk_call *call, int of_y) {
    rows k;
    PK_TRY(shape_of(call, &k));
    k.cos = pk_f32(&call->in[2]), k.inverse = pk_f32(&call->in[3]), k.dcos = pk_f32(&call->in[4]);
    const int one_row = of_y && call->in[1].dim[0] == 1;
    if (of_y) {
        const float *x = k.x;
        k.x = k.y, k.y = x, k.mine = 1;
        k.x_stride = k.y_stride, k.y_stride = k.size;
    }
    return one_row ? pk_each(call, k.size, slope_sum{k})
                   : pk_each(call, k.count * k.size, slope_each{k});
}
pk_status backward_x(const pk_call *call) { return backward(call, 0); }
pk_status backward_y(const pk_call *call) { return backward(call, 1); }
} /* namespace */

PK_OP(cos_sim, {"cos_sim.forward(x: f32, y: f32) -> (cos: f32, inverse: f32)", forward},
      {"cos_sim.backward_x(x: f32, y: f32, cos: f32, inverse: f32, dcos: f32) -> (dx: f32)",
       backward_x},
      {"cos_sim.backward_y(x: f32, y: f32, cos: f32, inverse: f32, dcos: f32) -> (dy: f32)",
       backward_y});
