/* softmax_with_cross_entropy: log-softmax and cross-entropy in one, right for scores of any size.
 *
 * Nothing of the size of x is saved: `stats` keeps, for each distribution, its largest score m and
 * l = log(sum(exp(x - m))), from which the backward kernel makes p = exp(x - m - l) again.  m and l
 * stay apart because their sum would lose the digits of l where scores are large. */
#include "distributions.cuh"
#include "rows.cuh"

namespace {
struct task {
    pk_places s = {};
    float *out, *stats_out; /* loss [places] and stats [places, 2]; or dx [outer, classes, inner] */
    const float *x; /* [outer, classes, inner] */
    const int64_t *label; /* hard: [places]; NULL when soft */
    const float *soft; /* [outer, classes, inner] */
    const float *weight; /* [classes] or NULL: what a label counts */
    const float *stats, *dloss; /* backward: [places, 2], [places] */
    int64_t ignore;
    float *dx; /* both: [outer, classes], which may be x */
    int add, add_stats, add_dx;
    PK_DEVICE float worth(int64_t of) const { return weight ? weight[of] : 1.0f; }
};

/* A label that is the largest score has the loss log(1 + the others' sum): it keeps its digits
 * however small it is. */
struct loss {
    task k;
    PK_DEVICE void at(int64_t place, int64_t first, int lane) const {
        const float *x = k.x + first, m = pk_place_max(k.s, x, lane);
        const int64_t label = k.soft ? -1 : k.label[place];
        const int counts = !k.soft && label != k.ignore;
        const float gap = counts ? x[label * k.s.inner] - m : 0.0f;
        const float rest = pk_place_exp_sum(k.s, x, m, counts ? label : -1, lane);
        const float l = !counts ? logf(rest) : gap == 0.0f ? log1pf(rest) : logf(rest + expf(gap));
        float value = counts ? k.worth(label) * (l - gap) : 0.0f;
        if (k.soft) {
            float sum = 0.0f;
            PK_EACH_CLASS(c, k.s, lane)
            sum = fmaf(k.soft[first + c * k.s.inner], l - (x[c * k.s.inner] - m), sum);
            value = pk_warp_sum(sum);
        }
        if (lane != 0) return;
        pk_put(k.out + place, value, k.add);
        pk_put(k.stats_out + 2 * place, m, k.add_stats);
        pk_put(k.stats_out + 2 * place + 1, l, k.add_stats);
    }
};

/* dx = dloss*(p - onehot), or dloss*(p*sum(t) - t) for soft labels */
struct back {
    task k;
    PK_DEVICE void at(int64_t place, int64_t first, int lane) const {
        const int64_t label = k.soft ? -1 : k.label[place];
        const int ignored = !k.soft && label == k.ignore;
        const float m = k.stats[2 * place], l = k.stats[2 * place + 1];
        const float d = ignored ? 0.0f : k.dloss[place] * (k.soft ? 1.0f : k.worth(label));
        float total = 1.0f;
        if (k.soft) {
            total = 0.0f;
            PK_EACH_CLASS(c, k.s, lane) total += k.soft[first + c * k.s.inner];
            total = pk_warp_sum(total);
        }
        PK_EACH_CLASS(c, k.s, lane) {
            const int64_t e = first + c * k.s.inner;
            const float z = k.x[e] - m - l;
            /* An ignored place may hold anything: 0 times infinity is not 0. */
            const float v = ignored      ? 0.0f
                            : k.soft     ? expf(z) * total - k.soft[e]
                            : c == label ? expm1f(z)
                                         : expf(z);
            pk_put(k.out + e, ignored ? 0.0f : v * d, k.add);
        }
    }
};

/* Loss and gradient of a row with a hard label. */
struct both {
    task k;
    PK_DEVICE void at(int64_t place, int64_t first, int lane) const {
        const float *x = k.x + first;
        const int64_t label = k.label[place];
        const int ignored = label == k.ignore;
        const float m = pk_place_max(k.s, x, lane), gap = ignored ? 0.0f : x[label] - m;
        const float rest = pk_place_exp_sum(k.s, x, m, label, lane);
        const float l = gap == 0.0f ? log1pf(rest) : logf(rest + expf(gap));
        const float d = ignored ? 0.0f : k.dloss[place] * k.worth(label);
        const float share = d / (rest + expf(gap));
        if (lane == 0) pk_put(k.out + place, ignored ? 0.0f : k.worth(label) * (l - gap), k.add);
        PK_EACH_CLASS(c, k.s, lane) {
            const float v = c == label ? d * expm1f(gap - l) : expf(x[c] - m) * share;
            pk_put(k.dx + first + c, ignored ? 0.0f : v, k.add_dx);
        }
    }
};

/* Fills what all kernels need and checks the labels. */
pk_status prepare(const pk_call *call, int soft, int64_t axis, int64_t ignore, task *k) {
    const pk_view *x = &call->in[0], *label = &call->in[1], *weight = &call->in[2];
    PK_TRY(pk_places_of(call, x, axis, &k->s));
    const int64_t places = k->s.outer * k->s.inner, wanted = soft ? pk_count(x) : places;
    if (pk_count(label) != wanted || label->dtype != (soft ? PK_F32 : PK_I64))
        return pk_fail(
            call, PK_BAD_SHAPE, -1, "label has %lld elements of type %d, %lld %s are needed",
            (long long)pk_count(label), (int)label->dtype, (long long)wanted, soft ? "f32" : "i64");
    if (weight->data != NULL && (soft || pk_count(weight) != k->s.classes))
        return pk_fail(call, PK_BAD_SHAPE, -1, "weight has %lld elements, x has %lld classes%s",
                       (long long)pk_count(weight), (long long)k->s.classes,
                       soft ? " and soft labels" : "");
    k->x = pk_f32(x);
    k->weight = pk_f32(weight);
    k->ignore = ignore;
    k->soft = soft ? pk_f32(label) : NULL;
    k->label = soft ? NULL : pk_i64(label);
    if (soft) return PK_OK;
    return pk_check_index(call, k->label, places, k->s.classes, k->ignore, k->s.inner,
                          "label %lld is not one of %lld classes");
}

/* x [.., classes, ..], label [..] or as x, weight [classes], loss [..], stats [.., 2] */
pk_status forward(const pk_call *call) {
    task k = {};
    PK_TRY(prepare(call, call->attr[0].i != 0, call->attr[1].i, call->attr[2].i, &k));
    k.out = pk_f32(&call->out[0]), k.stats_out = pk_f32(&call->out[1]);
    k.add = pk_adds(call, 0), k.add_stats = pk_adds(call, 1);
    return pk_each_place(call, k.s, loss{k});
}

/* x, label, weight as above, stats, dloss -> dx */
pk_status backward_x(const pk_call *call) {
    task k = {};
    PK_TRY(prepare(call, call->attr[0].i != 0, call->attr[1].i, call->attr[2].i, &k));
    k.stats = pk_f32(&call->in[3]), k.dloss = pk_f32(&call->in[4]);
    k.out = pk_f32(&call->out[0]), k.add = pk_adds(call, 0);
    return pk_each_place(call, k.s, back{k});
}

/* x [.., classes], label [..], weight [classes], dloss [..] -> loss [..], dx */
pk_status forward_backward(const pk_call *call) {
    task k = {};
    PK_TRY(prepare(call, 0, -1, call->attr[0].i, &k));
    if (pk_count(&call->in[3]) != k.s.outer)
        return pk_fail(call, PK_BAD_SHAPE, -1, "dloss has %lld elements, x has %lld rows",
                       (long long)pk_count(&call->in[3]), (long long)k.s.outer);
    k.dloss = pk_f32(&call->in[3]);
    k.out = pk_f32(&call->out[0]), k.dx = pk_f32(&call->out[1]);
    k.add = pk_adds(call, 0), k.add_dx = pk_adds(call, 1);
    return pk_each_place(call, k.s, both{k});
}
} /* namespace */

PK_OP(
    softmax_with_cross_entropy,
    {"softmax_with_cross_entropy.forward(x: f32, label: any, weight?: f32; soft_label: bool, axis: int, "
     "ignore_index: int) -> (loss: f32, stats: f32)",
     forward},
    {"softmax_with_cross_entropy.backward_x(x: f32, label: any, weight?: f32, stats: f32, dloss: f32; soft_label: bool, "
     "axis: int, ignore_index: int) -> (dx: f32)",
     backward_x},
    {"softmax_with_cross_entropy.forward_backward(x: f32, label: i64, weight?: f32, dloss: f32; ignore_index: int)"
     " -> (loss: f32, dx: f32)",
     forward_backward});
