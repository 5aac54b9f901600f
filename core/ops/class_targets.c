/* class_targets: labels of classes as rows of probabilities, smoothed and weighted. */
#include "pk_kernel.h"
#include "pk_simd.h"

typedef struct targets {
    float *out;            /* y [rows, classes] */
    const int64_t *label;  /* [rows] */
    const float *weight;   /* [classes] or NULL */
    int64_t classes, ignored;
    float share, top;      /* of every class; of the label's own, its share among all included */
    int add;
} targets;

static void rows_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const targets k = *(const targets *)context;
    for (int64_t r = begin; r < end; r++) {
        float *out = k.out + r * k.classes;
        const int counts = k.label[r] != k.ignored;
        const float share = counts ? k.share : 0.0f;
        for (int64_t c = 0; c < k.classes; c++) {
            const float q = counts && c == k.label[r] ? k.top : share;
            const float v = k.weight == NULL ? q : k.weight[c] * q;
            out[c] = k.add ? out[c] + v : v;
        }
    }
}

/* label [rows], weight [classes] or absent, y [rows, classes].  Attributes: classes, epsilon, ignore_index. */
static pk_status forward(const pk_call *call) {
    const pk_view *label = &call->in[0], *weight = &call->in[1], *y = &call->out[0];
    const int64_t n = pk_count(label), classes = call->attr[0].i, ignored = call->attr[2].i;
    if (classes < 1 || pk_count(y) != n * classes || (weight->data != NULL && pk_count(weight) != classes))
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld labels of %lld classes give %lld elements, weight has %lld",
                       (long long)n, (long long)classes, (long long)pk_count(y), (long long)pk_count(weight));
    for (int64_t i = 0; i < n; i++)
        if (pk_i64(label)[i] != ignored && (pk_i64(label)[i] < 0 || pk_i64(label)[i] >= classes))
            return pk_fail(call, PK_BAD_DATA, i, "label %lld is not one of %lld classes",
                           (long long)pk_i64(label)[i], (long long)classes);
    const float epsilon = (float)call->attr[1].f, share = epsilon / (float)classes;
    targets k = {pk_f32(y), pk_i64(label), weight->data == NULL ? NULL : pk_f32(weight), classes, ignored,
                 share, (1.0f - epsilon) + share, pk_adds(call, 0)};
    if (n > 0) pk_parallel(call, n, pk_max_i64(1, 4096 / classes), rows_task, &k);
    return PK_OK;
}

PK_OP(class_targets,
      {"class_targets.forward(label: i64, weight?: f32; classes: int, epsilon: float, ignore_index: int) -> (y: f32)",
       forward});
