/* Sequences by length, products with a matrix packed once, and the weight gradient behind the loop. */
#include "recurrences.h"

#include <string.h>

#include "pool.h"
#include "tile.h"

#define ROWS_OF_A_GROUP 8 /* fewer rows a product would read the matrix for too little work */
#define PACKED_ROWS 512   /* of A at once: its packed form fits the scratch */
#define CHANNELS 128      /* rows of dw at once */

/* Longer first, then the smaller id: all keys differ, so the result does not depend on the sort. */
static int before(const int64_t *offsets, int64_t a, int64_t b) {
    const int64_t la = offsets[a + 1] - offsets[a], lb = offsets[b + 1] - offsets[b];
    return la != lb ? la > lb : a < b;
}

/* Lets order[at] sink to its place in a heap whose root comes last. */
static void sink(const int64_t *offsets, int64_t *order, int64_t at, int64_t n) {
    const int64_t value = order[at];
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= n) break;
        if (child + 1 < n && before(offsets, order[child], order[child + 1])) child++;
        if (!before(offsets, value, order[child])) break;
        order[at] = order[child];
        at = child;
    }
    order[at] = value;
}

pk_steps pk_steps_find(const pk_call *call, const pk_view *tokens, int32_t reverse,
                       int64_t *order) {
    const int64_t *offsets = tokens->offsets;
    int64_t n = 0;
    for (int64_t s = 0; s < tokens->sequences; s++)
        if (offsets[s + 1] > offsets[s]) order[n++] = s;
    for (int64_t i = n / 2; i-- > 0;) sink(offsets, order, i, n);
    for (int64_t end = n; end-- > 1;) {
        const int64_t last = order[0];
        order[0] = order[end], order[end] = last;
        sink(offsets, order, 0, end);
    }
    const int64_t wanted = pk_pool_smallest(call->pool)
                               ? n
                               : pk_min_i64(pk_threads(call), pk_ceil_div(n, ROWS_OF_A_GROUP));
    return (pk_steps){offsets, order, tokens->sequences, n, pk_max_i64(1, wanted), reverse};
}

typedef struct {
    const float *w;
    float *panels;
    int64_t stride, k, n;
    int32_t transposed;
} pack_work;

/* Panel by panel; inside a panel k runs through all its chunks. */
static void pack_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const pack_work *p = context;
    (void)thread, (void)scratch;
    for (int64_t i = begin; i < end; i++) {
        const int64_t j = i * PK_TILE_COLUMNS, n = pk_min_i64(PK_TILE_COLUMNS, p->n - j);
        pk_pack_b(p->transposed ? PK_ORDER_COLUMNS : PK_ORDER_ROWS,
                  p->transposed ? p->w + j * p->stride : p->w + j, p->stride, p->k, n,
                  p->panels + j * p->k);
    }
}

void pk_panels_pack(const pk_call *call, const float *w, int64_t stride, int32_t transposed,
                    int64_t k, int64_t n, float *panels) {
    pack_work p = {w, panels, stride, k, n, transposed};
    pk_parallel(call, pk_ceil_div(n, PK_TILE_COLUMNS), 4, pack_task, &p);
}

void pk_panels_multiply(const float *a, int64_t a_stride, int64_t rows, int64_t k,
                        const float *panels, int64_t n, float *c, int64_t c_stride,
                        int32_t accumulate, float *scratch) {
    _Static_assert((PACKED_ROWS * PK_A_ROW_STRIDE + 16) * sizeof(float) <= PK_SCRATCH_BYTES,
                   "packed A in scratch");
    for (int64_t row = 0; row < rows; row += PACKED_ROWS) {
        const int64_t m = pk_min_i64(PACKED_ROWS, rows - row);
        for (int64_t k0 = 0; k0 < k; k0 += PK_PRODUCT_CHUNK) {
            const int64_t kc = pk_min_i64(PK_PRODUCT_CHUNK, k - k0);
            pk_pack_a(PK_ORDER_ROWS, a + row * a_stride + k0, a_stride, m, kc, scratch);
            for (int64_t j = 0; j < n; j += PK_TILE_COLUMNS)
                pk_tile_column(PK_ORDER_ROWS, m, kc, scratch,
                               panels + j * k + k0 * PK_TILE_COLUMNS, c + row * c_stride + j,
                               c_stride, pk_min_i64(PK_TILE_COLUMNS, n - j), accumulate || k0 > 0);
        }
    }
}

typedef struct {
    const pk_call *call;
    const pk_recurrent *p;
    int64_t columns; /* of dw that are one task */
} weight_work;

/* Channels c0 .. c0 + count of the rows one step before tokens first .. last. */
static void gather_before(const pk_recurrent *p, int64_t first, int64_t last, int64_t c0,
                          int64_t count, float *rows) {
    const int64_t *offsets = p->tokens->offsets, sequences = p->tokens->sequences;
    for (int64_t s = pk_sequence_at(offsets, sequences, first);
         s < sequences && offsets[s] < last; s++) {
        const int64_t begin = offsets[s], end = offsets[s + 1];
        for (int64_t t = pk_max_i64(first, begin); t < pk_min_i64(last, end); t++) {
            float *row = rows + (t - first) * count;
            const int64_t from = p->reverse ? t + 1 : t - 1;
            const float *h = p->h0 ? p->h0 + s * p->k + c0 : NULL;
            if (from >= begin && from < end) h = p->h + from * p->k + c0;
            const float *times = p->times && h ? p->times + t * p->times_stride + c0 : NULL;
            PK_FOR16(j, n, count) {
                pk_vec v = h ? pk_load_n(h + j, n) : pk_zero();
                if (times) v = pk_mul(v, pk_load_n(times + j, n));
                pk_store_n(row + j, v, n);
            }
        }
    }
}

/* dz, the longest operand by far, is read once: a task is a strip of its columns, and a chunk of it
 * stays in the L2 cache while all channels pass by. */
static void weight_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const weight_work *w = context;
    const pk_recurrent *r = w->p;
    (void)thread;
    const int64_t tokens = r->tokens->offsets[r->tokens->sequences];
    for (int64_t i = begin; i < end; i++) {
        const int64_t column = i * w->columns, n = pk_min_i64(w->columns, r->n - column);
        float *dw = r->dw + column;
        if (tokens == 0 && !r->accumulate)
            for (int64_t q = 0; q < r->k; q++)
                memset(dw + q * r->dw_stride, 0, (size_t)n * sizeof(float));
        for (int64_t first = 0; first < tokens; first += PK_PRODUCT_CHUNK) {
            const int64_t last = pk_min_i64(first + PK_PRODUCT_CHUNK, tokens);
            for (int64_t c0 = 0; c0 < r->k; c0 += CHANNELS) {
                const int64_t count = pk_min_i64(CHANNELS, r->k - c0);
                gather_before(r, first, last, c0, count, scratch);
                const pk_product p = {.m = count, .n = n, .k = last - first, .a = scratch,
                                      .a_stride = count, .a_transposed = 1,
                                      .b = r->dz + first * r->dz_stride + column,
                                      .b_stride = r->dz_stride, .c = dw + c0 * r->dw_stride,
                                      .c_stride = r->dw_stride,
                                      .accumulate = r->accumulate || first > 0};
                pk_multiply(w->call, &p);
            }
        }
    }
}

void pk_recurrent_weights(const pk_call *call, const pk_recurrent *product) {
    _Static_assert(PK_PRODUCT_CHUNK * CHANNELS * sizeof(float) <= PK_SCRATCH_BYTES,
                   "gathered rows in scratch");
    const int64_t share = pk_pool_smallest(call->pool)
                              ? 1
                              : pk_ceil_div(product->n, pk_threads(call));
    weight_work w = {call, product, pk_ceil_div(share, PK_TILE_COLUMNS) * PK_TILE_COLUMNS};
    pk_parallel(call, pk_ceil_div(product->n, w.columns), 1, weight_task, &w);
}
