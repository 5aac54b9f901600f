/* pad2d: rows and columns around NCHW planes: a constant, the plane mirrored, or its outer pixels.
 *
 * Planes are independent; backwards a plane's pixels add in the order of the result. */
#include <string.h>

#include "pk_kernel.h"

enum { CONSTANT, REFLECT, EDGE };

typedef struct frame {
    float *out;      /* y, or dx */
    const float *in; /* x, or dy */
    int64_t height, width, out_h, out_w, top, left, mode;
    float value;
    int add;
} frame;

/* The pixel that place i of the padded side shows; -1: none. */
static int64_t shown(int64_t mode, int64_t i, int64_t before, int64_t size) {
    const int64_t at = i - before;
    if (at >= 0 && at < size) return at;
    if (mode == CONSTANT) return -1;
    if (mode == EDGE) return at < 0 ? 0 : size - 1;
    return at < 0 ? -at : 2 * (size - 1) - at;
}

static void put(const frame *k, float *out, float value) { *out = k->add ? *out + value : value; }

/* Columns begin .. end of a row of y that lie beside the row x. */
static void side(const frame *k, float *y, const float *x, int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; j++) {
        const int64_t at = shown(k->mode, j, k->left, k->width);
        put(k, y + j, at < 0 ? k->value : x[at]);
    }
}
/* One row of y from a row of x, NULL: all of it is padding. */
static void row_forward(const frame *k, float *y, const float *x) {
    if (x == NULL) {
        for (int64_t j = 0; j < k->out_w; j++) put(k, y + j, k->value);
        return;
    }
    side(k, y, x, 0, k->left);
    side(k, y, x, k->left + k->width, k->out_w);
    if (k->add)
        for (int64_t j = 0; j < k->width; j++) y[k->left + j] += x[j];
    else
        memcpy(y + k->left, x, (size_t)k->width * sizeof *y);
}

static void forward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const frame *k = context;
    for (int64_t plane = begin; plane < end; plane++)
        for (int64_t i = 0; i < k->out_h; i++) {
            const int64_t at = shown(k->mode, i, k->top, k->height);
            row_forward(k, k->out + (plane * k->out_h + i) * k->out_w,
                        at < 0 ? NULL : k->in + (plane * k->height + at) * k->width);
        }
}

static void backward_task(void *context, int64_t begin, int64_t end, int32_t thread,
                          void *scratch) {
    (void)thread, (void)scratch;
    const frame *k = context;
    const int64_t pixels = k->height * k->width;
    if (!k->add) memset(k->out + begin * pixels, 0, (size_t)((end - begin) * pixels) * 4);
    for (int64_t plane = begin; plane < end; plane++)
        for (int64_t i = 0; i < k->out_h; i++) {
            const int64_t row = shown(k->mode, i, k->top, k->height);
            if (row < 0) continue;
            float *dx = k->out + plane * pixels + row * k->width;
            const float *dy = k->in + (plane * k->out_h + i) * k->out_w;
            for (int64_t j = 0; j < k->out_w; j++) {
                const int64_t at = shown(k->mode, j, k->left, k->width);
                if (at >= 0) dx[at] += dy[j];
            }
        }
}

/* Attributes padding, mode and, forwards, value.  x and y are views of the image and the result, or
 * of their gradients. */
static pk_status run(const pk_call *call, const pk_view *x, const pk_view *y, int back) {
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
    frame k = {.out = pk_f32(&call->out[0]), .in = pk_f32(&call->in[0]), .height = height,
               .width = width, .out_h = y->dim[2], .out_w = y->dim[3], .top = top, .left = left,
               .mode = mode, .value = back ? 0.0f : (float)call->attr[2].f,
               .add = pk_adds(call, 0)};
    pk_parallel(call, x->dim[0] * x->dim[1], pk_max_i64(1, 16384 / (k.out_h * k.out_w)),
                back ? backward_task : forward_task, &k);
    return PK_OK;
}

/* x [n, channels, height, width] -> y [n, channels, out_h, out_w] */
static pk_status forward(const pk_call *call) { return run(call, &call->in[0], &call->out[0], 0); }
/* dy -> dx */
static pk_status backward(const pk_call *call) { return run(call, &call->out[0], &call->in[0], 1); }

PK_OP(pad2d, {"pad2d.forward(x: f32; padding: list, mode: int, value: float) -> (y: f32)", forward},
      {"pad2d.backward(dy: f32; padding: list, mode: int) -> (dx: f32)", backward});
