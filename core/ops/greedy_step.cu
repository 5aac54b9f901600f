/* greedy_step: the best id of each row; a row that has chosen the end mark keeps choosing it. */
#include "reductions.cuh"

namespace {
struct choose {
    int64_t *ids;
    int32_t *finished_out;
    const float *scores; /* [rows, width] */
    const int32_t *finished;
    int64_t width, end;
    PK_DEVICE void operator()(int64_t r) const {
        const float *row = scores + r * width;
        int64_t best = 0;
        for (int64_t j = 1; j < width; j++)
            if (row[j] > row[best]) best = j;
        ids[r] = finished[r] ? end : best;
        finished_out[r] = ids[r] == end;
    }
};
struct still_running {
    const int32_t *finished;
    PK_DEVICE int at(int64_t r) const { return !finished[r]; }
};
struct tell {
    int32_t *done;
    PK_DEVICE void put(int running) const { *done = running == 0; }
};

/* scores [rows, width]; ids, finished_out [rows]; done [1]. finished_out may be finished. */
pk_status greedy_step_forward(const pk_call *call) {
    const pk_view *scores = &call->in[0], *finished = &call->in[1];
    const int64_t end = call->attr[0].i;
    if (scores->ndim != 2 || pk_count(finished) != scores->dim[0] ||
        pk_count(&call->out[0]) != scores->dim[0] || pk_count(&call->out[1]) != scores->dim[0] ||
        pk_count(&call->out[2]) != 1)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "[greedy_step] scores have %lld rows, finished has %lld",
                       (long long)scores->dim[0], (long long)pk_count(finished));
    if (end < 0 || (scores->dim[0] > 0 && end >= scores->dim[1]))
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "[greedy_step] the end mark %lld is not one of the %lld ids", (long long)end,
                       (long long)scores->dim[1]);
    PK_TRY(pk_each(call, scores->dim[0],
                   choose{pk_i64(&call->out[0]), pk_i32(&call->out[1]), pk_f32(scores),
                          pk_i32(finished), scores->dim[1], end}));
    return pk_flat_sum<int>(call, scores->dim[0], still_running{pk_i32(&call->out[1])},
                            tell{pk_i32(&call->out[2])});
}
} /* namespace */

PK_OP(
    greedy_step,
    {"greedy_step.forward(scores: f32, finished: i32; end: int) -> (ids: i64, finished_out: i32, done: i32)",
     greedy_step_forward});
