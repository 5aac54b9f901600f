/* pad2d: rows and columns around NCHW planes: a constant, the plane mirrored, or its outer pixels.
 *
 * Backwards a pixel of the image adds up the places that show it, in their order. */
#include "pk_cuda.cuh"

namespace {
enum { CONSTANT, REFLECT, EDGE };

struct frame {
    float *out; /* y, or dx */
    const float *in; /* x, or dy */
    int64_t height, width, out_h, out_w, top, left, mode;
    float value;
    int add;
};

/* The pixel that place i of the padded side shows; -1: none. */
PK_DEVICE int64_t shown(int64_t mode, int64_t i, int64_t before, int64_t size) {
    const int64_t at = i - before;
    if (at >= 0 && at < size) return at;
    if (mode == CONSTANT) return -1;
    if (mode == EDGE) return at < 0 ? 0 : size - 1;
    return at < 0 ? -at : 2 * (size - 1) - at;
}

struct forward_each {
    frame k;
    PK_DEVICE void operator()(int64_t i) const {
        const int64_t plane = i / k.out_w / k.out_h;
        const int64_t h = shown(k.mode, i / k.out_w % k.out_h, k.top, k.height);
        const int64_t w = shown(k.mode, i % k.out_w, k.left, k.width);
        const int64_t at = (plane * k.height + h) * k.width + w;
        pk_put(k.out + i, h < 0 || w < 0 ? k.value : k.in[at], k.add);
    }
};

/* The places of a side that show pixel a: its own, and those around it where the side repeats it
 * (begin .. end), and its mirror images (-1: none) before and behind them. */
struct places {
    int64_t begin, end, before, behind;
    PK_DEVICE int64_t count() const { return end - begin + (before >= 0) + (behind >= 0); }
    PK_DEVICE int64_t at(int64_t i) const {
        const int64_t from = begin + i - (before >= 0);
        return i == 0 && before >= 0 ? before : from < end ? from : behind;
    }
};
PK_DEVICE places places_of(int64_t mode, int64_t a, int64_t before, int64_t size, int64_t out) {
    places p = {before + a, before + a + 1, -1, -1};
    if (mode == EDGE && a == 0) p.begin = 0;
    if (mode == EDGE && a == size - 1) p.end = out;
    if (mode == REFLECT && a > 0 && a <= before) p.before = before - a;
    const int64_t behind = before + 2 * (size - 1) - a;
    if (mode == REFLECT && a < size - 1 && behind < out) p.behind = behind;
    return p;
}

struct backward_each {
    frame k;
    PK_DEVICE void operator()(int64_t i) const {
        const int64_t plane = i / k.width / k.height;
        const places h = places_of(k.mode, i / k.width % k.height, k.top, k.height, k.out_h);
        const places w = places_of(k.mode, i % k.width, k.left, k.width, k.out_w);
        float sum = 0.0f;
        for (int64_t a = 0; a < h.count(); a++)
            for (int64_t b = 0; b < w.count(); b++)
                sum += k.in[(plane * k.out_h + h.at(a)) * k.out_w + w.at(b)];
        pk_put(k.out + i, sum, k.add);
    }
};

/* Attributes padding, mode and, forwards, value.  x and y are views of the image and the result, or
 * of their gradients. */
pk_status prepare(const pk_call *call, const pk_view *x, const pk_view *y, int back, frame *k) {
    const int64_t *pad = call->attr[0].list, mode = call->attr[1].i;
    if (x->ndim != 4 || y->ndim != 4 || x->dim[0] != y->dim[0] || x->dim[1] != y->dim[1])
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "image and result need [n, channels, height, width]");
    if ((pad[0] != 2 && pad[0] != 4) || mode < CONSTANT || mode > EDGE)
        return pk_fail(call, PK_BAD_SHAPE, -1, "padding has %lld numbers, mode is %lld",
                       (long long)pad[0], (long long)mode);
    const int64_t top = pad[1], bottom = pad[0] == 2 ? pad[1] : pad[2];
    const int64_t left = pad[0] == 2 ? pad[2] : pad[3], right = pad[0] == 2 ? pad[2] : pad[4];
    const int64_t height = x->dim[2], width = x->dim[3];
    if (top < 0 || bottom < 0 || left < 0 || right < 0 || height < 1 || width < 1 ||
        pk_max_i64(top, bottom) > y->dim[2] || pk_max_i64(left, right) > y->dim[3] ||
        y->dim[2] != top + height + bottom || y->dim[3] != left + width + right)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "paddings %lld, %lld, %lld, %lld of %lldx%lld, y is %lldx%lld",
                       (long long)top, (long long)bottom, (long long)left, (long long)right,
                       (long long)height, (long long)width, (long long)y->dim[2],
                       (long long)y->dim[3]);
    if (mode == REFLECT && (pk_max_i64(top, bottom) >= height || pk_max_i64(left, right) >= width))
        return pk_fail(call, PK_BAD_SHAPE, -1, "paddings are larger than what %lldx%lld can mirror",
                       (long long)height, (long long)width);
    *k = frame{pk_f32(&call->out[0]),
               pk_f32(&call->in[0]),
               height,
               width,
               y->dim[2],
               y->dim[3],
               top,
               left,
               mode,
               back ? 0.0f : (float)call->attr[2].f,
               pk_adds(call, 0)};
    return PK_OK;
}

/* x [n, channels, height, width] -> y [n, channels, out_h, out_w] */
pk_status forward(const pk_call *call) {
    frame k;
    PK_TRY(prepare(call, &call->in[0], &call->out[0], 0, &k));
    return pk_each(call, pk_count(&call->out[0]), forward_each{k});
}
/* dy -> dx */
pk_status backward(const pk_call *call) {
    frame k;
    PK_TRY(prepare(call, &call->out[0], &call->in[0], 1, &k));
    return pk_each(call, pk_count(&call->out[0]), backward_each{k});
}
} /* namespace */

PK_OP(pad2d, {"pad2d.forward(x: f32; padding: list, mode: int, value: float) -> (y: f32)", forward},
      {"pad2d.backward(dy: f32; padding: list, mode: int) -> (dx: f32)", backward});
