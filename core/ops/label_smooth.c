/* label_smooth: y = (1 - epsilon)*label + epsilon*prior, prior 1/classes where none is given. */
#include "pk_kernel.h"
#include "pk_simd.h"

typedef struct smooth {
    float *out;            /* y [rows, classes] or dlabel */
    const float *in, *prior;
    int64_t classes;
    float keep, share;     /* 1 - epsilon; what is added when there is no prior */
    float epsilon;
    int add;
} smooth;

static void rows_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const smooth k = *(const smooth *)context;
    const pk_vec keep = pk_set1(k.keep), epsilon = pk_set1(k.epsilon);
    for (int64_t r = begin; r < end; r++) {
        const float *in = k.in + r * k.classes;
        float *out = k.out + r * k.classes;
        PK_FOR16(i, c, k.classes) {
            const pk_vec more = k.prior == NULL ? pk_set1(k.share) : pk_mul(epsilon, pk_load_n(k.prior + i, c));
            pk_vec v = pk_add(pk_mul(keep, pk_load_n(in + i, c)), more);
            if (k.add) v = pk_add(v, pk_load_n(out + i, c));
            pk_store_n(out + i, v, c);
        }
    }
}

static pk_status run(const pk_call *call, const float *prior, float epsilon, float share) {
    const pk_view *label = &call->in[0];
    const int64_t n = pk_count(label), classes = label->dim[label->ndim - 1];
    smooth k = {pk_f32(&call->out[0]), pk_f32(label), prior, classes, 1.0f - (float)call->attr[0].f, share, epsilon,
                pk_adds(call, 0)};
    if (n > 0) pk_parallel(call, n / classes, pk_max_i64(1, 4096 / classes), rows_task, &k);
    return PK_OK;
}

/* label [..., classes], prior [classes] or absent, y as label */
static pk_status forward(const pk_call *call) {
    const pk_view *label = &call->in[0], *prior = &call->in[1];
    const int64_t classes = label->dim[label->ndim - 1];
    const float epsilon = (float)call->attr[0].f;
    if (prior->data != NULL && pk_count(prior) != classes)
        return pk_fail(call, PK_BAD_SHAPE, -1, "prior has %lld elements, label has %lld classes",
                       (long long)pk_count(prior), (long long)classes);
    return run(call, pk_f32(prior), epsilon, epsilon / (float)pk_max_i64(classes, 1));
}
static pk_status backward_label(const pk_call *call) { return run(call, NULL, 0.0f, 0.0f); }

PK_OP(label_smooth,
      {"label_smooth.forward(label: f32, prior?: f32; epsilon: float) -> (y: f32)", forward},
      {"label_smooth.backward_label(dy: f32; epsilon: float) -> (dlabel: f32)", backward_label});
