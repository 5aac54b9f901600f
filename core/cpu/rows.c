/* rows.c: see rows.h. */
#include "rows.h"

#include <string.h>

#include "pk_simd.h"

#define PIECE 65536   /* bytes that a task moves at least */

pk_status pk_check_add(const pk_call *call, int32_t out) {
    if (pk_adds(call, out) && call->out[out].dtype != PK_F32)
        return pk_fail(call, PK_BAD_CALL, -1,
                       "output %d cannot be added to: it does not hold floats", (int)out);
    return PK_OK;
}

pk_status pk_check_index(const pk_call *call, const int64_t *index, int64_t n, int64_t height,
                         int64_t skip, const char *name) {
    for (int64_t i = 0; i < n; i++)
        if ((index[i] < 0 || index[i] >= height) && index[i] != skip)
            return pk_fail(call, PK_BAD_DATA, i, "%s is %lld in row %lld, must be from 0 to %lld",
                           name, (long long)index[i], (long long)i, (long long)(height - 1));
    return PK_OK;
}

static void move(char *out, const char *in, int64_t bytes, int add) {
    if (!add) {
        if (out != in) memcpy(out, in, (size_t)bytes);
        return;
    }
    float *o = (float *)out;
    const float *x = (const float *)in;
    PK_FOR16(i, c, bytes / 4)
        pk_store_n(o + i, pk_add(pk_load_n(o + i, c), pk_load_n(x + i, c)), c);
}

/* ---- moving ---- */
typedef struct move_rows {
    char *out;
    const char *in;
    int64_t out_stride, in_stride, bytes, blocks;
    int add;
} move_rows;

static void move_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const move_rows *m = context;
    (void)thread, (void)scratch;
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t row = unit / m->blocks, first = unit % m->blocks * PIECE;
        move(m->out + row * m->out_stride + first, m->in + row * m->in_stride + first,
             pk_min_i64(PIECE, m->bytes - first), m->add);
    }
}

void pk_move_rows(const pk_call *call, void *out, int64_t out_stride, const void *in,
                  int64_t in_stride, int64_t rows, int64_t bytes, int add) {
    if (rows == 0 || bytes == 0) return;
    if (out_stride == bytes && in_stride == bytes) bytes *= rows, rows = 1;   /* one piece */
    move_rows m = {out, in, out_stride, in_stride, bytes, pk_ceil_div(bytes, PIECE), add};
    pk_parallel(call, rows * m.blocks, pk_max_i64(1, PIECE / bytes), move_task, &m);
}

/* ---- gathering ---- */
typedef struct gather {
    char *out;
    const char *x;
    const int64_t *index;
    int64_t bytes, skip;
    int add;
} gather;

static void gather_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const gather *g = context;
    (void)thread, (void)scratch;
    for (int64_t i = begin; i < end; i++) {
        char *out = g->out + i * g->bytes;
        if (g->index[i] != g->skip) move(out, g->x + g->index[i] * g->bytes, g->bytes, g->add);
        else if (!g->add) memset(out, 0, (size_t)g->bytes);
    }
}

void pk_gather_rows(const pk_call *call, void *out, const void *x, const int64_t *index,
                    int64_t rows, int64_t bytes, int64_t skip, int add) {
    if (bytes == 0) return;
    gather g = {out, x, index, bytes, skip, add};
    pk_parallel(call, rows, pk_max_i64(1, PIECE / bytes), gather_task, &g);
}

/* ---- adding up ---- */
typedef struct add_rows {
    float *out;
    const float *x;
    const int64_t *index;
    int64_t height, rows, width, skip, columns, bands;
    int add;
} add_rows;

/* A band of the output's rows in a block of its columns: walks all of x, so the order of additions
 * is that of x. */
static void add_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const add_rows *a = context;
    (void)thread, (void)scratch;
    const int64_t blocks = pk_ceil_div(a->width, a->columns),
                  per = pk_ceil_div(a->height, a->bands);
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t low = unit / blocks * per, high = pk_min_i64(low + per, a->height);
        const int64_t column = unit % blocks * a->columns,
                      n = pk_min_i64(a->columns, a->width - column);
        if (!a->add)
            for (int64_t r = low; r < high; r++)
                memset(a->out + r * a->width + column, 0, (size_t)n * 4);
        for (int64_t i = 0; i < a->rows; i++) {
            const int64_t to = a->index[i];
            if (to < low || to >= high || to == a->skip) continue;
            move((char *)(a->out + to * a->width + column),
                 (const char *)(a->x + i * a->width + column), n * 4, 1);
        }
    }
}

void pk_add_rows(const pk_call *call, float *out, int64_t height, const float *x,
                 const int64_t *index, int64_t rows, int64_t width, int64_t skip, int add) {
    if (height == 0 || width == 0) return;
    add_rows a = {out, x, index, height, rows, width, skip, 256, 0, add};
    /* At most 16 bands: each of them reads all indices. */
    a.bands = pk_min_i64(16, pk_ceil_div(height * width, 16384));
    pk_parallel(call, a.bands * pk_ceil_div(width, a.columns), 1, add_task, &a);
}
