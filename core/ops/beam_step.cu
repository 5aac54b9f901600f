/* beam_step: the best continuations of each sample's prefixes. */
#include "reductions.cuh"

namespace {
struct candidate {
    float score;
    int64_t prefix, id; /* prefix -1: none */
};
/* Equal scores: the later prefix, and of one prefix the smaller id. */
PK_DEVICE int better(const candidate &a, const candidate &b) {
    if (a.prefix < 0 || b.prefix < 0) return b.prefix < 0 && a.prefix >= 0;
    if (a.score != b.score) return a.score > b.score;
    return a.prefix != b.prefix ? a.prefix > b.prefix : a.id < b.id;
}
PK_DEVICE candidate best_of_warp(candidate c) {
    for (int by = PK_WARP / 2; by > 0; by /= 2) {
        const candidate other = {pk_warp_xor(c.score, by), pk_warp_xor(c.prefix, by),
                                 pk_warp_xor(c.id, by)};
        if (better(other, c)) c = other;
    }
    return c;
}

/* log-probabilities [samples * beam, width], total [samples, beam], finished [samples * beam];
 * ids, parents, finished_out [samples * beam], total_out [samples, beam] */
struct choose {
    const float *scores, *total;
    const int32_t *finished;
    int64_t *ids, *parents;
    float *total_out;
    int32_t *finished_out;
    int64_t beam, width, end;

    /* The best candidate that is worse than the last one taken. */
    PK_DEVICE candidate next(int64_t first, const candidate &last, int lane) const {
        candidate best = {0.0f, -1, 0};
        for (int64_t k = 0; k < beam; k++) {
            const float before = total[first + k];
            const int over = finished[first + k] != 0;
            for (int64_t i = lane; i < (over ? 1 : width); i += PK_WARP) {
                const float score = over ? 0.0f : scores[(first + k) * width + i];
                if (score != score) continue;
                const candidate c = {over ? before : score + before, k, over ? end : i};
                if ((last.prefix < 0 || better(last, c)) && better(c, best)) best = c;
            }
        }
        return best_of_warp(best);
    }
    /* Its place: behind those of its own and of earlier prefixes. */
    PK_DEVICE void put(int64_t first, int64_t taken, const candidate &c) const {
        int64_t k = first + taken;
        for (; k > first && parents[k - 1] > first + c.prefix; k--) {
            ids[k] = ids[k - 1], parents[k] = parents[k - 1];
            total_out[k] = total_out[k - 1], finished_out[k] = finished_out[k - 1];
        }
        ids[k] = c.id, parents[k] = first + c.prefix;
        total_out[k] = c.score, finished_out[k] = c.id == end;
    }
    PK_DEVICE void operator()() const {
        const int64_t first = (int64_t)blockIdx.x * beam;
        const int lane = (int)threadIdx.x;
        candidate last = {0.0f, -1, 0};
        for (int64_t taken = 0; taken < beam; taken++) {
            candidate c = next(first, last, lane);
            if (c.prefix < 0) { /* only scores that are no numbers leave places empty */
                for (int64_t k = taken; k < beam && lane == 0; k++) {
                    ids[first + k] = end, parents[first + k] = first + k;
                    total_out[first + k] = -INFINITY, finished_out[first + k] = 1;
                }
                return;
            }
            if (lane == 0) put(first, taken, c);
            last = c;
        }
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

pk_status beam_step_forward(const pk_call *call) {
    const pk_view *scores = &call->in[0], *total = &call->in[1], *finished = &call->in[2];
    const int64_t rows = pk_count(total), end = call->attr[0].i,
                  beam = total->ndim == 2 ? total->dim[1] : 0,
                  width = scores->ndim == 2 ? scores->dim[1] : 0;
    int fits =
        beam > 0 && scores->ndim == 2 && scores->dim[0] == rows && pk_count(finished) == rows;
    for (int i = 0; i < 4; i++) fits = fits && pk_count(&call->out[i]) == rows;
    if (!fits || pk_count(&call->out[4]) != 1)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "[beam_step] %lld totals, %lld marks, scores of %lld rows", (long long)rows,
                       (long long)pk_count(finished), (long long)scores->dim[0]);
    if (end < 0 || (rows > 0 && end >= width))
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "[beam_step] the end mark %lld is not one of the %lld ids", (long long)end,
                       (long long)width);
    if (rows > 0)
        PK_TRY(PK_LAUNCH(call, pk_dim((unsigned)(rows / beam)), pk_dim(PK_WARP),
                         choose{pk_f32(scores), pk_f32(total), pk_i32(finished),
                                pk_i64(&call->out[0]), pk_i64(&call->out[1]),
                                pk_f32(&call->out[2]), pk_i32(&call->out[3]), beam, width, end}));
    return pk_flat_sum<int>(call, rows, still_running{pk_i32(&call->out[3])},
                            tell{pk_i32(&call->out[4])});
}
} /* namespace */

PK_OP(beam_step, {"beam_step.forward(scores: f32, total: f32, finished: i32; end: int)"
                  " -> (ids: i64, parents: i64, total_out: f32, finished_out: i32, done: i32)",
                  beam_step_forward});
