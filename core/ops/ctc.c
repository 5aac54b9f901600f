/* ctc: negative log-likelihood of labels under all their alignments with frames.
 *
 * A sequence with n labels has 2n + 1 states: a blank, label, blank ... A state is reached from
 * itself, from the one before, and a label from the label before where the two differ. alpha[t, i]
 * is the log of the sum over all ways to state i at frame t, that frame's class included. The
 * largest of each frame is taken out and added up apart: long sequences keep their digits. */
#include "elementwise.h"
#include "packed.h"
#include "rows.h"

#define NOWHERE (-__builtin_inff())

/* logits, dlogits [T, classes]; label [L]; nll, dnll [sequences]; scratch: lse [T], log-sums of the
 * frames; alpha, of all frames (backwards only); rows, two of states for each sequence */
typedef struct ctc {
    const float *x, *dnll;
    float *nll_out, *dx, *lse, *alpha, *rows;
    const int64_t *label, *frames, *labels; /* frames, labels: offsets */
    int64_t sequences, classes, blank;
    int64_t norm; /* 0 nothing, 1 gradients over frames, 2 the loss over labels */
    int add;
} ctc;

static int64_t count(const int64_t *offsets, int64_t s) { return offsets[s + 1] - offsets[s]; }

/* What the loss of a sequence (or only its gradient, with norm 1) is divided by. */
static float divisor(const ctc *k, int64_t s, int gradient) {
    const int64_t n = k->norm == 2               ? count(k->labels, s)
                      : k->norm == 1 && gradient ? count(k->frames, s)
                                                 : 1;
    return (float)pk_max_i64(1, n);
}

/* The class of a state of a sequence whose labels begin at `label`. */
static int64_t class_of(const ctc *k, const int64_t *label, int64_t state) {
    return state % 2 ? label[state / 2] : k->blank;
}
/* 0 where a state may be reached from the one two before it, else minus infinity. */
static float skip_of(const int64_t *label, int64_t state) {
    return state % 2 && state > 1 && label[state / 2] != label[state / 2 - 1] ? 0.0f : NOWHERE;
}

/* log(e^a + e^b + e^c) */
PK_INLINE pk_vec log_sum(pk_vec a, pk_vec b, pk_vec c) {
    const pk_vec none = pk_set1(NOWHERE), m = pk_max(a, pk_max(b, c));
    const pk_mask nothing = pk_eq(m, none);
    const pk_vec at = pk_select(nothing, pk_zero(), m);
    const pk_vec sum =
        pk_add(pk_exp(pk_sub(a, at)), pk_add(pk_exp(pk_sub(b, at)), pk_exp(pk_sub(c, at))));
    return pk_select(nothing, none, pk_add(at, pk_log(sum)));
}

/* Takes the largest of a row of states out; gives it. */
static float level_out(float *row, int64_t states) {
    const float most = pk_row_max(row, states);
    PK_FOR16(i, c, states) pk_store_n(row + i, pk_sub(pk_load_n(row + i, c), pk_set1(most)), c);
    return most;
}

/* Where the states of a sequence begin in alpha. */
static int64_t lattice_of(const ctc *k, int64_t sequence) {
    int64_t at = 0;
    for (int64_t s = 0; s < sequence; s++)
        at += count(k->frames, s) * (2 * count(k->labels, s) + 1);
    return at;
}

static pk_status find(const pk_call *call, const pk_view *x, const pk_view *label, ctc *k) {
    k->x = pk_f32(x), k->label = pk_i64(label), k->frames = x->offsets, k->labels = label->offsets;
    k->sequences = x->sequences, k->classes = pk_inner(x, 1), k->blank = call->attr[0].i;
    k->norm = call->attr[1].i, k->add = pk_adds(call, 0);
    pk_status bad = pk_check_packed(call, "logits", x);
    if (!bad) bad = pk_check_packed(call, "label", label);
    if (!bad) bad = pk_check_size(call, "label", label, label->dim[0]);
    if (!bad && label->sequences != x->sequences)
        bad = pk_fail(call, PK_BAD_SHAPE, -1, "%lld sequences of frames, %lld of labels",
                      (long long)x->sequences, (long long)label->sequences);
    if (!bad && (k->blank < 0 || k->blank >= k->classes))
        bad = pk_fail(call, PK_BAD_CALL, -1, "blank %lld of %lld classes", (long long)k->blank,
                      (long long)k->classes);
    return bad;
}

/* Labels are classes, no blanks, and there are frames for them. */
static pk_status check_labels(const pk_call *call, const ctc *k) {
    for (int64_t s = 0; s < k->sequences; s++) {
        const int64_t *label = k->label + k->labels[s], n = count(k->labels, s);
        int64_t needed = n;
        for (int64_t i = 0; i < n; i++) {
            if (label[i] < 0 || label[i] >= k->classes || label[i] == k->blank)
                return pk_fail(call, PK_BAD_DATA, s,
                               "label %lld of sequence %lld is %lld: not one of %lld classes, or "
                               "the blank",
                               (long long)i, (long long)s, (long long)label[i],
                               (long long)k->classes);
            needed += i > 0 && label[i] == label[i - 1];
        }
        if (needed > count(k->frames, s))
            return pk_fail(call, PK_BAD_DATA, s,
                           "the label of sequence %lld needs %lld frames, there are %lld",
                           (long long)s, (long long)needed, (long long)count(k->frames, s));
    }
    return PK_OK;
}

static void frames_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const ctc *k = context;
    (void)thread, (void)scratch;
    for (int64_t t = begin; t < end; t++) {
        const float *x = k->x + t * k->classes, most = pk_row_max(x, k->classes);
        pk_vec sum = pk_zero();
        PK_FOR16(i, c, k->classes)
            sum = pk_add(sum, pk_exp(pk_sub(pk_load_or(x + i, c, NOWHERE), pk_set1(most))));
        k->lse[t] = most + pk_log1(pk_sum16(sum));
    }
}

/* One frame: to[i] = log_sum(from[i], from[i - 1], from[i - 2] where it may be skipped) + log p. */
static void step(const ctc *k, const int64_t *label, int64_t states, int64_t t, const float *from,
                 float *to) {
    const float *x = k->x + t * k->classes, lse = k->lse[t];
    float lanes[3][16];
    for (int64_t i = 0; i < states; i += 16) {
        const int64_t n = pk_min_i64(16, states - i);
        for (int64_t j = 0; j < n; j++) {
            const int64_t at = i + j;
            lanes[0][j] = at > 0 ? from[at - 1] : NOWHERE;
            lanes[1][j] = at > 1 ? from[at - 2] + skip_of(label, at) : NOWHERE;
            lanes[2][j] = x[class_of(k, label, at)] - lse;
        }
        const pk_vec sum = log_sum(pk_load_or(from + i, n, NOWHERE),
                                   pk_load_or(lanes[0], n, NOWHERE),
                                   pk_load_or(lanes[1], n, NOWHERE));
        pk_store_n(to + i, pk_add(sum, pk_load_n(lanes[2], n)), n);
    }
}

/* Frame t of a sequence that begins at frame `first`; gives what was taken out. */
static float advance(const ctc *k, const int64_t *label, int64_t states, int64_t first, int64_t t,
                     const float *before, float *alpha) {
    if (t > first) step(k, label, states, t, before, alpha);
    for (int64_t i = 0; t == first && i < states; i++)
        alpha[i] = i > 1 ? NOWHERE : k->x[t * k->classes + class_of(k, label, i)] - k->lse[t];
    return level_out(alpha, states);
}

static float *rows_of(const ctc *k, int64_t s) { return k->rows + 4 * k->labels[s] + 2 * s; }

static void forward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const ctc *k = context;
    (void)thread, (void)scratch;
    for (int64_t s = begin; s < end; s++) {
        const int64_t *label = k->label + k->labels[s], frames = count(k->frames, s),
                      states = 2 * count(k->labels, s) + 1, first = k->frames[s];
        float *alpha = rows_of(k, s), *before = alpha + states, nll = 0.0f;
        double total = 0.0;
        for (int64_t t = 0; t < frames; t++) {
            float *swap = alpha;
            alpha = before, before = swap;
            total += (double)advance(k, label, states, first, first + t, before, alpha);
        }
        if (frames > 0) {
            const float a = alpha[states - 1], b = states > 1 ? alpha[states - 2] : NOWHERE;
            const pk_vec last = log_sum(pk_set1(a), pk_set1(b), pk_set1(NOWHERE));
            nll = (float)-(total + (double)pk_first(last)) / divisor(k, s, 0);
        }
        k->nll_out[s] = k->add ? k->nll_out[s] + nll : nll;
    }
}

/* Cuts the scratch up, behind `lattice` states, and finds the log-sums. */
static pk_status take_room(const pk_call *call, int64_t tokens, int64_t labels, int64_t lattice,
                           ctc *k) {
    const pk_view *work = &call->out[1];
    if (pk_count(work) < tokens + lattice + 4 * labels + 2 * k->sequences)
        return pk_fail(call, PK_BAD_SHAPE, -1, "scratch of %lld floats is too small",
                       (long long)pk_count(work));
    k->lse = pk_f32(work), k->alpha = k->lse + tokens, k->rows = k->alpha + lattice;
    pk_parallel(call, tokens, pk_max_i64(1, 4096 / k->classes), frames_task, k);
    return PK_OK;
}

static pk_status ctc_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *label = &call->in[1], *nll = &call->out[0];
    ctc k = {.nll_out = pk_f32(nll)};
    pk_status bad = find(call, x, label, &k);
    if (!bad) bad = pk_check_size(call, "nll", nll, k.sequences);
    if (!bad) bad = check_labels(call, &k);
    if (!bad) bad = take_room(call, x->dim[0], label->dim[0], 0, &k);
    if (bad) return bad;
    pk_parallel(call, k.sequences, 1, forward_task, &k);
    return PK_OK;
}

/* beta[i]: log of the sum over all ways from state i of the present frame to the end, that frame's
 * class left out. Backwards from frame t + 1, whose log p is x - lse. */
static void step_back(const ctc *k, const int64_t *label, int64_t states, int64_t t,
                      const float *from, float *to) {
    const float *x = k->x + t * k->classes, lse = k->lse[t];
    float lanes[3][16];
    for (int64_t i = 0; i < states; i += 16) {
        const int64_t n = pk_min_i64(16, states - i);
        for (int64_t j = 0; j < n; j++)
            for (int64_t far = 0; far < 3; far++) {
                const int64_t at = i + j + far;
                float way = NOWHERE;
                if (at < states) way = from[at] + x[class_of(k, label, at)] - lse;
                lanes[far][j] = far == 2 && at < states ? way + skip_of(label, at) : way;
            }
        const pk_vec sum = log_sum(pk_load_or(lanes[0], n, NOWHERE),
                                   pk_load_or(lanes[1], n, NOWHERE),
                                   pk_load_or(lanes[2], n, NOWHERE));
        pk_store_n(to + i, sum, n);
    }
}

/* dx = dnll (softmax(x) - the share of all ways that pass by each class); alpha is overwritten. */
static void gradient_row(const ctc *k, const int64_t *label, int64_t states, int64_t s, int64_t t,
                         float *alpha, const float *beta) {
    const float *x = k->x + t * k->classes, scale = k->dnll[s] / divisor(k, s, 1);
    float *dx = k->dx + t * k->classes;
    PK_FOR16(i, c, k->classes) {
        const pk_vec p = pk_exp(pk_sub(pk_load_n(x + i, c), pk_set1(k->lse[t])));
        pk_put(dx + i, pk_mul(pk_set1(scale), p), c, k->add);
    }
    PK_FOR16(i, c, states)
        pk_store_n(alpha + i, pk_add(pk_load_n(alpha + i, c), pk_load_n(beta + i, c)), c);
    level_out(alpha, states);
    pk_vec sum = pk_zero();
    PK_FOR16(i, c, states) {
        const pk_vec share = pk_exp(pk_load_or(alpha + i, c, NOWHERE));
        pk_store_n(alpha + i, share, c);
        sum = pk_add(sum, share);
    }
    const float each = scale / pk_sum16(sum);
    for (int64_t i = 0; i < states; i++) dx[class_of(k, label, i)] -= each * alpha[i];
}

static void backward_task(void *context, int64_t begin, int64_t end, int32_t thread,
                          void *scratch) {
    const ctc *k = context;
    (void)thread, (void)scratch;
    for (int64_t s = begin; s < end; s++) {
        const int64_t *label = k->label + k->labels[s], frames = count(k->frames, s),
                      states = 2 * count(k->labels, s) + 1, first = k->frames[s];
        float *beta = rows_of(k, s), *next = beta + states, *alpha = k->alpha + lattice_of(k, s);
        for (int64_t t = 0; t < frames; t++) {
            float *row = alpha + t * states;
            advance(k, label, states, first, first + t, t > 0 ? row - states : NULL, row);
        }
        for (int64_t t = frames; t-- > 0;) {
            float *swap = beta;
            beta = next, next = swap;
            if (t == frames - 1)
                for (int64_t i = 0; i < states; i++) beta[i] = i + 2 < states ? NOWHERE : 0.0f;
            else step_back(k, label, states, first + t + 1, next, beta);
            level_out(beta, states);
            gradient_row(k, label, states, s, first + t, alpha + t * states, beta);
        }
    }
}

static pk_status ctc_backward(const pk_call *call) {
    const pk_view *in = call->in, *x = &in[0], *label = &in[1];
    ctc k = {.dnll = pk_f32(&in[2]), .dx = pk_f32(&call->out[0])};
    pk_status bad = find(call, x, label, &k);
    if (!bad) bad = pk_check_size(call, "dnll", &in[2], k.sequences);
    if (!bad) bad = pk_check_size(call, "dlogits", &call->out[0], pk_count(x));
    if (!bad) bad = check_labels(call, &k);
    if (!bad) bad = take_room(call, x->dim[0], label->dim[0], lattice_of(&k, k.sequences), &k);
    if (bad) return bad;
    pk_parallel(call, k.sequences, 1, backward_task, &k);
    return PK_OK;
}

PK_OP(ctc,
      {"ctc.forward(logits: f32, label: i64; blank: int, norm: int) -> (nll: f32, work: f32)",
       ctc_forward},
      {"ctc.backward(logits: f32, label: i64, dnll: f32; blank: int, norm: int)"
       " -> (dlogits: f32, work: f32)",
       ctc_backward});
