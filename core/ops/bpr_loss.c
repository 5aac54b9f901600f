/* bpr_loss: mean over the classes j other than the label of log(1 + exp(x[j] - x[label])). */
#include "elementwise.h"

typedef struct task_data {
    float *out;              /* loss [rows], or dx [rows, classes] */
    const float *x, *dloss;  /* [rows, classes], [rows] */
    const int64_t *label;    /* [rows] */
    int64_t classes;
    int add;
} task_data;

/* v with the label's lane, if it is among these, set to `value`. */
static pk_vec with_label(pk_vec v, int64_t i, int64_t label, float value) {
    if (label < i || label >= i + 16) return v;
    float lanes[16];
    pk_store(lanes, v);
    lanes[label - i] = value;
    return pk_load(lanes);
}

static void forward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const task_data k = *(const task_data *)context;
    for (int64_t r = begin; r < end; r++) {
        const float *x = k.x + r * k.classes;
        const pk_vec own = pk_set1(x[k.label[r]]);
        pk_vec s = pk_zero();
        PK_FOR16(i, c, k.classes) {
            const pk_vec v = pk_softplus(pk_sub(pk_load_n(x + i, c), own));
            s = pk_add(s, pk_select(pk_first_lanes(c), with_label(v, i, k.label[r], 0.0f), pk_zero()));
        }
        const float loss = pk_sum16(s) / (float)(k.classes - 1);
        k.out[r] = k.add ? k.out[r] + loss : loss;
    }
}

/* dx[j] = d*sigmoid(x[j] - x[label]) for the others, their negative sum for the label; d = dloss / (classes - 1) */
static void backward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const task_data k = *(const task_data *)context;
    for (int64_t r = begin; r < end; r++) {
        const float *x = k.x + r * k.classes;
        float *dx = k.out + r * k.classes;
        const int64_t label = k.label[r];
        const float before = k.add ? dx[label] : 0.0f;
        const pk_vec own = pk_set1(x[label]), d = pk_set1(k.dloss[r] / (float)(k.classes - 1));
        pk_vec s = pk_zero();
        PK_FOR16(i, c, k.classes) {
            const pk_vec v = with_label(pk_mul(d, pk_sigmoid(pk_sub(pk_load_n(x + i, c), own))), i, label, 0.0f);
            s = pk_add(s, pk_select(pk_first_lanes(c), v, pk_zero()));
            pk_put(dx + i, v, c, k.add);
        }
        dx[label] = before - pk_sum16(s);
    }
}

static pk_status run(const pk_call *call, pk_task task, const pk_view *dloss) {
    const pk_view *x = &call->in[0], *label = &call->in[1];
    const int64_t classes = x->dim[x->ndim - 1], rows = pk_count(label);
    if (classes < 2 || pk_count(x) != rows * classes)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld labels, %lld scores of %lld classes", (long long)rows,
                       (long long)pk_count(x), (long long)classes);
    task_data k = {pk_f32(&call->out[0]), pk_f32(x), dloss == NULL ? NULL : pk_f32(dloss), pk_i64(label), classes,
                   pk_adds(call, 0)};
    for (int64_t r = 0; r < rows; r++)
        if (k.label[r] < 0 || k.label[r] >= classes)
            return pk_fail(call, PK_BAD_DATA, r, "label %lld is not one of %lld classes", (long long)k.label[r],
                           (long long)classes);
    pk_parallel(call, rows, pk_max_i64(1, 4096 / classes), task, &k);
    return PK_OK;
}

/* x [.., classes], label [..], loss [..]; dloss as loss, dx as x */
static pk_status forward(const pk_call *call) { return run(call, forward_task, NULL); }
static pk_status backward_x(const pk_call *call) { return run(call, backward_task, &call->in[2]); }

PK_OP(bpr_loss,
      {"bpr_loss.forward(x: f32, label: i64) -> (loss: f32)", forward},
      {"bpr_loss.backward_x(x: f32, label: i64, dloss: f32) -> (dx: f32)", backward_x});
