/* interpolate: NCHW planes in another size, by the nearest pixel or bilinearly.
 *
 * Where a pixel of the result lies in the image is a fraction of whole numbers, so the places are
 * exact at any size.  Backwards a pixel of the image asks the pixels of the result that may take a
 * share of it, in their order. */
#include "pk_cuda.cuh"

namespace {
/* Pixel i lies at max(0, factor*i + first) / den. */
struct line {
    int64_t size, out; /* pixels of the image and of the result */
    int64_t factor, first, den;
};
/* The pixel there, the one behind it, and the latter's share. */
struct place {
    int64_t low, high;
    float share;
};

line line_of(int64_t size, int64_t out, int linear, int corners, int64_t mode) {
    line l = {size, out, size, 0, out};
    if (corners) {
        l.factor = size - 1, l.den = pk_max_i64(1, out - 1);
        if (!linear) l.factor *= 2, l.first = l.den, l.den *= 2; /* rounded, not cut */
    } else if (linear && mode == 0) {
        l.factor = 2 * size, l.first = size - out, l.den = 2 * out;
    }
    return l;
}

PK_DEVICE place place_of(const line &l, int64_t i) {
    const int64_t here = l.factor * i + l.first, at = here > 0 ? here : 0, low = at / l.den;
    return place{low, low + 1 < l.size ? low + 1 : l.size - 1,
                 (float)((double)(at % l.den) / (double)l.den)};
}

struct resize {
    float *out; /* y, or dx */
    const float *in; /* x, or dy */
    line h, w;
    int linear, add;
};

struct forward_each {
    resize k;
    PK_DEVICE void operator()(int64_t i) const {
        const int64_t results = k.h.out * k.w.out;
        const float *x = k.in + i / results * (k.h.size * k.w.size);
        const place h = place_of(k.h, i / k.w.out % k.h.out), w = place_of(k.w, i % k.w.out);
        const float *top = x + h.low * k.w.size, *bottom = x + h.high * k.w.size;
        float v = top[w.low];
        if (k.linear) {
            const float left = top[w.low] * (1.0f - h.share) + bottom[w.low] * h.share;
            const float right = top[w.high] * (1.0f - h.share) + bottom[w.high] * h.share;
            v = left * (1.0f - w.share) + right * w.share;
        }
        pk_put(k.out + i, v, k.add);
    }
};

/* First pixel of the result whose place is at or behind pixel a; `out` if there is none. */
PK_DEVICE int64_t first_at(const line &l, int64_t a) {
    if (l.factor == 0) return l.first >= a * l.den ? 0 : l.out;
    const int64_t above = a * l.den - l.first;
    const int64_t i = above <= 0 ? 0 : (above + l.factor - 1) / l.factor;
    return i < l.out ? i : l.out;
}
/* What pixel a gives to a place. */
PK_DEVICE float share_of(int linear, const place &p, int64_t a) {
    if (!linear) return p.low == a ? 1.0f : 0.0f;
    return (p.low == a ? 1.0f - p.share : 0.0f) + (p.high == a ? p.share : 0.0f);
}

struct backward_each {
    resize k;
    PK_DEVICE void operator()(int64_t i) const {
        const int64_t pixels = k.h.size * k.w.size, a = i % pixels / k.w.size, b = i % k.w.size;
        const float *dy = k.in + i / pixels * (k.h.out * k.w.out);
        /* Pixel 0 also takes the places that were cut to it, which lie before it. */
        const int64_t above = a ? first_at(k.h, a - k.linear) : 0, below = first_at(k.h, a + 1);
        const int64_t left = b ? first_at(k.w, b - k.linear) : 0, right = first_at(k.w, b + 1);
        float sum = 0.0f;
        for (int64_t h = above; h < below; h++) {
            const float share = share_of(k.linear, place_of(k.h, h), a);
            for (int64_t w = left; w < right; w++)
                sum += dy[h * k.w.out + w] * share * share_of(k.linear, place_of(k.w, w), b);
        }
        pk_put(k.out + i, sum, k.add);
    }
};

/* Attributes size, linear, align_corners, align_mode.  x and y are views of the image and the
 * result, or of their gradients. */
pk_status prepare(const pk_call *call, const pk_view *x, const pk_view *y, resize *k) {
    const int64_t *size = call->attr[0].list, mode = call->attr[3].i;
    const int linear = call->attr[1].i != 0, corners = call->attr[2].i != 0;
    const int64_t most = 1 << 24; /* so that no product of sizes overflows */
    if (x->ndim != 4 || y->ndim != 4 || x->dim[0] != y->dim[0] || x->dim[1] != y->dim[1])
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "image and result need [n, channels, height, width]");
    if (size[0] != 2 || size[1] != y->dim[2] || size[2] != y->dim[3] || (mode != 0 && mode != 1))
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "size has %lld numbers, y is %lldx%lld, align_mode %lld",
                       (long long)size[0], (long long)y->dim[2], (long long)y->dim[3],
                       (long long)mode);
    for (int d = 2; d < 4; d++)
        if (x->dim[d] < 1 || y->dim[d] < 1 || x->dim[d] > most || y->dim[d] > most)
            return pk_fail(call, PK_BAD_SHAPE, -1, "%lld pixels to %lld", (long long)x->dim[d],
                           (long long)y->dim[d]);
    *k = resize{pk_f32(&call->out[0]),
                pk_f32(&call->in[0]),
                line_of(x->dim[2], y->dim[2], linear, corners, mode),
                line_of(x->dim[3], y->dim[3], linear, corners, mode),
                linear,
                pk_adds(call, 0)};
    return PK_OK;
}

/* x [n, channels, height, width] -> y [n, channels, out_h, out_w] */
pk_status forward(const pk_call *call) {
    resize k;
    PK_TRY(prepare(call, &call->in[0], &call->out[0], &k));
    return pk_each(call, pk_count(&call->out[0]), forward_each{k});
}
/* dy -> dx */
pk_status backward(const pk_call *call) {
    resize k;
    PK_TRY(prepare(call, &call->out[0], &call->in[0], &k));
    return pk_each(call, pk_count(&call->out[0]), backward_each{k});
}
} /* namespace */

#define ATTRS "size: list, linear: bool, align_corners: bool, align_mode: int"
PK_OP(interpolate, {"interpolate.forward(x: f32; " ATTRS ") -> (y: f32)", forward},
      {"interpolate.backward(dy: f32; " ATTRS ") -> (dx: f32)", backward});
