/* rows_merge: row-sparse gradients of all uses of a table made one: sorted unique ids and their
 * summed rows. */
#include <string.h>

#include "pk_simd.h"
#include "rows.h"

/* Ids and the places of their rows, sorted together.  A place is the row's number through all
 * pairs. */
typedef struct sorted {
    int64_t *id, *place;
} sorted;

/* Stable sort by bytes of the id, low ones first: equal ids keep the order of their places.  `room`
 * is as large. */
static sorted sort(sorted now, sorted room, int64_t n, int64_t largest) {
    for (int shift = 0; shift < 64 && largest >> shift; shift += 8) {
        int64_t first[257] = {0};
        for (int64_t i = 0; i < n; i++) first[(now.id[i] >> shift & 255) + 1]++;
        for (int b = 0; b < 256; b++) first[b + 1] += first[b];
        for (int64_t i = 0; i < n; i++) {
            const int64_t to = first[now.id[i] >> shift & 255]++;
            room.id[to] = now.id[i];
            room.place[to] = now.place[i];
        }
        const sorted old = now;
        now = room, room = old;
    }
    return now;
}

typedef struct merge {
    const pk_view *pairs;
    int32_t n_pairs;
    const int64_t *place, *first;   /* first[u]: where the rows of unique id u begin in place */
    float *values;
    int64_t unique, width;
} merge;

static const float *row_of(const merge *m, int64_t place) {
    for (int32_t p = 0;; p++) {
        const int64_t n = m->pairs[2 * p].dim[0];
        if (place < n) return pk_f32(&m->pairs[2 * p + 1]) + place * m->width;
        place -= n;
    }
}

static void merge_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const merge *m = context;
    (void)thread, (void)scratch;
    for (int64_t u = begin; u < end; u++) {
        float *out = m->values + u * m->width;
        if (u >= m->unique) {
            memset(out, 0, (size_t)m->width * 4);
            continue;
        }
        memcpy(out, row_of(m, m->place[m->first[u]]), (size_t)m->width * 4);
        for (int64_t k = m->first[u] + 1; k < m->first[u + 1]; k++) {
            const float *row = row_of(m, m->place[k]);
            PK_FOR16(i, c, m->width)
                pk_store_n(out + i, pk_add(pk_load_n(out + i, c), pk_load_n(row + i, c)), c);
        }
    }
}

/* pairs: ids [n], values [n, width] ... -> ids [rows], values [rows, width], count [1], work [4 *
 * rows] */
static pk_status rows_merge_forward(const pk_call *call) {
    const int64_t rows = pk_count(&call->out[0]),
                  width = rows > 0 ? pk_count(&call->out[1]) / rows : 0;
    int64_t n = 0, all = 0, largest = 0;
    int64_t *work = pk_i64(&call->out[3]);
    if (call->n_in < 2 || call->n_in % 2 || pk_count(&call->out[3]) < 4 * rows || call->accumulate)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%d inputs, room for %lld rows", (int)call->n_in,
                       (long long)rows);
    sorted now = {work, work + rows}, room = {work + 2 * rows, work + 3 * rows};
    for (int32_t p = 0; p < call->n_in; p += 2) {
        const pk_view *ids = &call->in[p], *values = &call->in[p + 1];
        const int64_t count = pk_count(ids);
        if (ids->dtype != PK_I64 || values->dtype != PK_F32 || pk_count(values) != count * width ||
            all + count > rows)
            return pk_fail(call, PK_BAD_SHAPE, -1,
                           "input %d has %lld ids, input %d %lld elements of rows of %lld", (int)p,
                           (long long)count, (int)p + 1, (long long)pk_count(values),
                           (long long)width);
        for (int64_t i = 0; i < count; i++, all++) {
            const int64_t id = pk_i64(ids)[i];
            if (id < 0) continue;
            largest = pk_max_i64(largest, id);
            now.id[n] = id;
            now.place[n++] = all;
        }
    }
    if (all != rows)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld ids, room for %lld rows", (long long)all,
                       (long long)rows);
    const int64_t *id = (now = sort(now, room, n, largest)).id;
    /* The id array of the other half is free now. */
    int64_t *first = now.id == work ? work + 2 * rows : work, unique = 0,
            *out = pk_i64(&call->out[0]);
    for (int64_t i = 0; i < n; i++)
        if (i == 0 || id[i] != id[i - 1]) {
            first[unique] = i;
            out[unique++] = id[i];
        }
    /* first has one entry more than ids; it spills into the free place array, which lies behind. */
    if (rows > 0) first[unique] = n;
    for (int64_t u = unique; u < rows; u++) out[u] = -1;
    pk_i64(&call->out[2])[0] = unique;
    merge m = {call->in, call->n_in / 2, now.place, first, pk_f32(&call->out[1]), unique, width};
    pk_parallel(call, rows, pk_max_i64(1, 4096 / pk_max_i64(1, width)), merge_task, &m);
    return PK_OK;
}

PK_OP(rows_merge,
      {"rows_merge.forward(pairs*: any) -> (ids: i64, values: f32, count: i64, work: i64)",
       rows_merge_forward});
