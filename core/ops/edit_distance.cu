/* edit_distance: the fewest insertions, deletions and substitutions that turn a sequence into
 * another. */
#include "pk_cuda.cuh"

namespace {
const int MOST_IGNORED = 32;

/* Sequences of tokens: packed with offsets, or rows of `width` tokens of which `length` count (all
 * where it is NULL). */
struct tokens {
    const int64_t *ids, *offsets, *length;
    int64_t width;
    PK_DEVICE int64_t start(int64_t s) const { return offsets ? offsets[s] : s * width; }
    PK_DEVICE int64_t room(int64_t s) const {
        return offsets ? offsets[s + 1] - offsets[s] : width;
    }
    PK_DEVICE int64_t count(int64_t s) const { return length ? length[s] : room(s); }
};

struct ignored_ids {
    int64_t count;
    int64_t id[MOST_IGNORED];
    PK_DEVICE int has(int64_t wanted) const {
        for (int64_t i = 0; i < count; i++)
            if (id[i] == wanted) return 1;
        return 0;
    }
};

/* One row of the table at a time: cost[j] turns the hypothesis so far into the first j tokens of
 * the reference. */
struct find_distance {
    float *y;      /* [sequences] */
    int64_t *work; /* for each sequence: 2 * refs + 1 */
    tokens hyps, refs;
    ignored_ids ignored;
    int normalized;
    PK_DEVICE void operator()(int64_t s) const {
        const int64_t *hyp = hyps.ids + hyps.start(s), *ref = refs.ids + refs.start(s);
        const int64_t rows = hyps.count(s), all = refs.count(s);
        int64_t *cost = work + 2 * refs.start(s) + s, n = 0;
        for (int64_t j = 0; j < all; j++) n += !ignored.has(ref[j]);
        int64_t *wanted = cost + n + 1;
        for (int64_t j = 0, i = 0; j < all; j++)
            if (!ignored.has(ref[j])) wanted[i++] = ref[j];
        for (int64_t j = 0; j <= n; j++) cost[j] = j;
        for (int64_t i = 0; i < rows; i++) {
            if (ignored.has(hyp[i])) continue;
            int64_t corner = cost[0]++; /* the row before, one column to the left */
            for (int64_t j = 1; j <= n; j++) {
                const int64_t changed = corner + (hyp[i] != wanted[j - 1]);
                corner = cost[j];
                const int64_t other = 1 + (corner < cost[j - 1] ? corner : cost[j - 1]);
                cost[j] = changed < other ? changed : other;
            }
        }
        y[s] = (float)(normalized ? (double)cost[n] / (double)n : (double)cost[n]);
    }
};

struct check_length {
    pk_gate gate;
    tokens t;
    const char *what;
    PK_DEVICE void operator()(int64_t s) const {
        if (t.count(s) < 0 || t.count(s) > t.room(s))
            pk_fault_at(gate, what, s, t.count(s), t.room(s));
    }
};
struct check_reference {
    pk_gate gate;
    tokens refs;
    ignored_ids ignored;
    PK_DEVICE void operator()(int64_t s) const {
        for (int64_t j = 0; j < refs.count(s); j++)
            if (!ignored.has(refs.ids[refs.start(s) + j])) return;
        pk_fault_at(gate, "an empty reference has no normalized distance", s, 0, 0);
    }
};

/* The number of sequences; -1: ids and lengths do not fit each other. */
int64_t find(const pk_view *ids, const pk_view *length, tokens *t) {
    const int64_t n = ids->offsets ? ids->sequences : ids->ndim > 0 ? ids->dim[0] : -1;
    *t = tokens{pk_i64(ids), ids->offsets, length->data ? pk_i64(length) : NULL,
                ids->ndim > 0 ? pk_inner(ids, 1) : 0};
    if (t->length && pk_count(length) != n) return -1;
    return t->offsets && t->width != 1 ? -1 : n;
}

pk_status check(const pk_call *call, const tokens &t, int64_t n, const char *what) {
    if (!t.length) return PK_OK;
    const pk_gate gate = pk_gate_of(call);
    return pk_each_behind(call, gate, n, check_length{gate, t, what});
}

/* hyps, refs [T], [T, 1] with offsets or [N, L]; their lengths [N] or none; y [N, 1]; work
 * [2 * refs + N] */
pk_status forward(const pk_call *call) {
    const int64_t *list = call->attr[1].list;
    find_distance k = {pk_f32(&call->out[0]), pk_i64(&call->out[1]), {}, {}, {},
                       call->attr[0].i != 0};
    const int64_t n = find(&call->in[0], &call->in[2], &k.hyps),
                  m = find(&call->in[1], &call->in[3], &k.refs);
    const int64_t room = 2 * pk_count(&call->in[1]) + n;
    if (n < 0 || n != m || pk_count(&call->out[0]) != n || pk_count(&call->out[1]) < room)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld hypotheses, %lld references, %lld results",
                       (long long)n, (long long)m, (long long)pk_count(&call->out[0]));
    if (pk_adds(call, 0) || list[0] > MOST_IGNORED)
        return pk_fail(call, PK_BAD_CALL, -1, "a distance cannot be added to, %lld ids are ignored",
                       (long long)list[0]);
    k.ignored.count = list[0];
    for (int64_t i = 0; i < list[0]; i++) k.ignored.id[i] = list[i + 1];
    PK_TRY(check(call, k.hyps, n, "a hypothesis of %lld tokens, there are %lld"));
    PK_TRY(check(call, k.refs, n, "a reference of %lld tokens, there are %lld"));
    if (k.normalized) {
        const pk_gate gate = pk_gate_of(call);
        PK_TRY(pk_each_behind(call, gate, n, check_reference{gate, k.refs, k.ignored}));
    }
    return pk_each(call, n, k);
}
} /* namespace */

PK_OP(edit_distance, {"edit_distance.forward(hyps: i64, refs: i64, hyps_length?: i64, "
                      "refs_length?: i64; normalized: bool, "
                      "ignored: list) -> (y: f32, work: i64)",
                      forward});
