/* beam_step: the best continuations of each sample's prefixes. */
#include "pk_kernel.h"
#include "pk_simd.h"

typedef struct candidate {
    float score;
    int64_t prefix, id;
} candidate;

/* log-probabilities [samples * beam, width], total [samples, beam], finished [samples * beam];
 * ids, parents, finished_out [samples * beam], total_out [samples, beam] */
typedef struct beams {
    const float *scores, *total;
    const int32_t *finished;
    int64_t *ids, *parents;
    float *total_out;
    int32_t *finished_out;
    int64_t beam, width, end;
} beams;

/* Equal scores: the later prefix, and of one prefix the smaller id. */
static int better(const candidate *a, const candidate *b) {
    if (a->score != b->score) return a->score > b->score;
    return a->prefix != b->prefix ? a->prefix > b->prefix : a->id < b->id;
}

/* Puts a candidate into the sorted list of at most `beam`. */
static void offer(candidate *list, int64_t *count, int64_t beam, candidate c) {
    if (*count == beam && !better(&c, &list[beam - 1])) return;
    int64_t k = *count < beam ? (*count)++ : beam - 1;
    for (; k > 0 && better(&c, &list[k - 1]); k--) list[k] = list[k - 1];
    list[k] = c;
}

/* A prefix that has not ended: all its ids.  Sixteen at a time are passed over that cannot enter.
 */
static void offer_row(candidate *list, int64_t *count, const beams *b, const float *row,
                      float total, int64_t prefix) {
    PK_FOR16(i, n, b->width) {
        const float most = pk_max16(pk_load_or(row + i, n, -__builtin_inff())) + total;
        if (*count == b->beam && most < list[b->beam - 1].score) continue;
        for (int64_t j = i; j < i + n; j++)
            if (row[j] == row[j])
                offer(list, count, b->beam, (candidate){row[j] + total, prefix, j});
    }
}

/* The chosen ones in the order of their prefixes, those of one prefix by score. */
static void by_prefix(candidate *list, int64_t count) {
    for (int64_t i = 1; i < count; i++) {
        const candidate c = list[i];
        int64_t k = i;
        for (; k > 0 && list[k - 1].prefix > c.prefix; k--) list[k] = list[k - 1];
        list[k] = c;
    }
}

static void choose_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const beams *b = context;
    candidate *list = scratch;
    (void)thread;
    for (int64_t s = begin; s < end; s++) {
        const int64_t first = s * b->beam;
        int64_t count = 0;
        for (int64_t k = 0; k < b->beam; k++) {
            const float total = b->total[first + k];
            if (b->finished[first + k]) offer(list, &count, b->beam, (candidate){total, k, b->end});
            else offer_row(list, &count, b, b->scores + (first + k) * b->width, total, k);
        }
        by_prefix(list, count);
        /* Only scores that are no numbers leave places empty. */
        for (int64_t k = count; k < b->beam; k++)
            list[k] = (candidate){-__builtin_inff(), k, b->end};
        for (int64_t k = 0; k < b->beam; k++) {
            b->ids[first + k] = list[k].id;
            b->parents[first + k] = first + list[k].prefix;
            b->total_out[first + k] = list[k].score;
            b->finished_out[first + k] = list[k].id == b->end;
        }
    }
}

static pk_status beam_step_forward(const pk_call *call) {
    const pk_view *scores = &call->in[0], *total = &call->in[1], *finished = &call->in[2];
    const int64_t rows = pk_count(total), end = call->attr[0].i;
    beams b = {pk_f32(scores),
               pk_f32(total),
               pk_i32(finished),
               pk_i64(&call->out[0]),
               pk_i64(&call->out[1]),
               pk_f32(&call->out[2]),
               pk_i32(&call->out[3]),
               total->ndim == 2 ? total->dim[1] : 0,
               scores->ndim == 2 ? scores->dim[1] : 0,
               end};
    int fits =
        b.beam > 0 && scores->ndim == 2 && scores->dim[0] == rows && pk_count(finished) == rows;
    for (int i = 0; i < 4; i++) fits = fits && pk_count(&call->out[i]) == rows;
    if (!fits || pk_count(&call->out[4]) != 1)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "[beam_step] %lld totals, %lld marks, scores of %lld rows", (long long)rows,
                       (long long)pk_count(finished),
                       (long long)(scores->ndim == 2 ? scores->dim[0] : -1));
    if (b.beam > (int64_t)(PK_SCRATCH_BYTES / sizeof(candidate)))
        return pk_fail(call, PK_BAD_CALL, -1, "[beam_step] a beam of %lld", (long long)b.beam);
    if (end < 0 || (rows > 0 && end >= b.width))
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "[beam_step] the end mark %lld is not one of the %lld ids", (long long)end,
                       (long long)b.width);
    pk_parallel(call, rows / b.beam, pk_max_i64(1, 65536 / pk_max_i64(1, b.beam * b.width)),
                choose_task, &b);
    int32_t all = 1;
    for (int64_t r = 0; r < rows; r++) all &= b.finished_out[r];
    pk_i32(&call->out[4])[0] = all;
    return PK_OK;
}

PK_OP(beam_step,
      {"beam_step.forward(scores: f32, total: f32, finished: i32; end: int)"
       " -> (ids: i64, parents: i64, total_out: f32, finished_out: i32, done: i32)",
       beam_step_forward});
