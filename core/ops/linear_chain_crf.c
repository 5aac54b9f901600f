/* linear_chain_crf: negative log-likelihood of a tag sequence, by the forward algorithm in logarithms.
 *
 * transition [tags + 2, tags]: row 0 the start's weights, row 1 the stop's, row 2 + i from tag i.
 * alpha [T, tags] is held near 0: each token's largest value is taken out and kept in `shift` [T],
 * so nothing overflows and no digits are lost in long sequences; sums of what was taken out and the
 * score of the labels are doubles. */
#include <math.h>

#include "elementwise.h"
#include "recurrences.h"

#define TOKENS_PER_SUM 256 /* partial sums of the transition's gradient */

typedef struct crf {
    const int64_t *offsets, *label;
    const float *emission, *transition, *seen_alpha, *seen_shift, *dnll;
    float *nll, *alpha, *shift;      /* forward */
    float *dx, *p, *dw;              /* backward: p [T, tags] are probabilities of tags */
    int64_t sequences, tags;
    int32_t add, add_alpha, add_shift, add_p;
} crf;

static pk_status find(const pk_call *call, const pk_view *emission, const pk_view *transition,
                      const pk_view *label, crf *c) {
    if (!emission->offsets)
        return pk_fail(call, PK_BAD_SHAPE, -1, "the tokens come without offsets");
    c->offsets = emission->offsets, c->sequences = emission->sequences;
    c->tags = pk_inner(emission, 1);
    c->emission = pk_f32(emission), c->transition = pk_f32(transition), c->label = pk_i64(label);
    if (c->tags < 1 || transition->ndim != 2 || transition->dim[0] != c->tags + 2 ||
        transition->dim[1] != c->tags)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "the transition is [%lld, %lld], %lld tags need [%lld, %lld]",
                       (long long)transition->dim[0], (long long)pk_inner(transition, 1),
                       (long long)c->tags, (long long)c->tags + 2, (long long)c->tags);
    if (pk_count(label) != emission->dim[0])
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld labels for %lld tokens",
                       (long long)pk_count(label), (long long)emission->dim[0]);
    for (int64_t t = 0; t < emission->dim[0]; t++)
        if (c->label[t] < 0 || c->label[t] >= c->tags)
            return pk_fail(call, PK_BAD_DATA, t, "label %lld of token %lld, there are %lld tags",
                           (long long)c->label[t], (long long)t, (long long)c->tags);
    return PK_OK;
}

/* log of the sum over i of exp(from[i] + w[i, j..]), for sixteen j; w's rows are `tags` apart. */
PK_INLINE pk_vec log_sum(const float *from, const float *w, int64_t tags, int64_t n) {
    pk_vec m = pk_set1(-INFINITY), s = pk_zero();
    for (int64_t i = 0; i < tags; i++)
        m = pk_max(m, pk_add(pk_set1(from[i]), pk_load_n(w + i * tags, n)));
    for (int64_t i = 0; i < tags; i++)
        s = pk_add(s, pk_exp(pk_sub(pk_add(pk_set1(from[i]), pk_load_n(w + i * tags, n)), m)));
    return pk_add(m, pk_log(s));
}

/* One token: alpha from the token before, NULL at the first one. Returns what was taken out. */
static float alpha_row(const crf *c, int64_t token, const float *before, float *alpha) {
    const int64_t tags = c->tags;
    const float *e = c->emission + token * tags, *w = c->transition + 2 * tags;
    PK_FOR16(j, n, tags) {
        const pk_vec g = before ? log_sum(before, w + j, tags, n) : pk_load_n(c->transition + j, n);
        pk_store_n(alpha + j, pk_add(g, pk_load_n(e + j, n)), n);
    }
    const float m = pk_row_max(alpha, tags);
    PK_FOR16(j, n, tags) pk_store_n(alpha + j, pk_sub(pk_load_n(alpha + j, n), pk_set1(m)), n);
    return m;
}

/* log of the sum over j of exp(alpha[j] + stop[j]) */
static double last_sum(const crf *c, const float *alpha) {
    const float *stop = c->transition + c->tags;
    double m = -INFINITY, s = 0.0;
    for (int64_t j = 0; j < c->tags; j++) m = fmax(m, (double)alpha[j] + stop[j]);
    for (int64_t j = 0; j < c->tags; j++) s += exp((double)alpha[j] + stop[j] - m);
    return m + log(s);
}

static void forward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const crf *c = context;
    (void)thread;
    const int64_t tags = c->tags;
    float *rows[2] = {scratch, (float *)scratch + tags};
    for (int64_t s = begin; s < end; s++) {
        const int64_t first = c->offsets[s], last = c->offsets[s + 1];
        double sum = 0.0, score = 0.0;
        for (int64_t t = first; t < last; t++) {
            float *alpha = rows[t & 1];
            const float m = alpha_row(c, t, t > first ? rows[(t - 1) & 1] : NULL, alpha);
            PK_FOR16(j, n, tags)
                pk_put(c->alpha + t * tags + j, pk_load_n(alpha + j, n), n, c->add_alpha);
            c->shift[t] = c->add_shift ? c->shift[t] + m : m;
            sum += m;
            const int64_t from = t > first ? 2 + c->label[t - 1] : 0, tag = c->label[t];
            score += (double)c->emission[t * tags + tag] + c->transition[from * tags + tag];
        }
        float nll = 0.0f;
        if (last > first) {
            score += c->transition[tags + c->label[last - 1]];
            nll = (float)(sum + last_sum(c, rows[(last - 1) & 1]) - score);
        }
        c->nll[s] = c->add ? c->nll[s] + nll : nll;
    }
}

static pk_status linear_chain_crf_forward(const pk_call *call) {
    const pk_view *x = &call->in[0];
    crf c = {.nll = pk_f32(&call->out[0]), .alpha = pk_f32(&call->out[1]),
             .shift = pk_f32(&call->out[2])};
    const pk_status bad = find(call, x, &call->in[1], &call->in[2], &c);
    if (bad) return bad;
    if (3 * c.tags * (int64_t)sizeof(float) > (int64_t)PK_SCRATCH_BYTES)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld tags are too many", (long long)c.tags);
    if (pk_count(&call->out[0]) != c.sequences || pk_count(&call->out[1]) != pk_count(x) ||
        pk_count(&call->out[2]) != x->dim[0])
        return pk_fail(call, PK_BAD_SHAPE, -1, "nll has %lld elements for %lld sequences",
                       (long long)pk_count(&call->out[0]), (long long)c.sequences);
    c.add = pk_adds(call, 0), c.add_alpha = pk_adds(call, 1), c.add_shift = pk_adds(call, 2);
    pk_parallel(call, c.sequences, 1, forward_task, &c);
    return PK_OK;
}

/* beta of the token before: log of the sum over j of exp(w[i, j] + e[j] + beta[j]), largest 0.
 * sum: e + beta. */
static void beta_row(const crf *c, const float *sum, float *before) {
    const int64_t tags = c->tags;
    const float *w = c->transition + 2 * tags;
    for (int64_t i = 0; i < tags; i++) {
        pk_vec m = pk_set1(-INFINITY), s = pk_zero();
        PK_FOR16(j, n, tags) {
            m = pk_max(m, pk_add(pk_load_or(w + i * tags + j, n, -INFINITY), pk_load_n(sum + j, n)));
        }
        const float top = pk_max16(m);
        PK_FOR16(j, n, tags) {
            const pk_vec v =
                pk_add(pk_load_or(w + i * tags + j, n, -INFINITY), pk_load_n(sum + j, n));
            s = pk_add(s, pk_exp(pk_sub(v, pk_set1(top))));
        }
        before[i] = top + pk_log1(pk_sum16(s));
    }
    const float top = pk_row_max(before, tags);
    PK_FOR16(j, n, tags) pk_store_n(before + j, pk_sub(pk_load_n(before + j, n), pk_set1(top)), n);
}

/* p[j] = exp(alpha[j] + beta[j]) over their sum */
static void tag_probabilities(const crf *c, int64_t token, const float *beta, float *p) {
    const int64_t tags = c->tags;
    const float *alpha = c->seen_alpha + token * tags;
    PK_FOR16(j, n, tags)
        pk_store_n(p + j, pk_add(pk_load_n(alpha + j, n), pk_load_n(beta + j, n)), n);
    const float m = pk_row_max(p, tags);
    pk_vec s = pk_zero();
    PK_FOR16(j, n, tags) {
        const pk_vec e = pk_exp(pk_sub(pk_load_or(p + j, n, -INFINITY), pk_set1(m)));
        pk_store_n(p + j, e, n);
        s = pk_add(s, e);
    }
    const pk_vec factor = pk_set1(1.0f / pk_sum16(s));
    PK_FOR16(j, n, tags) pk_store_n(p + j, pk_mul(pk_load_n(p + j, n), factor), n);
}

static void backward_task(void *context, int64_t begin, int64_t end, int32_t thread,
                          void *scratch) {
    const crf *c = context;
    (void)thread;
    const int64_t tags = c->tags;
    float *beta = scratch, *sum = beta + tags, *p = sum + tags;
    for (int64_t s = begin; s < end; s++) {
        const int64_t first = c->offsets[s], last = c->offsets[s + 1];
        const pk_vec dy = pk_set1(c->dnll[s]);
        for (int64_t t = last; t-- > first;) {
            if (t + 1 == last)
                PK_FOR16(j, n, tags) pk_store_n(beta + j, pk_load_n(c->transition + tags + j, n), n);
            float *dx = c->dx + t * tags;
            tag_probabilities(c, t, beta, p);
            PK_FOR16(j, n, tags) pk_put(c->p + t * tags + j, pk_load_n(p + j, n), n, c->add_p);
            PK_FOR16(j, n, tags) pk_put(dx + j, pk_mul(dy, pk_load_n(p + j, n)), n, c->add);
            dx[c->label[t]] -= c->dnll[s];
            PK_FOR16(j, n, tags)
                pk_store_n(sum + j, pk_add(pk_load_n(c->emission + t * tags + j, n),
                                           pk_load_n(beta + j, n)), n);
            if (t > first) beta_row(c, sum, beta);
        }
    }
}

static pk_status linear_chain_crf_backward_x(const pk_call *call) {
    const pk_view *in = call->in, *x = &in[0];
    crf c = {.seen_alpha = pk_f32(&in[3]), .dnll = pk_f32(&in[4]), .dx = pk_f32(&call->out[0]),
             .p = pk_f32(&call->out[1]), .add = pk_adds(call, 0),
             .add_p = pk_adds(call, 1)};
    const pk_status bad = find(call, x, &in[1], &in[2], &c);
    if (bad) return bad;
    if (pk_count(&in[3]) != pk_count(x) || pk_count(&in[4]) != c.sequences ||
        pk_count(&call->out[0]) != pk_count(x) || pk_count(&call->out[1]) != pk_count(x) ||
        3 * c.tags * (int64_t)sizeof(float) > (int64_t)PK_SCRATCH_BYTES)
        return pk_fail(call, PK_BAD_SHAPE, -1, "dnll has %lld elements for %lld sequences",
                       (long long)pk_count(&in[4]), (long long)c.sequences);
    pk_parallel(call, c.sequences, 1, backward_task, &c);
    return PK_OK;
}

/* One row of dw: the start's, the stop's, or that of tag `row - 2`: expected minus observed
 * transitions, partial sums of TOKENS_PER_SUM tokens added in order. */
static void transition_task(void *context, int64_t begin, int64_t end, int32_t thread,
                            void *scratch) {
    const crf *c = context;
    (void)thread;
    const int64_t tags = c->tags, tokens = c->offsets[c->sequences];
    float *total = scratch, *part = total + tags;
    for (int64_t row = begin; row < end; row++) {
        const int64_t from = row - 2;
        PK_FOR16(j, n, 2 * tags) pk_store_n(total + j, pk_zero(), n);
        for (int64_t t = 0, s = 0; t < tokens; t++) {
            while (c->offsets[s + 1] <= t) s++;
            const int first = t == c->offsets[s], last = t + 1 == c->offsets[s + 1];
            const float *p = c->p + t * tags, dy = c->dnll[s];
            if (row == 0 ? first : row == 1 && last) {
                PK_FOR16(j, n, tags)
                    pk_store_n(part + j, pk_fma(pk_set1(dy), pk_load_n(p + j, n),
                                                pk_load_n(part + j, n)), n);
                part[c->label[t]] -= dy;
            } else if (row >= 2 && !first) {
                const float a = c->seen_alpha[(t - 1) * tags + from], m = c->seen_shift[t];
                const float *w = c->transition + row * tags, *e = c->emission + t * tags,
                            *alpha = c->seen_alpha + t * tags;
                PK_FOR16(j, n, tags) { /* alpha - e + m: log of all ways to tag j */
                    const pk_vec ways = pk_add(pk_sub(pk_load_n(alpha + j, n), pk_load_n(e + j, n)),
                                               pk_set1(m));
                    const pk_vec share =
                        pk_exp(pk_sub(pk_add(pk_set1(a), pk_load_n(w + j, n)), ways));
                    pk_store_n(part + j, pk_fma(pk_mul(pk_set1(dy), pk_load_n(p + j, n)), share,
                                                pk_load_n(part + j, n)), n);
                }
                if (c->label[t - 1] == from) part[c->label[t]] -= dy;
            }
            if ((t + 1) % TOKENS_PER_SUM == 0 || t + 1 == tokens)
                PK_FOR16(j, n, tags) {
                    pk_store_n(total + j, pk_add(pk_load_n(total + j, n), pk_load_n(part + j, n)), n);
                    pk_store_n(part + j, pk_zero(), n);
                }
        }
        PK_FOR16(j, n, tags) pk_put(c->dw + row * tags + j, pk_load_n(total + j, n), n, c->add);
    }
}

static pk_status linear_chain_crf_backward_w(const pk_call *call) {
    const pk_view *in = call->in, *x = &in[0];
    crf c = {.seen_alpha = pk_f32(&in[3]), .seen_shift = pk_f32(&in[4]), .p = pk_f32(&in[5]),
             .dnll = pk_f32(&in[6]), .dw = pk_f32(&call->out[0]), .add = pk_adds(call, 0)};
    const pk_status bad = find(call, x, &in[1], &in[2], &c);
    if (bad) return bad;
    if (pk_count(&in[3]) != pk_count(x) || pk_count(&in[4]) != x->dim[0] ||
        pk_count(&in[5]) != pk_count(x) || pk_count(&in[6]) != c.sequences ||
        pk_count(&call->out[0]) != pk_count(&in[1]) ||
        3 * c.tags * (int64_t)sizeof(float) > (int64_t)PK_SCRATCH_BYTES)
        return pk_fail(call, PK_BAD_SHAPE, -1, "dnll has %lld elements for %lld sequences",
                       (long long)pk_count(&in[6]), (long long)c.sequences);
    pk_parallel(call, c.tags + 2, 1, transition_task, &c);
    return PK_OK;
}

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
