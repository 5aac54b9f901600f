/* rows_merge: row-sparse gradients of all uses of a table made one: sorted unique ids and their
 * summed rows. */
#include "sort.cuh"

namespace {
const int MOST = 32; /* uses of one table */
const int THREADS = 256;

/* The rows of all pairs, numbered through. */
struct rows_of {
    const float *values[MOST];
    int64_t count[MOST];
    int32_t pairs;
    int64_t width;
    PK_DEVICE const float *row(int64_t place) const {
        int32_t p = 0;
        while (p + 1 < pairs && place >= count[p]) place -= count[p++];
        return values[p] + place * width;
    }
};

/* One block: each thread counts the ids that begin in its part of the sorted keys, then writes them
 * behind those of the threads before it. */
struct number_ids {
    pk_keys keys;
    int64_t *ids, *first,
        *count; /* first[u]: where the rows of unique id u begin; one entry more than ids */
    int64_t rows;
    PK_DEVICE int begins(int64_t i) const {
        return keys.id[i] != PK_NO_ID && (i == 0 || keys.id[i] != keys.id[i - 1]);
    }
    PK_DEVICE void operator()() const {
        PK_SHARED(int64_t, found, THREADS);
        PK_SHARED(int64_t, real, THREADS);
        const int64_t part = (rows + THREADS - 1) / THREADS, from = threadIdx.x * part;
        const int64_t to = from + part < rows ? from + part : rows;
        int64_t mine = 0, valid = 0;
        for (int64_t i = from; i < to; i++) mine += begins(i), valid += keys.id[i] != PK_NO_ID;
        found[threadIdx.x] = mine, real[threadIdx.x] = valid;
        pk_sync();
        int64_t at = 0, unique = 0, all = 0;
        for (int t = 0; t < THREADS; t++) {
            if (t < (int)threadIdx.x) at += found[t];
            unique += found[t], all += real[t];
        }
        for (int64_t i = from; i < to; i++)
            if (begins(i)) {
                ids[at] = keys.id[i];
                first[at++] = i;
            }
        for (int64_t u = unique + threadIdx.x; u < rows; u += THREADS) ids[u] = -1;
        if (threadIdx.x != 0) return;
        if (rows > 0) first[unique] = all;
        *count = unique;
    }
};

struct add_up {
    rows_of from;
    float *values;
    pk_keys keys;
    const int64_t *first, *count;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t u = e / from.width, column = e % from.width;
        float sum = 0.0f;
        if (u < *count) {
            sum = from.row(keys.place[first[u]])[column];
            for (int64_t k = first[u] + 1; k < first[u + 1]; k++)
                sum += from.row(keys.place[k])[column];
        }
        values[e] = sum;
    }
};

/* pairs: ids [n], values [n, width] ... -> ids [rows], values [rows, width], count [1], work [4 *
 * rows] */
pk_status rows_merge_forward(const pk_call *call) {
    const int64_t rows = pk_count(&call->out[0]),
                  width = rows > 0 ? pk_count(&call->out[1]) / rows : 0;
    int64_t *work = pk_i64(&call->out[3]), all = 0;
    const int64_t room = pk_sort_room(rows);
    const pk_keys keys = {work, work + room}; /* a power of two of rows is below 2 * rows */
    rows_of from = {};
    if (call->n_in < 2 || call->n_in % 2 || pk_count(&call->out[3]) < 4 * rows || call->accumulate)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%d inputs, room for %lld rows", (int)call->n_in,
                       (long long)rows);
    if (call->n_in / 2 > MOST || (rows + 1) * 8 > PK_SCRATCH_ROOM)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%d uses of a table with %lld rows are too many",
                       (int)(call->n_in / 2), (long long)rows);
    from.pairs = call->n_in / 2, from.width = width;
    for (int32_t p = 0; p < call->n_in; p += 2) {
        const pk_view *ids = &call->in[p], *values = &call->in[p + 1];
        const int64_t n = pk_count(ids);
        if (ids->dtype != PK_I64 || values->dtype != PK_F32 || pk_count(values) != n * width ||
            all + n > rows)
            return pk_fail(call, PK_BAD_SHAPE, -1,
                           "input %d has %lld ids, input %d %lld elements of rows of %lld", (int)p,
                           (long long)n, (int)p + 1, (long long)pk_count(values), (long long)width);
        PK_TRY(pk_each(call, n, pk_make_keys{keys, pk_i64(ids), all, -1}));
        from.values[p / 2] = pk_f32(values), from.count[p / 2] = n;
        all += n;
    }
    if (all != rows)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld ids, room for %lld rows", (long long)all,
                       (long long)rows);
    if (rows > 0) PK_TRY(pk_sort_keys(call, keys, rows));
    int64_t *first = pk_device_scratch<int64_t>(call), *count = pk_i64(&call->out[2]);
    PK_TRY(PK_LAUNCH(call, pk_dim(1), pk_dim(THREADS),
                     number_ids{keys, pk_i64(&call->out[0]), first, count, rows}));
    return pk_each(call, rows * width, add_up{from, pk_f32(&call->out[1]), keys, first, count});
}
} /* namespace */

PK_OP(rows_merge,
      {"rows_merge.forward(pairs*: any) -> (ids: i64, values: f32, count: i64, work: i64)",
       rows_merge_forward});
