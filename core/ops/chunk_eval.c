/* chunk_eval: counts the chunks of tag sequences.  State: inferred, labelled, correct chunks.
 *
 * A tag is type * tags of the scheme + position in the scheme; the tag behind all types stands for
 * what is outside of any chunk. A chunk begins and ends where tag, type and the scheme say so, as
 * in the original: a stray inside or end tag opens a chunk. */
#include "pk_kernel.h"

#define MOST_CHUNKS 1024

/* In the order of SCHEMES in paddlecli/ops/chunk_eval.py. */
enum { IOB, IOE, IOBES, PLAIN, SCHEMES };

/* Positions of a chunk's begin, inside, end and single tag in a scheme; -1: it has none. */
typedef struct scheme {
    int64_t tags, begin, inside, end, single;
} scheme;

static const scheme KNOWN[SCHEMES] = {
    {2, 0, 1, -1, -1}, {2, -1, 0, 1, -1}, {4, 0, 1, 2, 3}, {1, -1, -1, -1, -1}};

typedef struct task_data {
    const int64_t *inference, *label; /* [T] */
    const int64_t *offsets;           /* [sequences + 1] */
    const int64_t *excluded;          /* count, then types */
    scheme s;
    int64_t types, sequences, chunk;
    int64_t (*counts)[3]; /* [chunks of sequences] */
} task_data;

/* Where one of the two tag sequences stands. */
typedef struct walk {
    int64_t type, tag; /* of the token before */
    int64_t start;     /* of the open chunk, -1: none is open */
} walk;

static int ends(const scheme *s, int64_t before_tag, int64_t tag) {
    return before_tag == s->end || before_tag == s->single || tag == s->begin || tag == s->single;
}

/* Moves to a token of `value` at t; returns the type of the chunk that ended before it, `types`
 * where none did, and where it began in *from. */
static int64_t step(const task_data *k, walk *w, int64_t value, int64_t t, int64_t *from) {
    const int64_t type = value / k->s.tags, tag = value % k->s.tags;
    /* Within one type a scheme without the tag in question never cuts: -1 equals no tag. */
    const int cut = w->start >= 0 && (type != w->type || ends(&k->s, w->tag, tag));
    const int64_t ended = cut ? w->type : k->types;
    *from = w->start;
    if (cut) w->start = -1;
    if (type != k->types && w->start < 0) w->start = t;
    w->type = type, w->tag = tag;
    return ended;
}

static int counts(const task_data *k, int64_t type) {
    if (type == k->types) return 0;
    for (int64_t i = 1; i <= k->excluded[0]; i++)
        if (k->excluded[i] == type) return 0;
    return 1;
}

static void count_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const task_data *k = context;
    for (int64_t c = begin; c < end; c++) {
        int64_t *count = k->counts[c];
        count[0] = count[1] = count[2] = 0;
        for (int64_t q = c * k->chunk; q < pk_min_i64((c + 1) * k->chunk, k->sequences); q++) {
            walk found = {k->types, 0, -1}, wanted = found;
            const int64_t first = k->offsets[q], last = k->offsets[q + 1],
                          outside = k->types * k->s.tags;
            for (int64_t t = first; t <= last; t++) { /* one token beyond, outside of all chunks */
                int64_t found_from, wanted_from;
                const int64_t a =
                    step(k, &found, t < last ? k->inference[t] : outside, t, &found_from);
                const int64_t b =
                    step(k, &wanted, t < last ? k->label[t] : outside, t, &wanted_from);
                count[0] += counts(k, a), count[1] += counts(k, b);
                count[2] += a == b && found_from == wanted_from && counts(k, a);
            }
        }
    }
}

static pk_status check_tags(const pk_call *call, const char *what, const int64_t *tags,
                            const task_data *k) {
    const int64_t outside = k->types * k->s.tags;
    for (int64_t q = 0; q < k->sequences; q++)
        for (int64_t t = k->offsets[q]; t < k->offsets[q + 1]; t++)
            if (tags[t] < 0 || tags[t] > outside)
                return pk_fail(call, PK_BAD_DATA, q, "%s tag %lld is not within 0 .. %lld", what,
                               (long long)tags[t], (long long)outside);
    return PK_OK;
}

/* inference, label [T] or [T, 1] on one axis, state [3]; attributes chunk_types, scheme, excluded
 */
static pk_status forward(const pk_call *call) {
    const pk_view *inference = &call->in[0], *label = &call->in[1];
    const int64_t which = call->attr[1].i;
    if (which < 0 || which >= SCHEMES || call->attr[0].i < 1)
        return pk_fail(call, PK_BAD_CALL, -1, "scheme %lld of %lld types", (long long)which,
                       (long long)call->attr[0].i);
    if (inference->offsets == NULL)
        return pk_fail(call, PK_BAD_SHAPE, -1, "the tags come without offsets");
    task_data k = {pk_i64(inference),
                   pk_i64(label),
                   inference->offsets,
                   call->attr[2].list,
                   KNOWN[which],
                   call->attr[0].i,
                   inference->sequences,
                   0,
                   NULL};
    if (pk_count(inference) != pk_count(label) || k.offsets[k.sequences] != pk_count(label))
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "%lld inferred tags, %lld labels, sequences of %lld tokens",
                       (long long)pk_count(inference), (long long)pk_count(label),
                       (long long)k.offsets[k.sequences]);
    pk_status bad = check_tags(call, "inferred", k.inference, &k);
    if (!bad) bad = check_tags(call, "label", k.label, &k);
    if (bad) return bad;
    int64_t counts[MOST_CHUNKS][3];
    k.counts = counts;
    k.chunk = pk_max_i64(16, pk_ceil_div(k.sequences, MOST_CHUNKS));
    const int64_t chunks = pk_ceil_div(k.sequences, k.chunk), *state = pk_i64(&call->in[2]);
    pk_parallel(call, chunks, 1, count_task, &k);
    for (int i = 0; i < 3; i++) {
        int64_t all = state[i];
        for (int64_t c = 0; c < chunks; c++) all += counts[c][i];
        pk_i64(&call->out[0])[i] = all;
    }
    return PK_OK;
}

PK_OP(chunk_eval, {"chunk_eval.forward(inference: i64, label: i64, state: i64; chunk_types: int, "
                   "scheme: int, excluded: list) -> "
                   "(state_out: i64)",
                   forward});
