/* beam_trace: the log of a beam search as sequences of each sample, best first. */
#include "pk_kernel.h"

/* ids, parents [limit, samples * beam], parents < 0 where a loop that stopped early wrote nothing;
 * total [samples, beam]; sequences [samples, beam, limit], length, scores [samples, beam] */
typedef struct log_of {
    const int64_t *ids, *parents;
    const float *total;
    int64_t *sequences, *length;
    float *scores;
    int64_t beam, rows, limit, end;
} log_of;

/* The row at a place of the order by total: those before it are larger, or equal and later. */
static int64_t place_of(const log_of *l, int64_t first, int64_t row) {
    int64_t before = 0;
    const float own = l->total[row];
    for (int64_t r = first; r < first + l->beam; r++) {
        const float other = l->total[r];
        before += other > own || (!(other < own) && r > row);
    }
    return before;
}

static pk_status trace(const pk_call *call, const log_of *l, int64_t last) {
    const int64_t first = last / l->beam * l->beam, at = first + place_of(l, first, last);
    int64_t *out = l->sequences + at * l->limit, row = last;
    for (int64_t t = l->limit; t-- > 0;) {
        const int64_t parent = l->parents[t * l->rows + row];
        out[t] = parent < 0 ? l->end : l->ids[t * l->rows + row];
        if (parent < 0) continue;
        if (parent < first || parent >= first + l->beam)
            return pk_fail(call, PK_BAD_DATA, last,
                           "[beam_trace] row %lld follows row %lld of another sample",
                           (long long)row, (long long)parent);
        row = parent;
    }
    int64_t n = 0;
    while (n < l->limit && out[n] != l->end) n++;
    for (int64_t t = n; t < l->limit; t++) out[t] = l->end;
    l->length[at] = n;
    l->scores[at] = l->total[last];
    return PK_OK;
}

static pk_status beam_trace_forward(const pk_call *call) {
    const pk_view *ids = &call->in[0], *parents = &call->in[1], *total = &call->in[2];
    const log_of l = {pk_i64(ids),
                      pk_i64(parents),
                      pk_f32(total),
                      pk_i64(&call->out[0]),
                      pk_i64(&call->out[1]),
                      pk_f32(&call->out[2]),
                      total->ndim == 2 ? total->dim[1] : 0,
                      pk_count(total),
                      call->attr[1].i,
                      call->attr[0].i};
    if (l.beam < 1 || l.limit < 1 || pk_count(ids) != l.rows * l.limit ||
        pk_count(parents) != pk_count(ids) || pk_count(&call->out[0]) != pk_count(ids) ||
        pk_count(&call->out[1]) != l.rows || pk_count(&call->out[2]) != l.rows)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "[beam_trace] the log has %lld ids, %lld rows of %lld steps need %lld",
                       (long long)pk_count(ids), (long long)l.rows, (long long)l.limit,
                       (long long)(l.rows * l.limit));
    pk_status status = PK_OK;
    for (int64_t r = 0; r < l.rows && status == PK_OK; r++) status = trace(call, &l, r);
    return status;
}

PK_OP(beam_trace,
      {"beam_trace.forward(ids: i64, parents: i64, total: f32; end: int, limit: int)"
       " -> (sequences: i64, length: i64, scores: f32)",
       beam_trace_forward});
