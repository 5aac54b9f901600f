/* updates.c: the walks over flat ranges and tables that all optimizers share. */
#include "updates.h"

#include <string.h>

/* Chunks handed to a thread at once: 32 KB of each tensor. */
#define CHUNKS_PER_TASK 2

/* Everything that a task needs; in a table walk `columns` is the row size and there is one segment. */
typedef struct walk {
    const pk_rule *rule;
    const void *settings;
    float *p;
    const float *g;
    float *slots[PK_UPDATE_MAX_SLOTS];
    int64_t n;                /* elements of a flat range, rows of a table */
    const int64_t *bounds;    /* [segments, 2] */
    int64_t segments;
    const float *rates, *l2, *l1, *scale;
    const int32_t *clips;
    int64_t scales;
    float lr, limit;
    double *sums;             /* rules with norms: two sums for each (chunk, segment) that meet */
    double *trust;            /* and what they came to, for each segment */
    int second;               /* the second pass of such a rule */
    const int64_t *ids;       /* rows with a gradient, ascending */
    int64_t touched, columns, rows_per_chunk;
    pk_update update;         /* of the whole table */
} walk;

int64_t pk_first_segment(const int64_t *bounds, int64_t segments, int64_t x) {
    int64_t low = 0, high = segments;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (bounds[2 * middle] + bounds[2 * middle + 1] > x) high = middle;
        else low = middle + 1;
    }
    return low;
}

pk_status pk_check_segments(const pk_call *call, const pk_view *bounds, int64_t n) {
    if (bounds->ndim != 2 || bounds->dim[1] != 2)
        return pk_fail(call, PK_BAD_SHAPE, -1, "bounds must have the shape [segments, 2]");
    const int64_t *b = pk_i64(bounds);
    int64_t end = 0;
    for (int64_t s = 0; s < bounds->dim[0]; s++) {
        int64_t offset = b[2 * s], length = b[2 * s + 1];
        if (offset < end || length < 0 || offset > n || length > n - offset)
            return pk_fail(call, PK_BAD_SHAPE, s,
                           "segment %lld is %lld elements from %lld, the one before ends at %lld, the range has %lld",
                           (long long)s, (long long)length, (long long)offset, (long long)end, (long long)n);
        end = offset + length;
    }
    return PK_OK;
}

double pk_square_sum(const float *x, int64_t n) {
    double lane[16] = {0.0};
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int j = 0; j < 16; j++) lane[j] += (double)x[i + j] * (double)x[i + j];
    for (int j = 0; i + j < n; j++) lane[j] += (double)x[i + j] * (double)x[i + j];
    for (int width = 8; width > 0; width /= 2)
        for (int j = 0; j < width; j++) lane[j] += lane[j + width];
    return lane[0];
}

/* ---- what both walks read ---- */

static pk_status check_size(const pk_call *call, const char *what, const pk_view *view, int64_t n) {
    if (pk_count(view) == n) return PK_OK;
    return pk_fail(call, PK_BAD_SHAPE, -1, "%s has %lld elements, expected %lld", what, (long long)pk_count(view),
                   (long long)n);
}

/* State stands among inputs and outputs as the same memory; where a caller gives two places the first is copied over. */
static pk_status take_state(const pk_call *call, const char *what, int32_t in, int32_t out, float **data) {
    const pk_view *from = &call->in[in], *to = &call->out[out];
    pk_status status = check_size(call, what, to, pk_count(from));
    if (status != PK_OK) return status;
    if (to->data != from->data && pk_count(from) > 0)
        memcpy(to->data, from->data, (size_t)pk_count(from) * sizeof(float));
    *data = pk_f32(to);
    return PK_OK;
}

static pk_status take_states(const pk_call *call, const pk_rule *rule, int32_t first_slot, walk *w) {
    pk_status status = take_state(call, "p_out", 0, 0, &w->p);
    if (call->accumulate) status = pk_fail(call, PK_BAD_CALL, -1, "an update cannot be added to its outputs");
    for (int32_t k = 0; k < rule->slots && status == PK_OK; k++) {
        status = check_size(call, "a slot", &call->in[first_slot + k], pk_count(&call->in[0]));
        if (status == PK_OK) status = take_state(call, "a slot's output", first_slot + k, 1 + k, &w->slots[k]);
    }
    return status;
}

static pk_status take_rate(const pk_call *call, const pk_rule *rule, int32_t at, double clip_value, walk *w) {
    pk_status status = check_size(call, "lr", &call->in[at], 1);
    if (status == PK_OK && rule->counted) status = check_size(call, "count", &call->in[at - 1], 1);
    if (status != PK_OK) return status;
    w->lr = pk_f32(&call->in[at])[0];
    w->limit = clip_value > 0.0 ? (float)clip_value : INFINITY;
    const pk_view *scale = &call->in[at + 1];
    w->scale = pk_f32(scale);
    w->scales = scale->data ? pk_count(scale) : 0;
    return PK_OK;
}

static void run_piece(const walk *w, const pk_update *update, int64_t at, const float *g, int64_t n, double *sums) {
    float *slots[PK_UPDATE_MAX_SLOTS] = {0};
    for (int32_t k = 0; k < w->rule->slots; k++) slots[k] = w->slots[k] + at;
    if (sums) w->rule->norms(w->settings, update, w->p + at, g, slots, n, sums);
    else w->rule->piece(w->settings, update, w->p + at, g, slots, n);
}

/* ---- flat ranges ---- */

static pk_update segment_update(const walk *w, int64_t s) {
    int clipped = w->clips[s] != 0;
    return (pk_update){
        .rate = w->lr * w->rates[s],
        .scale = clipped && w->scales ? w->scale[w->scales > 1 ? s : 0] : 1.0f,
        .limit = clipped ? w->limit : INFINITY,
        .l2 = w->l2[s],
        .l1 = w->l1[s],
        .trust = w->second ? (float)w->trust[s] : 0.0f,
    };
}

/* Elements between segments belong to nobody and are left alone.  Chunk c and segment s meet at most once, and c + s rises
 * from one meeting to the next: it numbers the pairs of sums. */
static void flat_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const walk *w = context;
    int64_t from = begin * PK_UPDATE_CHUNK, to = pk_min_i64(end * PK_UPDATE_CHUNK, w->n);
    for (int64_t s = pk_first_segment(w->bounds, w->segments, from); s < w->segments; s++) {
        int64_t first = pk_max_i64(w->bounds[2 * s], from);
        int64_t last = pk_min_i64(w->bounds[2 * s] + w->bounds[2 * s + 1], to);
        if (w->bounds[2 * s] >= to) return;
        pk_update update = segment_update(w, s);
        while (first < last) {
            int64_t chunk = first / PK_UPDATE_CHUNK;
            int64_t stop = pk_min_i64(last, (chunk + 1) * PK_UPDATE_CHUNK);
            double *sums = w->sums && !w->second ? w->sums + 2 * (chunk + s) : NULL;
            run_piece(w, &update, first, w->g + first, stop - first, sums);
            first = stop;
        }
    }
}

/* Adds each segment's partial sums in the order of its chunks. */
static void flat_trust(walk *w) {
    for (int64_t s = 0; s < w->segments; s++) {
        int64_t offset = w->bounds[2 * s], length = w->bounds[2 * s + 1];
        double total[2] = {0.0, 0.0};
        if (length > 0)
            for (int64_t c = offset / PK_UPDATE_CHUNK; c <= (offset + length - 1) / PK_UPDATE_CHUNK; c++) {
                total[0] += w->sums[2 * (c + s)];
                total[1] += w->sums[2 * (c + s) + 1];
            }
        pk_update update = segment_update(w, s);
        w->trust[s] = w->rule->trust(w->settings, &update, total[0], total[1]);
    }
}

static pk_status read_flat(const pk_call *call, const pk_rule *rule, walk *w) {
    int32_t lr = 2 + rule->slots + rule->counted;
    const pk_view *in = call->in, *bounds = &in[lr + 2];
    w->n = pk_count(&in[0]);
    w->g = pk_f32(&in[1]);
    w->bounds = pk_i64(bounds);
    w->segments = bounds->dim[0];
    w->rates = pk_f32(&in[lr + 3]);
    w->l2 = pk_f32(&in[lr + 4]);
    w->l1 = pk_f32(&in[lr + 5]);
    w->clips = pk_i32(&in[lr + 6]);
    pk_status status = pk_check_segments(call, bounds, w->n);
    if (status == PK_OK) status = check_size(call, "g", &in[1], w->n);
    if (status == PK_OK) status = take_rate(call, rule, lr, call->attr[0].f, w);
    static const char *const names[4] = {"rates", "l2", "l1", "clips"};
    for (int32_t k = 0; k < 4 && status == PK_OK; k++)
        status = check_size(call, names[k], &in[lr + 3 + k], w->segments);
    if (status == PK_OK && w->scales > 1) status = check_size(call, "scale", &in[lr + 1], w->segments);
    return status == PK_OK ? take_states(call, rule, 2, w) : status;
}

pk_status pk_update_flat(const pk_call *call, const pk_rule *rule, const void *settings) {
    walk w = {.rule = rule, .settings = settings};
    pk_status status = read_flat(call, rule, &w);
    if (status != PK_OK) return status;
    int64_t chunks = pk_ceil_div(w.n, PK_UPDATE_CHUNK);
    if (rule->norms) {
        const pk_view *work = &call->out[1 + rule->slots];
        status = check_size(call, "work", work, 2 * chunks + 3 * w.segments);
        if (status != PK_OK) return status;
        w.sums = work->data;
        memset(w.sums, 0, (size_t)pk_count(work) * sizeof(double));
        w.trust = w.sums + 2 * (chunks + w.segments);
        pk_parallel(call, chunks, CHUNKS_PER_TASK, flat_task, &w);
        flat_trust(&w);
        w.second = 1;
    }
    pk_parallel(call, chunks, CHUNKS_PER_TASK, flat_task, &w);
    return PK_OK;
}

/* ---- tables with a row-sparse gradient ---- */

/* Gradient rows begin..end: every id occurs once, so they are independent. */
static void touched_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const walk *w = context;
    for (int64_t k = begin; k < end; k++)
        run_piece(w, &w->update, w->ids[k] * w->columns, w->g + k * w->columns, w->columns, NULL);
}

/* Table rows first..last: the touched ones, and runs of the others between them. */
static void whole_rows(const walk *w, int64_t first, int64_t last, double *sums) {
    int64_t k = 0, high = w->touched;
    while (k < high) {
        int64_t middle = k + (high - k) / 2;
        if (w->ids[middle] >= first) high = middle;
        else k = middle + 1;
    }
    while (first < last) {
        int64_t next = k < w->touched ? pk_min_i64(w->ids[k], last) : last;
        const float *g = NULL;
        if (next == first) {
            g = w->g + k++ * w->columns;
            next = first + 1;
        }
        run_piece(w, &w->update, first * w->columns, g, (next - first) * w->columns, sums);
        first = next;
    }
}

static void whole_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const walk *w = context;
    for (int64_t chunk = begin; chunk < end; chunk++) {
        int64_t first = chunk * w->rows_per_chunk;
        double *sums = w->sums && !w->second ? w->sums + 2 * chunk : NULL;
        whole_rows(w, first, pk_min_i64(first + w->rows_per_chunk, w->n), sums);
    }
}

/* A bad id would write outside the table, so all are looked at before anything moves. */
static pk_status check_ids(const pk_call *call, const walk *w) {
    for (int64_t k = 0; k < w->touched; k++)
        if (w->ids[k] < 0 || w->ids[k] >= w->n || (k > 0 && w->ids[k] <= w->ids[k - 1]))
            return pk_fail(call, PK_BAD_DATA, k, "row id %lld at place %lld: ids must ascend without repeats below %lld",
                           (long long)w->ids[k], (long long)k, (long long)w->n);
    return PK_OK;
}

static pk_status read_rows(const pk_call *call, const pk_rule *rule, walk *w) {
    const pk_view *in = call->in;
    if (in[0].ndim < 1) return pk_fail(call, PK_BAD_SHAPE, -1, "p is a single number, expected a table");
    w->n = in[0].dim[0];
    w->columns = pk_inner(&in[0], 1);
    w->ids = pk_i64(&in[1]);
    w->g = pk_f32(&in[2]);
    int64_t room = pk_count(&in[1]);
    pk_status status = check_size(call, "values", &in[2], room * w->columns);
    if (status == PK_OK) status = check_size(call, "rows", &in[3], 1);
    if (status != PK_OK) return status;
    w->touched = pk_i64(&in[3])[0];
    if (w->touched < 0 || w->touched > room)
        return pk_fail(call, PK_BAD_DATA, -1, "rows says %lld, there is room for %lld", (long long)w->touched,
                       (long long)room);
    const int32_t lr = 4 + rule->slots + rule->counted;
    status = take_rate(call, rule, lr, call->attr[3].f, w);
    if (status == PK_OK && w->scales > 1) status = check_size(call, "scale", &in[lr + 1], 1);
    if (status == PK_OK) status = check_ids(call, w);
    return status == PK_OK ? take_states(call, rule, 4, w) : status;
}

pk_status pk_update_rows(const pk_call *call, const pk_rule *rule, const void *settings, int moves) {
    walk w = {.rule = rule, .settings = settings};
    pk_status status = read_rows(call, rule, &w);
    if (status != PK_OK) return status;
    w.update = (pk_update){
        .rate = (float)(w.lr * (float)call->attr[0].f),
        .scale = w.scales ? w.scale[0] : 1.0f,
        .limit = w.limit,
        .l2 = (float)call->attr[1].f,
        .l1 = (float)call->attr[2].f,
    };
    w.rows_per_chunk = pk_max_i64(1, PK_UPDATE_CHUNK / pk_max_i64(1, w.columns));
    if (!moves && w.update.l2 == 0.0f && w.update.l1 == 0.0f) {
        pk_parallel(call, w.touched, w.rows_per_chunk, touched_task, &w);
        return PK_OK;
    }
    int64_t chunks = pk_ceil_div(w.n, w.rows_per_chunk);
    if (rule->norms) {
        const pk_view *work = &call->out[1 + rule->slots];
        status = check_size(call, "work", work, 2 * w.n + 1);
        if (status != PK_OK) return status;
        w.sums = work->data;
        memset(w.sums, 0, (size_t)pk_count(work) * sizeof(double));
        pk_parallel(call, chunks, CHUNKS_PER_TASK, whole_task, &w);
        double total[2] = {0.0, 0.0};
        for (int64_t c = 0; c < chunks; c++) {
            total[0] += w.sums[2 * c];
            total[1] += w.sums[2 * c + 1];
        }
        w.update.trust = rule->trust(settings, &w.update, total[0], total[1]);
        w.second = 1;
    }
    pk_parallel(call, chunks, CHUNKS_PER_TASK, whole_task, &w);
    return PK_OK;
}
