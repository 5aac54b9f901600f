/* class_targets: labels of classes as rows of probabilities, smoothed and weighted. */
#include "rows.cuh"

namespace {
struct targets {
    float *out;           /* y [rows, classes] */
    const int64_t *label; /* [rows] */
    const float *weight;  /* [classes] or NULL */
    int64_t classes, ignored;
    float share, top; /* of every class; of the label's own, its share among all included */
    int add;
    PK_DEVICE void operator()(int64_t i) const {
        const int64_t of = label[i / classes], c = i % classes;
        const float q = of == ignored ? 0.0f : c == of ? top : share;
        pk_put(out + i, weight ? weight[c] * q : q, add);
    }
};

/* Labels are looked at in a launch of their own, before anything is written. */
struct look {
    pk_gate gate;
    const int64_t *label;
    int64_t classes, ignored;
    PK_DEVICE void operator()(int64_t i) const {
        if (label[i] != ignored && (label[i] < 0 || label[i] >= classes))
            pk_fault_at(gate, "label %lld is not one of %lld classes", i, label[i], classes);
    }
};

/* label [rows], weight [classes] or absent, y [rows, classes].
 * Attributes: classes, epsilon, ignore_index. */
pk_status forward(const pk_call *call) {
    const pk_view *label = &call->in[0], *weight = &call->in[1], *y = &call->out[0];
    const int64_t n = pk_count(label), classes = call->attr[0].i, ignored = call->attr[2].i;
    if (classes < 1 || pk_count(y) != n * classes ||
        (weight->data != NULL && pk_count(weight) != classes))
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "%lld labels of %lld classes give %lld elements, weight has %lld",
                       (long long)n, (long long)classes, (long long)pk_count(y),
                       (long long)pk_count(weight));
    const pk_gate gate = pk_gate_of(call);
    const pk_status bad =
        pk_each_behind(call, gate, n, look{gate, pk_i64(label), classes, ignored});
    if (bad != PK_OK) return bad;
    const float epsilon = (float)call->attr[1].f, share = epsilon / (float)classes;
    const float *w = weight->data == NULL ? NULL : pk_f32(weight);
    return pk_each(call, n * classes,
                   targets{pk_f32(y), pk_i64(label), w, classes, ignored, share,
                           (1.0f - epsilon) + share, pk_adds(call, 0)});
}
} /* namespace */

PK_OP(class_targets,
      {"class_targets.forward(label: i64, weight?: f32; classes: int, epsilon: float, "
       "ignore_index: int) -> (y: f32)",
       forward});
