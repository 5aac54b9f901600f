/* linear_chain_crf: negative log-likelihood of a tag sequence, as on the host; a thread is a
 * sequence, or a weight of the transitions. */
#include "elementwise.cuh"
#include "rows.cuh"

namespace {
struct crf {
    const int64_t *offsets, *label;
    const float *emission, *transition, *seen_alpha, *seen_shift, *seen_p, *dnll;
    float *nll, *alpha, *shift, *dx, *p, *dw, *room; /* room: [T, tags] */
    int64_t sequences, tags;
    int add[3];
    pk_gate gate;
    PK_DEVICE const float *row(int64_t from) const { return transition + (2 + from) * tags; }
};

PK_DEVICE float largest(const float *x, int64_t n) {
    float m = -INFINITY;
    for (int64_t j = 0; j < n; j++) m = fmaxf(m, x[j]);
    return m;
}

struct forward_each {
    crf c;
    PK_DEVICE void operator()(int64_t s) const {
        const int64_t first = c.offsets[s], last = c.offsets[s + 1], tags = c.tags;
        double sum = 0.0, score = 0.0;
        for (int64_t t = first; t < last; t++) {
            float *alpha = c.room + t * tags;
            const int64_t tag = c.label[t];
            if (tag < 0 || tag >= tags) {
                pk_fault_at(c.gate, "label %lld, there are %lld tags", t, tag, tags);
                return;
            }
            for (int64_t j = 0; j < tags; j++) {
                const float *before = alpha - tags, *e = c.emission + t * tags;
                float m = -INFINITY, total = 0.0f, ways = c.transition[j];
                if (t > first) {
                    for (int64_t i = 0; i < tags; i++) m = fmaxf(m, before[i] + c.row(i)[j]);
                    for (int64_t i = 0; i < tags; i++) total += expf(before[i] + c.row(i)[j] - m);
                    ways = m + logf(total);
                }
                alpha[j] = ways + e[j];
            }
            const float m = largest(alpha, tags);
            for (int64_t j = 0; j < tags; j++) {
                alpha[j] -= m;
                pk_put(c.alpha + t * tags + j, alpha[j], c.add[1]);
            }
            pk_put(c.shift + t, m, c.add[2]);
            sum += m;
            score += (double)c.emission[t * tags + tag] +
                     (t > first ? c.row(c.label[t - 1])[tag] : c.transition[tag]);
        }
        float nll = 0.0f;
        if (last > first) {
            const float *alpha = c.room + (last - 1) * tags, *stop = c.transition + tags;
            double m = -INFINITY, total = 0.0;
            for (int64_t j = 0; j < tags; j++) m = fmax(m, (double)alpha[j] + stop[j]);
            for (int64_t j = 0; j < tags; j++) total += exp((double)alpha[j] + stop[j] - m);
            score += stop[c.label[last - 1]];
            nll = (float)(sum + m + log(total) - score);
        }
        pk_put(c.nll + s, nll, c.add[0]);
    }
};

struct backward_each {
    crf c;
    PK_DEVICE void operator()(int64_t s) const {
        const int64_t first = c.offsets[s], last = c.offsets[s + 1], tags = c.tags;
        for (int64_t t = last; t-- > first;) {
            float *beta = c.room + t * tags;
            for (int64_t i = 0; i < tags; i++)
                beta[i] = t + 1 == last ? c.transition[tags + i] : behind(t, i);
            const float m = largest(beta, tags);
            float top = -INFINITY, total = 0.0f;
            for (int64_t i = 0; i < tags; i++) {
                beta[i] -= m;
                top = fmaxf(top, c.seen_alpha[t * tags + i] + beta[i]);
            }
            for (int64_t i = 0; i < tags; i++)
                total += expf(c.seen_alpha[t * tags + i] + beta[i] - top);
            for (int64_t i = 0; i < tags; i++) {
                const float p = expf(c.seen_alpha[t * tags + i] + beta[i] - top) / total;
                pk_put(c.p + t * tags + i, p, c.add[1]);
                const float observed = c.label[t] == i ? 1.0f : 0.0f;
                pk_put(c.dx + t * tags + i, c.dnll[s] * (p - observed), c.add[0]);
            }
        }
    }
    /* log of the sum over j of exp(w[i, j] + e[j] + beta[j]) of the token behind */
    PK_DEVICE float behind(int64_t t, int64_t i) const {
        const int64_t tags = c.tags;
        const float *w = c.row(i), *e = c.emission + (t + 1) * tags, *b = c.room + (t + 1) * tags;
        float m = -INFINITY, total = 0.0f;
        for (int64_t j = 0; j < tags; j++) m = fmaxf(m, w[j] + e[j] + b[j]);
        for (int64_t j = 0; j < tags; j++) total += expf(w[j] + e[j] + b[j] - m);
        return m + logf(total);
    }
};

struct weight_each {
    crf c;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t tags = c.tags, row = e / tags, j = e % tags, from = row - 2;
        float sum = 0.0f;
        for (int64_t s = 0; s < c.sequences; s++)
            for (int64_t t = c.offsets[s]; t < c.offsets[s + 1]; t++) {
                const int first = t == c.offsets[s], last = t + 1 == c.offsets[s + 1];
                const float p = c.seen_p[t * tags + j], observed = c.label[t] == j ? 1.0f : 0.0f;
                if (row == 0 ? first : row == 1 && last) sum += c.dnll[s] * (p - observed);
                if (row < 2 || first) continue;
                const float ways = c.seen_alpha[t * tags + j] - c.emission[t * tags + j] +
                                   c.seen_shift[t];
                const float share =
                    expf(c.seen_alpha[(t - 1) * tags + from] + c.transition[e] - ways);
                sum += c.dnll[s] * (p * share - (c.label[t - 1] == from ? observed : 0.0f));
            }
        pk_put(c.dw + e, sum, c.add[0]);
    }
};

pk_status find(const pk_call *call, const pk_view *emission, const pk_view *transition,
               const pk_view *label, crf *c) {
    if (!emission->offsets)
        return pk_fail(call, PK_BAD_SHAPE, -1, "the tokens come without offsets");
    c->offsets = emission->offsets, c->sequences = emission->sequences;
    c->tags = pk_inner(emission, 1);
    c->emission = pk_f32(emission), c->transition = pk_f32(transition), c->label = pk_i64(label);
    for (int32_t i = 0; i < 3; i++) c->add[i] = pk_adds(call, i);
    c->gate = pk_gate_of(call);
    if (c->tags < 1 || transition->ndim != 2 || transition->dim[0] != c->tags + 2 ||
        transition->dim[1] != c->tags)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "the transition is [%lld, %lld], %lld tags need [%lld, %lld]",
                       (long long)transition->dim[0], (long long)pk_inner(transition, 1),
                       (long long)c->tags, (long long)c->tags + 2, (long long)c->tags);
    if (pk_count(label) != emission->dim[0])
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld labels for %lld tokens",
                       (long long)pk_count(label), (long long)emission->dim[0]);
    return PK_OK;
}

pk_status linear_chain_crf_forward(const pk_call *call) {
    crf c = {};
    PK_TRY(find(call, &call->in[0], &call->in[1], &call->in[2], &c));
    c.nll = pk_f32(&call->out[0]), c.alpha = pk_f32(&call->out[1]);
    c.shift = pk_f32(&call->out[2]), c.room = pk_f32(&call->out[3]);
    return pk_each_behind(call, c.gate, c.sequences, forward_each{c});
}
pk_status linear_chain_crf_backward_x(const pk_call *call) {
    crf c = {};
    PK_TRY(find(call, &call->in[0], &call->in[1], &call->in[2], &c));
    c.seen_alpha = pk_f32(&call->in[3]), c.dnll = pk_f32(&call->in[4]);
    c.dx = pk_f32(&call->out[0]), c.p = pk_f32(&call->out[1]), c.room = pk_f32(&call->out[2]);
    return pk_each_behind(call, c.gate, c.sequences, backward_each{c});
}
pk_status linear_chain_crf_backward_w(const pk_call *call) {
    crf c = {};
    PK_TRY(find(call, &call->in[0], &call->in[1], &call->in[2], &c));
    c.seen_alpha = pk_f32(&call->in[3]), c.seen_shift = pk_f32(&call->in[4]);
    c.seen_p = pk_f32(&call->in[5]), c.dnll = pk_f32(&call->in[6]), c.dw = pk_f32(&call->out[0]);
    return pk_each_behind(call, c.gate, (c.tags + 2) * c.tags, weight_each{c});
}
} /* namespace */

PK_OP(linear_chain_crf,
      {"linear_chain_crf.forward(emission: f32, transition: f32, label: i64)"
       " -> (nll: f32, alpha: f32, shift: f32, work: f32)",
       linear_chain_crf_forward},
      {"linear_chain_crf.backward_x(emission: f32, transition: f32, label: i64, alpha: f32,"
       " dnll: f32) -> (demission: f32, p: f32, work: f32)",
       linear_chain_crf_backward_x},
      {"linear_chain_crf.backward_w(emission: f32, transition: f32, label: i64, alpha: f32,"
       " shift: f32, p: f32, dnll: f32) -> (dtransition: f32)",
       linear_chain_crf_backward_w});
