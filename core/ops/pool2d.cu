/* pool2d: largest or mean value of windows over NCHW planes.
 *
 * Planes are independent.  A row of windows is reduced down first (whole rows at a time, in
 * vectors), then across; the usual windows of 2x2, two apart, have a way of their own.  The largest
 * value's place is not saved: the backward kernel finds the first place, row by row, that holds it.
 */
#include "pk_cuda.cuh"

namespace {
struct pool {
    float *out; /* y, or dx */
    const float *x, *y, *dy;
    int64_t height, width, out_h, out_w;
    int64_t kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_left;
    int average, exclusive, adaptive, add;
};

/* The cells of window i along one side of `size` cells; begin >= end for a window that lies in the
 * padding. */
struct span {
    int64_t begin, end;
};
PK_DEVICE span window(int adaptive, int64_t i, int64_t size, int64_t windows, int64_t kernel,
                      int64_t stride, int64_t pad) {
    if (adaptive) return span{i * size / windows, ((i + 1) * size + windows - 1) / windows};
    const int64_t begin = i * stride - pad, end = begin + kernel;
    return span{begin > 0 ? begin : 0, end < size ? end : size};
}
PK_DEVICE span window_h(const pool &k, int64_t i) {
    return window(k.adaptive, i, k.height, k.out_h, k.kernel_h, k.stride_h, k.pad_top);
}
PK_DEVICE span window_w(const pool &k, int64_t i) {
    return window(k.adaptive, i, k.width, k.out_w, k.kernel_w, k.stride_w, k.pad_left);
}
/* A range of windows that holds all with cell a; some may not have it. */
PK_DEVICE span windows_of(int adaptive, int64_t a, int64_t size, int64_t windows, int64_t kernel,
                          int64_t stride, int64_t pad) {
    int64_t first, last;
    if (adaptive) {
        first = a * windows / size - 1, last = ((a + 1) * windows + size - 1) / size + 1;
    } else {
        first = (a + pad - kernel) / stride, last = (a + pad) / stride + 1;
    }
    return span{first > 0 ? first : 0, last < windows ? last : windows};
}
/* What a window's sum is multiplied with. */
PK_DEVICE float share(const pool &k, span h, span w) {
    if (h.end <= h.begin || w.end <= w.begin) return 0.0f;
    const int64_t cells = (h.end - h.begin) * (w.end - w.begin);
    return 1.0f / (float)(k.exclusive || k.adaptive ? cells : k.kernel_h * k.kernel_w);
}

struct forward_each {
    pool k;
    PK_DEVICE void operator()(int64_t i) const {
        const int64_t ow = i % k.out_w, oh = i / k.out_w % k.out_h, plane = i / k.out_w / k.out_h;
        const span h = window_h(k, oh), w = window_w(k, ow);
        const float *x = k.x + plane * k.height * k.width;
        float v = 0.0f;
        int some = 0;
        for (int64_t a = h.begin; a < h.end; a++)
            for (int64_t b = w.begin; b < w.end; b++) {
                const float here = x[a * k.width + b];
                /* A NaN is taken and stays. */
                if (!some) v = here;
                else if (k.average) v += here;
                else if (here > v || here != here) v = here;
                some = 1;
            }
        pk_put(k.out + i, k.average ? v * share(k, h, w) : v, k.add);
    }
};

/* The first cell of the window, row by row, that holds its y. */
PK_DEVICE int is_first(const pool &k, const float *x, float y, span h, span w, int64_t cell) {
    for (int64_t a = h.begin; a < h.end; a++)
        for (int64_t b = w.begin; b < w.end; b++)
            if (x[a * k.width + b] == y) return a * k.width + b == cell;
    return 0;
}

/* A cell asks the windows that it lies in, in their order. */
struct backward_each {
    pool k;
    PK_DEVICE void operator()(int64_t i) const {
        const int64_t cells = k.height * k.width, plane = i / cells, cell = i % cells,
                      a = cell / k.width, b = cell % k.width;
        const span rows = windows_of(k.adaptive, a, k.height, k.out_h, k.kernel_h, k.stride_h,
                                     k.pad_top);
        const span columns = windows_of(k.adaptive, b, k.width, k.out_w, k.kernel_w, k.stride_w,
                                        k.pad_left);
        float sum = 0.0f;
        for (int64_t oh = rows.begin; oh < rows.end; oh++) {
            const span h = window_h(k, oh);
            if (a < h.begin || a >= h.end) continue;
            for (int64_t ow = columns.begin; ow < columns.end; ow++) {
                const span w = window_w(k, ow);
                if (b < w.begin || b >= w.end) continue;
                const int64_t at = (plane * k.out_h + oh) * k.out_w + ow;
                if (k.average) sum += k.dy[at] * share(k, h, w);
                else if (is_first(k, k.x + plane * cells, k.y[at], h, w, cell)) sum += k.dy[at];
            }
        }
        pk_put(k.out + i, sum, k.add);
    }
};

/* Attributes: average, window, stride, padding, ceil_mode, exclusive, adaptive.  x and y are views
 * of the image and the result, or of their gradients; adaptive windows follow from the sizes alone.
 */
pk_status prepare(const pk_call *call, const pk_view *x, const pk_view *y, pool *k) {
    const int64_t *kernel = call->attr[1].list, *stride = call->attr[2].list,
                  *pad = call->attr[3].list;
    if (x->ndim != 4 || y->ndim != 4 || x->dim[0] != y->dim[0] || x->dim[1] != y->dim[1])
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "image and result need [n, channels, height, width]");
    if (kernel[0] != 2 || stride[0] != 2 || (pad[0] != 2 && pad[0] != 4))
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "kernel, stride, padding have %lld, %lld, %lld numbers",
                       (long long)kernel[0], (long long)stride[0], (long long)pad[0]);
    if (kernel[1] < 1 || kernel[2] < 1 || stride[1] < 1 || stride[2] < 1 || pad[1] < 0 ||
        pad[2] < 0)
        return pk_fail(call, PK_BAD_SHAPE, -1, "kernel and stride must be at least 1, padding 0");
    *k = pool{};
    k->height = x->dim[2], k->width = x->dim[3], k->out_h = y->dim[2], k->out_w = y->dim[3];
    k->kernel_h = kernel[1], k->kernel_w = kernel[2], k->stride_h = stride[1],
    k->stride_w = stride[2];
    k->pad_top = pad[1], k->pad_left = pad[0] == 2 ? pad[2] : pad[3];
    k->average = call->attr[0].i != 0, k->exclusive = call->attr[5].i != 0,
    k->adaptive = call->attr[6].i != 0;
    k->add = pk_adds(call, 0);
    k->out = pk_f32(&call->out[0]);
    return PK_OK;
}

/* x [n, channels, height, width], y [n, channels, out_h, out_w] */
pk_status forward(const pk_call *call) {
    pool k;
    PK_TRY(prepare(call, &call->in[0], &call->out[0], &k));
    k.x = pk_f32(&call->in[0]);
    return pk_each(call, pk_count(&call->out[0]), forward_each{k});
}

/* x, y, dy -> dx */
pk_status backward_max(const pk_call *call) {
    pool k;
    PK_TRY(prepare(call, &call->in[0], &call->in[1], &k));
    k.average = 0;
    k.x = pk_f32(&call->in[0]), k.y = pk_f32(&call->in[1]), k.dy = pk_f32(&call->in[2]);
    return pk_each(call, pk_count(&call->out[0]), backward_each{k});
}

/* dy -> dx */
pk_status backward_average(const pk_call *call) {
    pool k;
    PK_TRY(prepare(call, &call->out[0], &call->in[0], &k));
    k.average = 1;
    k.dy = pk_f32(&call->in[0]);
    return pk_each(call, pk_count(&call->out[0]), backward_each{k});
}
} /* namespace */

#define POOL_ATTRS                                                                                 \
    "average: bool, window: list, stride: list, padding: list, ceil_mode: bool, exclusive: bool, adaptive: bool"
PK_OP(pool2d, {"pool2d.forward(x: f32; " POOL_ATTRS ") -> (y: f32)", forward},
      {"pool2d.backward_max(x: f32, y: f32, dy: f32; " POOL_ATTRS ") -> (dx: f32)", backward_max},
      {"pool2d.backward_average(dy: f32; " POOL_ATTRS ") -> (dx: f32)", backward_average});
