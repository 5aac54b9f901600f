/* label_smooth: y = (1 - epsilon)*label + epsilon*prior, prior 1/classes where none is given. */
#include "pk_cuda.cuh"

namespace {
struct smooth {
    float *out;
    const float *in, *prior; /* in [rows, classes]; prior [classes] or NULL */
    int64_t classes;
    float keep, share, epsilon; /* 1 - epsilon; what is added when there is no prior */
    int add;
    PK_DEVICE void operator()(int64_t i) const {
        pk_put(out + i, keep * in[i] + (prior ? epsilon * prior[i % classes] : share), add);
    }
};

pk_status run(const pk_call *call, const float *prior, float epsilon, float share) {
    const pk_view *label = &call->in[0];
    return pk_each(call, pk_count(label),
                   smooth{pk_f32(&call->out[0]), pk_f32(label), prior, label->dim[label->ndim - 1],
                          1.0f - (float)call->attr[0].f, share, epsilon, pk_adds(call, 0)});
}

/* label [..., classes], prior [classes] or absent, y as label */
pk_status forward(const pk_call *call) {
    const pk_view *label = &call->in[0], *prior = &call->in[1];
    const int64_t classes = label->dim[label->ndim - 1];
    const float epsilon = (float)call->attr[0].f;
    if (prior->data != NULL && pk_count(prior) != classes)
        return pk_fail(call, PK_BAD_SHAPE, -1, "prior has %lld elements, label has %lld classes",
                       (long long)pk_count(prior), (long long)classes);
    return run(call, pk_f32(prior), epsilon, epsilon / (float)pk_max_i64(classes, 1));
}
pk_status backward_label(const pk_call *call) { return run(call, NULL, 0.0f, 0.0f); }
} /* namespace */

PK_OP(label_smooth,
      {"label_smooth.forward(label: f32, prior?: f32; epsilon: float) -> (y: f32)", forward},
      {"label_smooth.backward_label(dy: f32; epsilon: float) -> (dlabel: f32)", backward_label});
