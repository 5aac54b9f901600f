/* dims.c: see dims.h.  Neighbouring dimensions that are both summed or both kept become one; then
 * there is the last one, a row that is either summed or kept, and the others, whose kept ones
 * choose an output row and whose summed ones are walked for it. */
#include "dims.h"

#include "pk_simd.h"
#include "reductions.h"

#define COLUMNS 64   /* kept columns that one task holds in registers and walks down */

typedef struct walk {
    int32_t n;                   /* merged dimensions without the last one */
    int64_t dim[PK_MAX_DIM], step[PK_MAX_DIM];
    int8_t is_summed[PK_MAX_DIM];
    int64_t row;                 /* size of the last one */
    int row_summed;
    int64_t kept, summed;        /* products of the others */
    const float *x;
    float *out;
    float scale;
    int add;
    int64_t blocks;              /* pieces of a row */
} walk;

static void merge(walk *w, int32_t ndim, const int64_t *dim, uint32_t bits) {
    w->n = 0;
    for (int32_t d = 0; d < ndim; d++) {
        const int8_t s = (bits >> d) & 1u;
        if (dim[d] == 1) continue;
        if (w->n > 0 && w->is_summed[w->n - 1] == s) {
            w->dim[w->n - 1] *= dim[d];
        } else {
            w->is_summed[w->n] = s;
            w->dim[w->n++] = dim[d];
        }
    }
    if (w->n == 0) w->dim[0] = 1, w->is_summed[0] = 0, w->n = 1;
    w->n--;
    w->row = w->dim[w->n];
    w->row_summed = w->is_summed[w->n];
    w->kept = w->summed = 1;
    int64_t step = w->row;
    for (int32_t i = w->n - 1; i >= 0; i--) {
        w->step[i] = step;
        step *= w->dim[i];
        if (w->is_summed[i]) w->summed *= w->dim[i];
        else w->kept *= w->dim[i];
    }
}

/* Offset of the index-th combination of the kept, or of the summed, dimensions. */
static int64_t offset(const walk *w, int8_t summed, int64_t index) {
    int64_t at = 0;
    for (int32_t i = w->n - 1; i >= 0; i--) {
        if (w->is_summed[i] != summed) continue;
        at += index % w->dim[i] * w->step[i];
        index /= w->dim[i];
    }
    return at;
}

static void finish(float *out, float sum, const walk *w) {
    *out = w->add ? *out + w->scale * sum : w->scale * sum;
}

/* Outputs begin..end, one per kept combination: row sums, in chunks. */
static void sum_rows_task(void *context, int64_t begin, int64_t end, int32_t thread,
                          void *scratch) {
    const walk *w = context;
    (void)thread, (void)scratch;
    for (int64_t k = begin; k < end; k++) {
        const float *x = w->x + offset(w, 0, k);
        float sum = 0.0f;
        for (int64_t first = 0; first < w->summed; first += PK_ROW_CHUNK) {
            const int64_t last = pk_min_i64(first + PK_ROW_CHUNK, w->summed);
            float chunk = 0.0f;
            for (int64_t r = first; r < last; r++) chunk += pk_row_sum(x + offset(w, 1, r), w->row);
            sum += chunk;
        }
        finish(w->out + k, sum, w);
    }
}

/* Blocks begin..end of kept rows: COLUMNS columns walked down, in chunks. */
static void sum_columns_task(void *context, int64_t begin, int64_t end, int32_t thread,
                             void *scratch) {
    const walk *w = context;
    (void)thread, (void)scratch;
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t k = unit / w->blocks, column = unit % w->blocks * COLUMNS;
        const int64_t n = pk_min_i64(COLUMNS, w->row - column);
        const float *x = w->x + offset(w, 0, k) + column;
        pk_vec sum[COLUMNS / 16];
        for (int i = 0; i < COLUMNS / 16; i++) sum[i] = pk_zero();
        for (int64_t first = 0; first < w->summed; first += PK_ROW_CHUNK) {
            const int64_t last = pk_min_i64(first + PK_ROW_CHUNK, w->summed);
            pk_vec chunk[COLUMNS / 16];
            for (int i = 0; i < COLUMNS / 16; i++) chunk[i] = pk_zero();
            for (int64_t r = first; r < last; r++) {
                const float *row = x + offset(w, 1, r);
                for (int64_t i = 0; i * 16 < n; i++)
                    chunk[i] = pk_add(chunk[i], pk_load_n(row + i * 16, n - i * 16));
            }
            for (int i = 0; i < COLUMNS / 16; i++) sum[i] = pk_add(sum[i], chunk[i]);
        }
        float *out = w->out + k * w->row + column;
        for (int64_t i = 0; i * 16 < n; i++) {
            const int64_t c = pk_min_i64(16, n - i * 16);
            const pk_vec v = pk_mul(pk_set1(w->scale), sum[i]);
            pk_store_n(out + i * 16, w->add ? pk_add(pk_load_n(out + i * 16, c), v) : v, c);
        }
    }
}

void pk_sum_dims(const pk_call *call, float *out, const float *x, int32_t ndim, const int64_t *dim,
                 uint32_t summed, float scale, int accumulate) {
    walk w = {.x = x, .out = out, .scale = scale, .add = accumulate};
    merge(&w, ndim, dim, summed);
    /* A batch of one that is kept is no dimension behind `merge`, and its sum must still be that of
     * the same row among others. */
    if (w.row_summed && w.n == 0 && (summed & 1u)) {
        const double sum = pk_sum_flat(call, x, w.row);
        *out = (float)((accumulate ? (double)*out : 0.0) + (double)scale * sum);
    } else if (w.row_summed) {
        const int64_t each = w.summed * w.row;
        pk_parallel(call, w.kept, pk_max_i64(1, 16384 / pk_max_i64(1, each)), sum_rows_task, &w);
    } else {
        w.blocks = pk_ceil_div(w.row, COLUMNS);
        const int64_t each = w.summed * pk_min_i64(COLUMNS, w.row);
        pk_parallel(call, w.kept * w.blocks, pk_max_i64(1, 16384 / pk_max_i64(1, each)),
                    sum_columns_task, &w);
    }
}

#define REPEAT_BLOCK 4096

/* Index of the output row of `row`: its kept part. */
static int64_t kept_part(const walk *w, int64_t row) {
    int64_t index = 0, size = 1;
    for (int32_t i = w->n - 1; i >= 0; i--) {
        if (!w->is_summed[i]) {
            index += row % w->dim[i] * size;
            size *= w->dim[i];
        }
        row /= w->dim[i];
    }
    return index;
}

static void repeat_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const walk *w = context;
    (void)thread, (void)scratch;
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t row = unit / w->blocks, first = unit % w->blocks * REPEAT_BLOCK;
        const int64_t n = pk_min_i64(REPEAT_BLOCK, w->row - first), k = kept_part(w, row);
        const float *x = w->row_summed ? w->x + k : w->x + k * w->row + first;
        float *out = w->out + row * w->row + first;
        PK_FOR16(i, c, n) {
            const pk_vec v =
                pk_mul(pk_set1(w->scale), w->row_summed ? pk_set1(*x) : pk_load_n(x + i, c));
            pk_store_n(out + i, w->add ? pk_add(pk_load_n(out + i, c), v) : v, c);
        }
    }
}

void pk_repeat_dims(const pk_call *call, float *out, const float *x, int32_t ndim,
                    const int64_t *dim, uint32_t summed, float scale, int accumulate) {
    walk w = {.x = x, .out = out, .scale = scale, .add = accumulate};
    merge(&w, ndim, dim, summed);
    const int64_t rows = w.kept * w.summed;
    if (rows == 0 || w.row == 0) return;
    w.blocks = pk_ceil_div(w.row, REPEAT_BLOCK);
    pk_parallel(call, rows * w.blocks, pk_max_i64(1, 16384 / pk_min_i64(REPEAT_BLOCK, w.row)),
                repeat_task, &w);
}

pk_status pk_dims_bits(const pk_call *call, const int64_t *list, int32_t ndim, uint32_t *bits) {
    *bits = 0;
    for (int64_t i = 0; i < list[0]; i++) {
        const int64_t d = list[1 + i] < 0 ? list[1 + i] + ndim : list[1 + i];
        if (d < 0 || d >= ndim)
            return pk_fail(call, PK_BAD_SHAPE, -1, "dimension %lld of a tensor of %d dimensions",
                           (long long)list[1 + i], (int)ndim);
        *bits |= 1u << d;
    }
    if (list[0] == 0) *bits = (1u << ndim) - 1u;
    return PK_OK;
}
