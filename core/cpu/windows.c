/* Windows are packed like any other A; only their ends are looked up and cut. */
#include "windows.h"

#include "recurrences.h"

/* Of a stored row, the floats low .. high lie in its own sequence. */
typedef struct reach {
    const float *from;
    int32_t low, high;
} reach;

/* Stored rows row .. row + count, `width` floats of each from `column` on. */
static void find_reaches(const pk_windows *w, const float *a, int64_t stride, int64_t row,
                         int64_t count, int64_t column, int64_t width, reach *found) {
    int64_t s = pk_sequence_at(w->offsets, w->sequences, w->row + row);
    for (int64_t i = 0; i < count; i++) {
        const int64_t t = w->row + row + i, at = t + w->first;
        while (w->offsets[s + 1] <= t) s++;
        const int64_t low = (w->offsets[s] - at) * stride - column,
                      high = (w->offsets[s + 1] - at) * stride - column;
        found[i].low = (int32_t)pk_min_i64(pk_max_i64(low, 0), width);
        found[i].high = (int32_t)pk_min_i64(pk_max_i64(high, 0), width);
        /* Nothing of it is read, so it may point anywhere: not outside of what there is. */
        found[i].from = found[i].low < found[i].high ? a + at * stride + column : a;
    }
}

PK_INLINE pk_vec part(const reach *r, int64_t at, int64_t count) {
    if (r->low <= at && at + 16 <= r->high && count == 16) return pk_load(r->from + at);
    return pk_load_mask(r->from + at,
                        pk_lanes_between(r->low - at, pk_min_i64(r->high - at, count)));
}

void pk_pack_windows(const pk_windows *windows, pk_order order, const float *a, int64_t stride,
                     int64_t row, int64_t rows, int64_t k0, int64_t k, float *packed) {
    reach found[PK_PRODUCT_CHUNK];
    if (order == PK_ORDER_ROWS) {
        find_reaches(windows, a, stride, row, rows, k0, k, found);
        for (int64_t r = 0; r < rows; r++, packed += PK_A_ROW_STRIDE)
            PK_FOR16(i, c, k) pk_store(packed + i, part(&found[r], i, c));
        return;
    }
    find_reaches(windows, a, stride, k0, k, row, rows, found);
    const int64_t tiles = pk_tile_split(rows);
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t begin = pk_tile_begin(rows, tiles, t),
                      count = pk_tile_begin(rows, tiles, t + 1) - begin;
        for (int64_t q = 0; q < k; q++, packed += PK_A_COLUMN_STRIDE)
            pk_store(packed, part(&found[q], begin, count));
        packed += (PK_PRODUCT_CHUNK - k) * PK_A_COLUMN_STRIDE;
    }
}
