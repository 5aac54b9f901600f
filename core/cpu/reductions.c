/* Sums over columns and flat buffers. */
#include "reductions.h"

#include "pk_simd.h"

#define SMALL 32768 /* floats that one thread reads at once */
#define STRIP 64    /* columns whose sums stay in registers */

typedef struct {
    const float *x;
    float *out;
    int64_t stride, rows, columns;
    int32_t accumulate;
    double *partials;
} reduction;

/* One strip of at most 64 columns: a chunk's sums stay in registers while its rows pass. */
static void sum_strip(const reduction *w, int64_t column, int64_t columns) {
    pk_vec total[STRIP / 16];
    for (int v = 0; v < STRIP / 16; v++)
        total[v] = w->accumulate
                       ? pk_load_n(w->out + column + 16 * v, pk_max_i64(0, columns - 16 * v))
                       : pk_zero();
    for (int64_t r0 = 0; r0 < w->rows; r0 += PK_ROW_CHUNK) {
        const int64_t end = pk_min_i64(r0 + PK_ROW_CHUNK, w->rows);
        pk_vec part[STRIP / 16] = {{{{0}}}};
        for (int64_t r = r0; r < end; r++) {
            const float *x = w->x + r * w->stride + column;
            _Pragma("GCC unroll 4") for (int v = 0; v < STRIP / 16; v++) part[v] = pk_add(
                part[v], columns == STRIP ? pk_load(x + 16 * v)
                                          : pk_load_n(x + 16 * v, pk_max_i64(0, columns - 16 * v)));
        }
        for (int v = 0; v < STRIP / 16; v++) total[v] = pk_add(total[v], part[v]);
    }
    for (int v = 0; v < STRIP / 16; v++)
        pk_store_n(w->out + column + 16 * v, total[v], pk_max_i64(0, columns - 16 * v));
}

static void sum_columns_task(void *context, int64_t begin, int64_t end, int32_t thread,
                             void *scratch) {
    const reduction *w = context;
    (void)thread;
    (void)scratch;
    for (int64_t i = begin; i < end; i++)
        sum_strip(w, i * STRIP, pk_min_i64(STRIP, w->columns - i * STRIP));
}

void pk_sum_columns(const pk_call *call, const float *x, int64_t stride, int64_t rows,
                    int64_t columns, int32_t accumulate, float *out) {
    reduction w = {.x = x,
                   .out = out,
                   .stride = stride,
                   .rows = rows,
                   .columns = columns,
                   .accumulate = accumulate};
    pk_parallel(call, pk_ceil_div(columns, STRIP), pk_ceil_div(SMALL, STRIP * pk_max_i64(1, rows)),
                sum_columns_task, &w);
}

/* Sixteen double lanes, which the compiler may hold in any registers: lanes do not meet before the
 * end. */
static double sum_chunk(const float *x, int64_t n) {
    double lane[16] = {0};
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int j = 0; j < 16; j++) lane[j] += x[i + j];
    for (int j = 0; i + j < n; j++) lane[j] += x[i + j];
    for (int width = 8; width > 0; width /= 2)
        for (int j = 0; j < width; j++) lane[j] += lane[j + width];
    return lane[0];
}

static void flat_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const reduction *w = context;
    (void)thread;
    (void)scratch;
    for (int64_t i = begin; i < end; i++) {
        const int64_t at = i * PK_FLAT_CHUNK;
        w->partials[i] = sum_chunk(w->x + at, pk_min_i64(PK_FLAT_CHUNK, w->columns - at));
    }
}

/* The partials of as many chunks as the scratch holds, then the next ones; always added in order.
 */
double pk_sum_flat(const pk_call *call, const float *x, int64_t n) {
    const int64_t room = PK_SCRATCH_BYTES / (int64_t)sizeof(double);
    double total = 0, *partials = pk_scratch(call);
    for (int64_t at = 0; at < n; at += room * PK_FLAT_CHUNK) {
        reduction w = {.x = x + at,
                       .columns = pk_min_i64(n - at, room * PK_FLAT_CHUNK),
                       .partials = partials};
        const int64_t chunks = pk_ceil_div(w.columns, PK_FLAT_CHUNK);
        pk_parallel(call, chunks, SMALL / PK_FLAT_CHUNK, flat_task, &w);
        for (int64_t i = 0; i < chunks; i++) total += partials[i];
    }
    return total;
}
