/* log_softmax: y = x - max - log(sum(exp(x - max))) along the class axis. */
#include "softmax_rows.h"

typedef struct task_data {
    float *out;              /* y, or dx: [outer, classes, inner] */
    const float *a, *b;      /* x; or y and dy */
    rows_shape shape;
    int add;
} task_data;

static void forward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const task_data k = *(const task_data *)context;
    const int64_t classes = k.shape.classes;
    for (int64_t i = begin; i < end; i++) {
        const rows_place at = rows_at(k.shape, i);
        float *y = k.out + at.first;
        const float *x = k.a + at.first;
        if (k.shape.inner == 1) {
            const float most = pk_row_max(x, classes);
            const pk_vec m = pk_set1(most), l = pk_set1(pk_log1(row_exp_sum(x, classes, most)));
            PK_FOR16(j, c, classes) pk_put(y + j, pk_sub(pk_sub(pk_load_n(x + j, c), m), l), c, k.add);
            continue;
        }
        const pk_vec m = columns_max(x, classes, at), l = pk_log(columns_exp_sum(x, classes, at, m));
        for (int64_t c = 0; c < classes * at.stride; c += at.stride)
            pk_put(y + c, pk_sub(pk_sub(pk_load_n(x + c, at.lanes), m), l), at.lanes, k.add);
    }
}

/* dx = dy - exp(y)*sum(dy) */
static void backward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const task_data k = *(const task_data *)context;
    const int64_t classes = k.shape.classes;
    for (int64_t i = begin; i < end; i++) {
        const rows_place at = rows_at(k.shape, i);
        float *dx = k.out + at.first;
        const float *y = k.a + at.first, *dy = k.b + at.first;
        if (k.shape.inner == 1) {
            const pk_vec s = pk_set1(pk_row_sum(dy, classes));
            PK_FOR16(j, c, classes)
                pk_put(dx + j, pk_fnma(pk_exp(pk_load_n(y + j, c)), s, pk_load_n(dy + j, c)), c, k.add);
            continue;
        }
        pk_vec s = pk_zero();
        for (int64_t c = 0; c < classes * at.stride; c += at.stride) s = pk_add(s, pk_load_n(dy + c, at.lanes));
        for (int64_t c = 0; c < classes * at.stride; c += at.stride)
            pk_put(dx + c, pk_fnma(pk_exp(pk_load_n(y + c, at.lanes)), s, pk_load_n(dy + c, at.lanes)), at.lanes,
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

PK_OP(log_softmax,
      {"log_softmax.forward(x: f32; axis: int) -> (y: f32)", forward},
      {"log_softmax.backward(y: f32, dy: f32; axis: int) -> (dx: f32)", backward});
