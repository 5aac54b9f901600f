/* ctc: negative log-likelihood of labels under all their alignments with frames; states and alpha
 * as on the host. A thread has a sequence: its frames follow each other anyway. */
#include "packed.cuh"

namespace {
/* logits, dlogits [T, classes]; label [L]; nll, dnll [sequences]; scratch: lse [T], log-sums of the
 * frames; alpha, of all frames (backwards only); rows, two of states for each sequence */
struct ctc {
    const float *x, *dnll;
    float *nll_out, *dx, *lse, *alpha, *rows;
    const int64_t *label, *frames, *labels; /* frames, labels: offsets */
    int64_t sequences, classes, blank;
    int64_t norm; /* 0 nothing, 1 gradients over frames, 2 the loss over labels */
    int add;

    /* What the loss of a sequence (or only its gradient, with norm 1) is divided by. */
    PK_DEVICE float divisor(int64_t s, int gradient) const {
        const int64_t n = norm == 2               ? labels[s + 1] - labels[s]
                          : norm == 1 && gradient ? frames[s + 1] - frames[s]
                                                  : 1;
        return n > 1 ? (float)n : 1.0f;
    }
    PK_DEVICE int64_t frames_of(int64_t s) const { return frames[s + 1] - frames[s]; }
    PK_DEVICE int64_t states_of(int64_t s) const { return 2 * (labels[s + 1] - labels[s]) + 1; }
    PK_DEVICE int64_t class_of(int64_t s, int64_t state) const {
        return state % 2 ? label[labels[s] + state / 2] : blank;
    }
    /* Whether a state may be reached from the one two before it. */
    PK_DEVICE int skips(int64_t s, int64_t state) const {
        const int64_t *own = label + labels[s];
        return state % 2 && state > 1 && own[state / 2] != own[state / 2 - 1];
    }
    PK_DEVICE float log_p(int64_t s, int64_t t, int64_t state) const {
        return x[t * classes + class_of(s, state)] - lse[t];
    }
    PK_DEVICE float *rows_of(int64_t s) const { return rows + 4 * labels[s] + 2 * s; }
    /* Where the states of a sequence begin in alpha. */
    PK_DEVICE float *alpha_of(int64_t sequence) const {
        int64_t at = 0;
        for (int64_t s = 0; s < sequence; s++) at += frames_of(s) * states_of(s);
        return alpha + at;
    }
};

/* log(e^a + e^b + e^c) */
PK_DEVICE float log_sum(float a, float b, float c) {
    const float m = fmaxf(a, fmaxf(b, c));
    if (m == -INFINITY) return m;
    return m + logf(expf(a - m) + (expf(b - m) + expf(c - m)));
}

/* Takes the largest of a row of states out; gives it. */
PK_DEVICE float level_out(float *row, int64_t states) {
    float most = row[0];
    for (int64_t i = 1; i < states; i++) most = fmaxf(most, row[i]);
    for (int64_t i = 0; i < states; i++) row[i] -= most;
    return most;
}

/* The states of a frame t of a sequence that begins at frame `first`; gives what was taken out. */
PK_DEVICE float step(const ctc &k, int64_t s, int64_t first, int64_t t, const float *from,
                     float *to) {
    for (int64_t i = 0; i < k.states_of(s); i++) {
        float ways = i > 1 ? -INFINITY : 0.0f;
        if (t > first)
            ways = log_sum(from[i], i > 0 ? from[i - 1] : -INFINITY,
                           k.skips(s, i) ? from[i - 2] : -INFINITY);
        to[i] = ways + k.log_p(s, t, i);
    }
    return level_out(to, k.states_of(s));
}

struct frame_each {
    ctc k;
    PK_DEVICE void operator()(int64_t t) const {
        const float *x = k.x + t * k.classes;
        float most = x[0], sum = 0.0f;
        for (int64_t c = 1; c < k.classes; c++) most = fmaxf(most, x[c]);
        for (int64_t c = 0; c < k.classes; c++) sum += expf(x[c] - most);
        k.lse[t] = most + logf(sum);
    }
};
struct forward_each {
    ctc k;
    PK_DEVICE void operator()(int64_t s) const {
        const int64_t first = k.frames[s], last = k.frames[s + 1], states = k.states_of(s);
        float *alpha = k.rows_of(s), *before = alpha + states;
        double total = 0.0;
        for (int64_t t = first; t < last; t++) {
            float *swap = alpha;
            alpha = before, before = swap;
            total += step(k, s, first, t, before, alpha);
        }
        float nll = 0.0f;
        if (last > first)
            nll = (float)-(total + log_sum(alpha[states - 1],
                                           states > 1 ? alpha[states - 2] : -INFINITY, -INFINITY)) /
                  k.divisor(s, 0);
        pk_put(k.nll_out + s, nll, k.add);
    }
};
struct backward_each {
    ctc k;
    PK_DEVICE void operator()(int64_t s) const {
        const int64_t first = k.frames[s], last = k.frames[s + 1], states = k.states_of(s);
        float *alpha = k.alpha_of(s), *beta = k.rows_of(s), *next = beta + states;
        for (int64_t t = first; t < last; t++)
            step(k, s, first, t, alpha + (t - first - 1) * states, alpha + (t - first) * states);
        for (int64_t t = last; t-- > first;) {
            float *swap = beta;
            beta = next, next = swap;
            for (int64_t i = 0; i < states; i++) {
                if (t == last - 1) {
                    beta[i] = i + 2 < states ? -INFINITY : 0.0f;
                    continue;
                }
                float way[3] = {-INFINITY, -INFINITY, -INFINITY};
                for (int64_t far = 0; far < 3 && i + far < states; far++)
                    if (far < 2 || k.skips(s, i + 2))
                        way[far] = next[i + far] + k.log_p(s, t + 1, i + far);
                beta[i] = log_sum(way[0], way[1], way[2]);
            }
            level_out(beta, states);
            gradient(s, t, alpha + (t - first) * states, beta);
        }
    }
    /* alpha is overwritten */
    PK_DEVICE void gradient(int64_t s, int64_t t, float *alpha, const float *beta) const {
        float *dx = k.dx + t * k.classes;
        const float scale = k.dnll[s] / k.divisor(s, 1);
        for (int64_t c = 0; c < k.classes; c++)
            pk_put(dx + c, scale * expf(k.x[t * k.classes + c] - k.lse[t]), k.add);
        const int64_t states = k.states_of(s);
        for (int64_t i = 0; i < states; i++) alpha[i] += beta[i];
        level_out(alpha, states);
        float sum = 0.0f;
        for (int64_t i = 0; i < states; i++) sum += alpha[i] = expf(alpha[i]);
        for (int64_t i = 0; i < states; i++) dx[k.class_of(s, i)] -= scale / sum * alpha[i];
    }
};
struct check_class {
    pk_gate gate;
    ctc k;
    PK_DEVICE void operator()(int64_t t) const {
        if (k.label[t] < 0 || k.label[t] >= k.classes || k.label[t] == k.blank)
            pk_fault_at(gate, "a label is %lld: not one of %lld classes, or the blank",
                        pk_sequence_of(k.labels, k.sequences, t), k.label[t], k.classes);
    }
};
struct check_frames {
    pk_gate gate;
    ctc k;
    PK_DEVICE void operator()(int64_t s) const {
        int64_t needed = k.labels[s + 1] - k.labels[s];
        for (int64_t i = k.labels[s] + 1; i < k.labels[s + 1]; i++)
            needed += k.label[i] == k.label[i - 1];
        if (needed > k.frames_of(s))
            pk_fault_at(gate, "the label of the sequence needs %lld frames, there are %lld", s,
                        needed, k.frames_of(s));
    }
};

pk_status find(const pk_call *call, const pk_view *x, const pk_view *label, ctc *k) {
    k->x = pk_f32(x), k->label = pk_i64(label), k->frames = x->offsets, k->labels = label->offsets;
    k->sequences = x->sequences, k->classes = pk_inner(x, 1), k->blank = call->attr[0].i;
    k->norm = call->attr[1].i, k->add = pk_adds(call, 0);
    PK_TRY(pk_check_packed(call, "logits", x));
    PK_TRY(pk_check_packed(call, "label", label));
    PK_TRY(pk_check_size(call, "label", label, label->dim[0]));
    if (label->sequences != x->sequences)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld sequences of frames, %lld of labels",
                       (long long)x->sequences, (long long)label->sequences);
    if (k->blank < 0 || k->blank >= k->classes)
        return pk_fail(call, PK_BAD_CALL, -1, "blank %lld of %lld classes", (long long)k->blank,
                       (long long)k->classes);
    pk_gate gate = pk_gate_of(call);
    PK_TRY(pk_each_behind(call, gate, label->dim[0], check_class{gate, *k}));
    gate = pk_gate_of(call);
    return pk_each_behind(call, gate, k->sequences, check_frames{gate, *k});
}
/* Cuts the scratch up and finds the log-sums; rows lie at its end. */
pk_status take_room(const pk_call *call, int64_t tokens, int64_t labels, ctc *k) {
    const pk_view *work = &call->out[1];
    const int64_t lattice = pk_count(work) - tokens - 4 * labels - 2 * k->sequences;
    if (lattice < 0)
        return pk_fail(call, PK_BAD_SHAPE, -1, "scratch of %lld floats is too small",
                       (long long)pk_count(work));
    k->lse = pk_f32(work), k->alpha = k->lse + tokens, k->rows = k->alpha + lattice;
    return pk_each(call, tokens, frame_each{*k});
}

pk_status ctc_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *label = &call->in[1], *nll = &call->out[0];
    ctc k = {};
    k.nll_out = pk_f32(nll);
    PK_TRY(find(call, x, label, &k));
    PK_TRY(pk_check_size(call, "nll", nll, k.sequences));
    PK_TRY(take_room(call, x->dim[0], label->dim[0], &k));
    return pk_each(call, k.sequences, forward_each{k});
}
pk_status ctc_backward(const pk_call *call) {
    const pk_view *in = call->in, *x = &in[0], *label = &in[1];
    ctc k = {};
    k.dnll = pk_f32(&in[2]), k.dx = pk_f32(&call->out[0]);
    PK_TRY(find(call, x, label, &k));
    PK_TRY(pk_check_size(call, "dnll", &in[2], k.sequences));
    PK_TRY(pk_check_size(call, "dlogits", &call->out[0], pk_count(x)));
    PK_TRY(take_room(call, x->dim[0], label->dim[0], &k));
    return pk_each(call, k.sequences, backward_each{k});
}
} /* namespace */

PK_OP(ctc,
      {"ctc.forward(logits: f32, label: i64; blank: int, norm: int) -> (nll: f32, work: f32)",
       ctc_forward},
      {"ctc.backward(logits: f32, label: i64, dnll: f32; blank: int, norm: int)"
       " -> (dlogits: f32, work: f32)",
       ctc_backward});
