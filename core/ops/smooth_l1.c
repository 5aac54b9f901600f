/* smooth_l1: per row the sum of 0.5*sigma^2*d^2 where |d| < 1/sigma^2, else |d| - 0.5/sigma^2, with d = x - label. */
#include "elementwise.h"

typedef struct task_data {
    float *out;               /* loss [rows], or dx [rows, size] */
    const float *x, *label, *dloss;
    int64_t size;
    float square, sign;       /* sigma^2; 1 for dx, -1 for dlabel */
    int add;
} task_data;

static void forward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const task_data k = *(const task_data *)context;
    const pk_vec edge = pk_set1(1.0f / k.square), curve = pk_set1(0.5f * k.square), drop = pk_set1(0.5f / k.square);
    for (int64_t r = begin; r < end; r++) {
        const float *x = k.x + r * k.size, *label = k.label + r * k.size;
        pk_vec s = pk_zero();
        PK_FOR16(i, c, k.size) {
            const pk_vec a = pk_abs(pk_sub(pk_load_n(x + i, c), pk_load_n(label + i, c)));
            const pk_vec near = pk_mul(pk_mul(curve, a), a);
            s = pk_add(s, pk_select(pk_ge(a, edge), pk_sub(a, drop), near));
        }
        const float loss = pk_sum16(s);
        k.out[r] = k.add ? k.out[r] + loss : loss;
    }
}

static void backward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const task_data k = *(const task_data *)context;
    const pk_vec one = pk_set1(1.0f), square = pk_set1(k.square);
    for (int64_t r = begin; r < end; r++) {
        const int64_t at = r * k.size;
        const pk_vec d = pk_set1(k.sign * k.dloss[r]);
        PK_FOR16(i, c, k.size) {
            const pk_vec gap = pk_sub(pk_load_n(k.x + at + i, c), pk_load_n(k.label + at + i, c));
            const pk_vec slope = pk_min(one, pk_max(pk_neg(one), pk_mul(square, gap)));
            pk_put(k.out + at + i, pk_mul(slope, d), c, k.add);
        }
    }
}

static pk_status run(const pk_call *call, pk_task task, const pk_view *dloss, float sign) {
    const pk_view *x = &call->in[0], *label = &call->in[1];
    const float sigma = (float)call->attr[0].f;
    if (pk_count(x) != pk_count(label))
        return pk_fail(call, PK_BAD_SHAPE, -1, "x has %lld elements, label %lld", (long long)pk_count(x),
                       (long long)pk_count(label));
    const int64_t rows = x->dim[0], size = pk_inner(x, 1);
    task_data k = {pk_f32(&call->out[0]), pk_f32(x), pk_f32(label), dloss == NULL ? NULL : pk_f32(dloss), size,
                   sigma * sigma, sign, pk_adds(call, 0)};
    pk_parallel(call, rows, pk_max_i64(1, 8192 / pk_max_i64(1, size)), task, &k);
    return PK_OK;
}

/* x, label [rows, ..], loss [rows, 1]; dloss as loss, dx and dlabel as x */
static pk_status forward(const pk_call *call) { return run(call, forward_task, NULL, 1.0f); }
static pk_status backward_x(const pk_call *call) { return run(call, backward_task, &call->in[2], 1.0f); }
static pk_status backward_label(const pk_call *call) { return run(call, backward_task, &call->in[2], -1.0f); }

PK_OP(smooth_l1,
      {"smooth_l1.forward(x: f32, label: f32; sigma: float) -> (loss: f32)", forward},
      {"smooth_l1.backward_x(x: f32, label: f32, dloss: f32; sigma: float) -> (dx: f32)", backward_x},
      {"smooth_l1.backward_label(x: f32, label: f32, dloss: f32; sigma: float) -> (dlabel: f32)", backward_label});
