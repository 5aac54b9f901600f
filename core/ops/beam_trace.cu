/* beam_trace: the log of a beam search as sequences of each sample, best first. */
#include "pk_cuda.cuh"

namespace {
/* ids, parents [limit, rows], parents < 0 where a loop that stopped early wrote nothing; total
 * [samples, beam]; sequences [samples, beam, limit], length, scores [samples, beam] */
struct trace {
    pk_gate gate;
    const int64_t *ids, *parents;
    const float *total;
    int64_t *sequences, *length;
    float *scores;
    int64_t beam, rows, limit, end;
    /* The row at a place of the order by total: those before it are larger, or equal and later. */
    PK_DEVICE int64_t place_of(int64_t first, int64_t row) const {
        int64_t before = 0;
        const float own = total[row];
        for (int64_t r = first; r < first + beam; r++)
            before += total[r] > own || (!(total[r] < own) && r > row);
        return before;
    }
    PK_DEVICE void operator()(int64_t last) const {
        const int64_t first = last / beam * beam, at = first + place_of(first, last);
        int64_t *out = sequences + at * limit, row = last;
        for (int64_t t = limit; t-- > 0;) {
            const int64_t parent = parents[t * rows + row];
            out[t] = parent < 0 ? end : ids[t * rows + row];
            if (parent < 0) continue;
            if (parent < first || parent >= first + beam) {
                pk_fault_at(gate, "[beam_trace] follows row %lld of another sample, of %lld rows",
                            last, parent, rows);
                return;
            }
            row = parent;
        }
        int64_t n = 0;
        while (n < limit && out[n] != end) n++;
        for (int64_t t = n; t < limit; t++) out[t] = end;
        length[at] = n;
        scores[at] = total[last];
    }
};

pk_status beam_trace_forward(const pk_call *call) {
    const pk_view *ids = &call->in[0], *parents = &call->in[1], *total = &call->in[2];
    const int64_t beam = total->ndim == 2 ? total->dim[1] : 0, rows = pk_count(total),
                  end = call->attr[0].i, limit = call->attr[1].i;
    if (beam < 1 || limit < 1 || pk_count(ids) != rows * limit ||
        pk_count(parents) != pk_count(ids) || pk_count(&call->out[0]) != pk_count(ids) ||
        pk_count(&call->out[1]) != rows || pk_count(&call->out[2]) != rows)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "[beam_trace] the log has %lld ids, %lld rows of %lld steps need %lld",
                       (long long)pk_count(ids), (long long)rows, (long long)limit,
                       (long long)(rows * limit));
    const pk_gate gate = pk_gate_of(call);
    return pk_each_behind(call, gate, rows,
                          trace{gate, pk_i64(ids), pk_i64(parents), pk_f32(total),
                                pk_i64(&call->out[0]), pk_i64(&call->out[1]),
                                pk_f32(&call->out[2]), beam, rows, limit, end});
}
} /* namespace */

PK_OP(beam_trace, {"beam_trace.forward(ids: i64, parents: i64, total: f32; end: int, limit: int)"
                   " -> (sequences: i64, length: i64, scores: f32)",
                   beam_trace_forward});
