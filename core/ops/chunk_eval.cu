/* chunk_eval: counts the chunks of tag sequences.  State: inferred, labelled, correct chunks.  The
 * rules are those of chunk_eval.c. */
#include "rows.cuh"

namespace {
/* In the order of SCHEMES in paddlecli/ops/chunk_eval.py. */
enum { IOB, IOE, IOBES, PLAIN, SCHEMES };
const int MOST_EXCLUDED = 32;

/* Positions of a chunk's begin, inside, end and single tag in a scheme; -1: it has none. */
struct scheme {
    int64_t tags, begin, inside, end, single;
};
/* Where one of the two tag sequences stands: the token before, and the start of the open chunk. */
struct walk {
    int64_t type, tag, start;
};

struct count_sequence {
    int64_t *out;
    const int64_t *inference, *label, *offsets;
    scheme s;
    int64_t types, excluded_count;
    int64_t excluded[MOST_EXCLUDED];

    /* Type of the chunk that ended before the token, `types` where none did; it began at *from. */
    PK_DEVICE int64_t step(walk &w, int64_t value, int64_t t, int64_t *from) const {
        const int64_t type = value / s.tags, tag = value % s.tags;
        const int within = w.tag == s.end || w.tag == s.single || tag == s.begin || tag == s.single;
        const int cut = w.start >= 0 && (type != w.type || within);
        const int64_t ended = cut ? w.type : types;
        *from = w.start;
        if (cut) w.start = -1;
        if (type != types && w.start < 0) w.start = t;
        w.type = type, w.tag = tag;
        return ended;
    }
    PK_DEVICE int counts(int64_t type) const {
        if (type == types) return 0;
        for (int64_t i = 0; i < excluded_count; i++)
            if (excluded[i] == type) return 0;
        return 1;
    }
    PK_DEVICE void operator()(int64_t q) const {
        walk found = {types, 0, -1}, wanted = found;
        const int64_t first = offsets[q], last = offsets[q + 1], outside = types * s.tags;
        int64_t count[3] = {0, 0, 0};
        for (int64_t t = first; t <= last; t++) { /* one token beyond, outside of all chunks */
            int64_t found_from, wanted_from;
            const int64_t a = step(found, t < last ? inference[t] : outside, t, &found_from);
            const int64_t b = step(wanted, t < last ? label[t] : outside, t, &wanted_from);
            count[0] += counts(a), count[1] += counts(b);
            count[2] += a == b && found_from == wanted_from && counts(a);
        }
        for (int i = 0; i < 3; i++)
            if (count[i] != 0) pk_atomic_add(out + i, count[i]);
    }
};

struct check_sequence {
    pk_gate gate;
    const int64_t *tags, *offsets;
    int64_t outside;
    const char *what;
    PK_DEVICE void operator()(int64_t q) const {
        for (int64_t t = offsets[q + 1] - 1; t >= offsets[q]; t--)
            if (tags[t] < 0 || tags[t] > outside) pk_fault_at(gate, what, q, tags[t], outside);
    }
};

pk_status check(const pk_call *call, const pk_view *tags, const int64_t *offsets, int64_t sequences,
                int64_t outside, const char *what) {
    const pk_gate gate = pk_gate_of(call);
    return pk_each_behind(call, gate, sequences,
                          check_sequence{gate, pk_i64(tags), offsets, outside, what});
}

/* inference, label [T] or [T, 1] on one axis, state [3]; attributes chunk_types, scheme, excluded
 */
pk_status forward(const pk_call *call) {
    const scheme known[SCHEMES] = {
        {2, 0, 1, -1, -1}, {2, -1, 0, 1, -1}, {4, 0, 1, 2, 3}, {1, -1, -1, -1, -1}};
    const pk_view *inference = &call->in[0], *label = &call->in[1];
    const int64_t types = call->attr[0].i, which = call->attr[1].i;
    const int64_t *excluded = call->attr[2].list;
    if (which < 0 || which >= SCHEMES || types < 1 || excluded[0] > MOST_EXCLUDED)
        return pk_fail(call, PK_BAD_CALL, -1, "scheme %lld of %lld types, %lld excluded",
                       (long long)which, (long long)types, (long long)excluded[0]);
    if (inference->offsets == NULL || pk_count(inference) != pk_count(label))
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld inferred tags, %lld labels, offsets %s",
                       (long long)pk_count(inference), (long long)pk_count(label),
                       inference->offsets == NULL ? "missing" : "given");
    const scheme s = known[which];
    const int64_t n = inference->sequences, *offsets = inference->offsets;
    PK_TRY(check(call, inference, offsets, n, types * s.tags,
                 "inferred tag %lld is not within 0 .. %lld"));
    PK_TRY(
        check(call, label, offsets, n, types * s.tags, "label tag %lld is not within 0 .. %lld"));
    PK_TRY(pk_take_state(call, 2, 0));
    count_sequence k = {pk_i64(&call->out[0]),
                        pk_i64(inference),
                        pk_i64(label),
                        offsets,
                        s,
                        types,
                        excluded[0],
                        {}};
    for (int64_t i = 0; i < excluded[0]; i++) k.excluded[i] = excluded[i + 1];
    return pk_each(call, n, k);
}
} /* namespace */

PK_OP(chunk_eval, {"chunk_eval.forward(inference: i64, label: i64, state: i64; chunk_types: int, "
                   "scheme: int, excluded: list) -> "
                   "(state_out: i64)",
                   forward});
