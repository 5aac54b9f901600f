/* decode_trace: the log of a decode loop, step by step, as one row of ids for each sample. */
#include "pk_cuda.cuh"

namespace {
/* log [limit, rows]; ids [rows, limit]; length [rows]: ids before the first end mark. What a loop
 * that stopped early left unwritten in the log lies behind every row's end mark and is never read.
 */
struct trace {
    int64_t *ids, *length;
    const int64_t *log;
    int64_t rows, limit, end;
    PK_DEVICE void operator()(int64_t r) const {
        int64_t t = 0;
        for (; t < limit && log[t * rows + r] != end; t++) ids[r * limit + t] = log[t * rows + r];
        length[r] = t;
        for (; t < limit; t++) ids[r * limit + t] = end;
    }
};

pk_status decode_trace_forward(const pk_call *call) {
    const int64_t end = call->attr[0].i, limit = call->attr[1].i, rows = pk_count(&call->out[1]);
    if (limit < 1 || pk_count(&call->in[0]) != rows * limit ||
        pk_count(&call->out[0]) != rows * limit)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "[decode_trace] the log has %lld ids, %lld rows of %lld steps need %lld",
                       (long long)pk_count(&call->in[0]), (long long)rows, (long long)limit,
                       (long long)(rows * limit));
    return pk_each(call, rows,
                   trace{pk_i64(&call->out[0]), pk_i64(&call->out[1]), pk_i64(&call->in[0]), rows,
                         limit, end});
}
} /* namespace */

PK_OP(decode_trace,
      {"decode_trace.forward(log: i64; end: int, limit: int) -> (ids: i64, length: i64)",
       decode_trace_forward});
