/* softmax: y = exp(x - max) / sum, x - max held above -64 so that no probability becomes 0 (its logarithm stays finite). */
#include "softmax_rows.h"

typedef struct task_data {
    float *out;              /* y, or dx: [outer, classes, inner] */
    const float *a, *b;      /* x; or y and dy */
    rows_shape shape;
    int add;
} task_data;

PK_INLINE pk_vec power(pk_vec x, pk_vec most) { return pk_exp(pk_max(pk_set1(-64.0f), pk_sub(x, most))); }

/* out [classes], x [classes]: exponentials first, then their share of the sum.  out may be x. */
static void forward_row(float *out, const float *x, int64_t classes) {
    const pk_vec m = pk_set1(pk_row_max(x, classes));
    pk_vec s = pk_zero();
    PK_FOR16(i, c, classes) {
        const pk_vec e = power(pk_load_n(x + i, c), m);
        s = pk_add(s, c == 16 ? e : pk_select(pk_first_lanes(c), e, pk_zero()));
        pk_store_n(out + i, e, c);
    }
    const pk_vec share = pk_set1(1.0f / pk_sum16(s));
    PK_FOR16(i, c, classes) pk_store_n(out + i, pk_mul(pk_load_n(out + i, c), share), c);
}

/* As forward_row, but added to out, which therefore cannot hold the exponentials in between. */
static void forward_row_add(float *out, const float *x, int64_t classes) {
    const pk_vec m = pk_set1(pk_row_max(x, classes));
    pk_vec s = pk_zero();
    PK_FOR16(i, c, classes) {
        const pk_vec e = power(pk_load_n(x + i, c), m);
        s = pk_add(s, c == 16 ? e : pk_select(pk_first_lanes(c), e, pk_zero()));
    }
    const pk_vec share = pk_set1(1.0f / pk_sum16(s));
    PK_FOR16(i, c, classes) pk_put(out + i, pk_mul(power(pk_load_n(x + i, c), m), share), c, 1);
}

/* Sixteen columns; out and x point at their first class. */
static void forward_columns(float *out, const float *x, int64_t classes, rows_place at, int add) {
    const pk_vec m = columns_max(x, classes, at);
    pk_vec s = pk_zero();
    for (int64_t c = 0; c < classes; c++) s = pk_add(s, power(pk_load_n(x + c * at.stride, at.lanes), m));
    const pk_vec share = pk_div(pk_set1(1.0f), s);
    for (int64_t c = 0; c < classes; c++) {
        const pk_vec e = power(pk_load_n(x + c * at.stride, at.lanes), m);
        pk_put(out + c * at.stride, pk_mul(e, share), at.lanes, add);
    }
}

static void forward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const task_data k = *(const task_data *)context;
    for (int64_t i = begin; i < end; i++) {
        const rows_place at = rows_at(k.shape, i);
        float *out = k.out + at.first;
        const float *x = k.a + at.first;
        if (k.shape.inner > 1)
            forward_columns(out, x, k.shape.classes, at, k.add);
        else if (k.add)
            forward_row_add(out, x, k.shape.classes);
        else
            forward_row(out, x, k.shape.classes);
    }
}

/* dx = y*(dy - sum(y*dy)) along the classes */
static void backward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const task_data k = *(const task_data *)context;
    const int64_t classes = k.shape.classes;
    for (int64_t i = begin; i < end; i++) {
        const rows_place at = rows_at(k.shape, i);
        float *dx = k.out + at.first;
        const float *y = k.a + at.first, *dy = k.b + at.first;
        if (k.shape.inner == 1) {
            const pk_vec s = pk_set1(pk_row_dot(y, dy, classes));
            PK_FOR16(j, c, classes)
                pk_put(dx + j, pk_mul(pk_load_n(y + j, c), pk_sub(pk_load_n(dy + j, c), s)), c, k.add);
            continue;
        }
        pk_vec s = pk_zero();
        for (int64_t c = 0; c < classes * at.stride; c += at.stride)
            s = pk_fma(pk_load_n(y + c, at.lanes), pk_load_n(dy + c, at.lanes), s);
        for (int64_t c = 0; c < classes * at.stride; c += at.stride)
            pk_put(dx + c, pk_mul(pk_load_n(y + c, at.lanes), pk_sub(pk_load_n(dy + c, at.lanes), s)), at.lanes,
                     k.add);
    }
}

static pk_status run(const pk_call *call, pk_task task, const pk_view *b) {
    task_data k = {pk_f32(&call->out[0]), pk_f32(&call->in[0]), b == NULL ? NULL : pk_f32(b), {0}, pk_adds(call, 0)};
    const pk_status status = rows_of(call, &call->in[0], call->attr[0].i, &k.shape);
    if (status != PK_OK) return status;
    pk_parallel(call, rows_places(k.shape), rows_grain(k.shape), task, &k);
    return PK_OK;
}

/* x, y, dy, dx: any equal shape */
static pk_status forward(const pk_call *call) { return run(call, forward_task, NULL); }
static pk_status backward(const pk_call *call) { return run(call, backward_task, &call->in[1]); }

PK_OP(softmax,
      {"softmax.forward(x: f32; axis: int) -> (y: f32)", forward},
      {"softmax.backward(y: f32, dy: f32; axis: int) -> (dx: f32)", backward});
