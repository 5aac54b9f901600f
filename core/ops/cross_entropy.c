/* cross_entropy: x holds probabilities; loss = -log(x[label]), or -sum(label*log(x)) for soft labels.
 *
 * Infinities are held at +-1e20; where the loss is held there is no slope. */
#include "pk_kernel.h"
#include "pk_simd.h"

typedef struct task_data {
    float *out;              /* loss [rows], or dx [rows, classes] */
    const float *x, *dloss;  /* [rows, classes], [rows] */
    const int64_t *label;    /* hard: [rows] */
    const float *soft;       /* soft: [rows, classes] */
    int64_t classes, ignore;
    int add;
} task_data;

PK_INLINE pk_vec held_log(pk_vec x) {
    const pk_vec most = pk_set1(1e20f);
    return pk_max(pk_neg(most), pk_min(most, pk_log(x)));
}

static void forward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const task_data k = *(const task_data *)context;
    for (int64_t r = begin; r < end; r++) {
        const float *x = k.x + r * k.classes;
        float loss = 0.0f;
        if (k.soft != NULL) {
            pk_vec s = pk_zero();
            PK_FOR16(i, c, k.classes) {
                const pk_vec t = pk_load_n(k.soft + r * k.classes + i, c);
                s = pk_fma(t, held_log(pk_load_or(x + i, c, 1.0f)), s);
            }
            loss = -pk_sum16(s);
        } else if (k.label[r] != k.ignore) {
            loss = -pk_first(held_log(pk_set1(x[k.label[r]])));
        }
        k.out[r] = k.add ? k.out[r] + loss : loss;
    }
}

/* dx = -dloss*label/x, 0 where the logarithm was infinite */
static void backward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const task_data k = *(const task_data *)context;
    for (int64_t r = begin; r < end; r++) {
        const float *x = k.x + r * k.classes;
        float *dx = k.out + r * k.classes;
        if (k.soft != NULL) {
            const pk_vec d = pk_set1(-k.dloss[r]);
            PK_FOR16(i, c, k.classes) {
                const pk_vec p = pk_load_n(x + i, c), t = pk_mul(d, pk_load_n(k.soft + r * k.classes + i, c));
                pk_vec v = pk_select(pk_eq(p, pk_zero()), pk_zero(), pk_div(t, p));
                if (k.add) v = pk_add(v, pk_load_n(dx + i, c));
                pk_store_n(dx + i, v, c);
            }
            continue;
        }
        if (!k.add) memset(dx, 0, (size_t)k.classes * sizeof *dx);
        const int64_t label = k.label[r];
        if (label != k.ignore && x[label] != 0.0f) dx[label] -= k.dloss[r] / x[label];
    }
}

/* Attributes: soft_label, ignore_index. */
static pk_status run(const pk_call *call, pk_task task, const pk_view *dloss) {
    const pk_view *x = &call->in[0], *label = &call->in[1];
    const int soft = call->attr[0].i != 0;
    const int64_t classes = x->dim[x->ndim - 1], rows = classes == 0 ? 0 : pk_count(x) / classes;
    const int64_t wanted = soft ? pk_count(x) : rows;
    if (pk_count(label) != wanted || label->dtype != (soft ? PK_F32 : PK_I64))
        return pk_fail(call, PK_BAD_SHAPE, -1, "label has %lld elements of type %d, %lld %s are needed",
                       (long long)pk_count(label), (int)label->dtype, (long long)wanted, soft ? "f32" : "i64");
    task_data k = {pk_f32(&call->out[0]), pk_f32(x), dloss == NULL ? NULL : pk_f32(dloss), soft ? NULL : pk_i64(label),
                   soft ? pk_f32(label) : NULL, classes, call->attr[1].i, pk_adds(call, 0)};
    for (int64_t r = 0; !soft && r < rows; r++)
        if (k.label[r] != k.ignore && (k.label[r] < 0 || k.label[r] >= classes))
            return pk_fail(call, PK_BAD_DATA, r, "label %lld is not one of %lld classes",
                           (long long)k.label[r], (long long)classes);
    pk_parallel(call, rows, pk_max_i64(1, 8192 / pk_max_i64(1, classes)), task, &k);
    return PK_OK;
}

/* x [.., classes], label [..] or as x, loss [..]; dloss as loss, dx as x */
static pk_status forward(const pk_call *call) { return run(call, forward_task, NULL); }
static pk_status backward_x(const pk_call *call) { return run(call, backward_task, &call->in[2]); }

PK_OP(cross_entropy,
      {"cross_entropy.forward(x: f32, label: any; soft_label: bool, ignore_index: int) -> (loss: f32)", forward},
      {"cross_entropy.backward_x(x: f32, label: any, dloss: f32; soft_label: bool, ignore_index: int) -> (dx: f32)",
       backward_x});
