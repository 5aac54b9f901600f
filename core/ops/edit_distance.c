/* edit_distance: the fewest insertions, deletions and substitutions that turn a sequence into
 * another. */
#include "pk_kernel.h"

/* Sequences of tokens: packed with offsets, or rows of `width` tokens of which `length` count (all
 * where it is NULL). */
typedef struct tokens {
    const int64_t *ids, *offsets, *length;
    int64_t width;
} tokens;

typedef struct task_data {
    tokens hyps, refs;
    const int64_t *ignored; /* count, then ids */
    int64_t *work;          /* for each sequence: 2 * refs + 1 */
    float *y;               /* [sequences] */
    int normalized;
} task_data;

static int64_t start_of(const tokens *t, int64_t s) {
    return t->offsets ? t->offsets[s] : s * t->width;
}

static int64_t length_of(const tokens *t, int64_t s) {
    return t->length ? t->length[s] : t->offsets ? t->offsets[s + 1] - t->offsets[s] : t->width;
}

static int is_ignored(const int64_t *ignored, int64_t id) {
    for (int64_t i = 1; i <= ignored[0]; i++)
        if (ignored[i] == id) return 1;
    return 0;
}

/* One row of the table at a time: cost[j] turns the hypothesis so far into the first j tokens of
 * the reference. */
static int64_t distance(const task_data *k, int64_t s, int64_t *kept) {
    const int64_t *hyp = k->hyps.ids + start_of(&k->hyps, s),
                  *ref = k->refs.ids + start_of(&k->refs, s);
    const int64_t rows = length_of(&k->hyps, s), all = length_of(&k->refs, s);
    int64_t *cost = k->work + 2 * start_of(&k->refs, s) + s, *wanted = cost, n = 0;
    for (int64_t j = 0; j < all; j++) n += !is_ignored(k->ignored, ref[j]);
    wanted = cost + n + 1;
    for (int64_t j = 0, i = 0; j < all; j++)
        if (!is_ignored(k->ignored, ref[j])) wanted[i++] = ref[j];
    for (int64_t j = 0; j <= n; j++) cost[j] = j;
    for (int64_t i = 0; i < rows; i++) {
        if (is_ignored(k->ignored, hyp[i])) continue;
        int64_t corner = cost[0]++; /* the row before, one column to the left */
        for (int64_t j = 1; j <= n; j++) {
            const int64_t changed = corner + (hyp[i] != wanted[j - 1]);
            corner = cost[j];
            cost[j] = pk_min_i64(changed, 1 + pk_min_i64(corner, cost[j - 1]));
        }
    }
    *kept = n;
    return cost[n];
}

static void distance_task(void *context, int64_t begin, int64_t end, int32_t thread,
                          void *scratch) {
    (void)thread, (void)scratch;
    const task_data *k = context;
    for (int64_t s = begin; s < end; s++) {
        int64_t n;
        const double d = (double)distance(k, s, &n);
        k->y[s] = (float)(k->normalized ? d / (double)n : d);
    }
}

/* The number of sequences; -1: ids, offsets and lengths do not fit each other. */
static int64_t find(const pk_view *ids, const pk_view *length, tokens *t) {
    const int64_t n = ids->offsets ? ids->sequences : ids->ndim > 0 ? ids->dim[0] : -1;
    *t = (tokens){pk_i64(ids), ids->offsets, length->data ? pk_i64(length) : NULL,
                  ids->ndim > 0 ? pk_inner(ids, 1) : 0};
    if (t->length && pk_count(length) != n) return -1;
    if (t->offsets && (t->width != 1 || t->offsets[n] != ids->dim[0])) return -1;
    return n;
}

static pk_status check_lengths(const pk_call *call, const char *what, const tokens *t, int64_t n) {
    for (int64_t s = 0; t->length && s < n; s++) {
        const int64_t room = t->offsets ? t->offsets[s + 1] - t->offsets[s] : t->width;
        if (t->length[s] < 0 || t->length[s] > room)
            return pk_fail(call, PK_BAD_DATA, s, "%s of %lld tokens, there are %lld", what,
                           (long long)t->length[s], (long long)room);
    }
    return PK_OK;
}

/* hyps, refs [T], [T, 1] with offsets or [N, L]; their lengths [N] or none; y [N, 1]; work [2 *
 * refs + N] */
static pk_status forward(const pk_call *call) {
    task_data k = {.ignored = call->attr[1].list,
                   .work = pk_i64(&call->out[1]),
                   .y = pk_f32(&call->out[0]),
                   .normalized = call->attr[0].i != 0};
    const int64_t n = find(&call->in[0], &call->in[2], &k.hyps),
                  m = find(&call->in[1], &call->in[3], &k.refs);
    const int64_t room = 2 * pk_count(&call->in[1]) + n;
    if (n < 0 || n != m || pk_count(&call->out[0]) != n || pk_count(&call->out[1]) < room)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld hypotheses, %lld references, %lld results",
                       (long long)n, (long long)m, (long long)pk_count(&call->out[0]));
    if (pk_adds(call, 0)) return pk_fail(call, PK_BAD_CALL, -1, "a distance cannot be added to");
    pk_status bad = check_lengths(call, "a hypothesis", &k.hyps, n);
    if (!bad) bad = check_lengths(call, "a reference", &k.refs, n);
    for (int64_t s = 0; !bad && k.normalized && s < n; s++) {
        const int64_t *ref = k.refs.ids + start_of(&k.refs, s), all = length_of(&k.refs, s);
        int64_t kept = 0;
        for (int64_t j = 0; j < all && !kept; j++) kept += !is_ignored(k.ignored, ref[j]);
        if (!kept)
            bad = pk_fail(call, PK_BAD_DATA, s, "an empty reference has no normalized distance");
    }
    if (bad) return bad;
    pk_parallel(call, n, 1, distance_task, &k);
    return PK_OK;
}

PK_OP(edit_distance, {"edit_distance.forward(hyps: i64, refs: i64, hyps_length?: i64, "
                      "refs_length?: i64; normalized: bool, "
                      "ignored: list) -> (y: f32, work: i64)",
                      forward});
