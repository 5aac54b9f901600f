/* C = op(A) op(B): C is cut into blocks, one task each; for each chunk of k a block packs one panel
 * of B at a time, which then stays in the L1 cache while all rows of the block pass by. They are
 * read where they lie, which costs a tile nothing: packing them took 1 to 6 % of most products, and
 * a third of thin ones. */
#include "products.h"

#include "packing.h"
#include "pool.h"
#include "tile.h"
#include "transpose.h"
#include "windows.h"

#define BLOCK_ROWS 256          /* a block's chunk of A stays in the L2 cache: 256 to 350 KiB */
#define BLOCK_COLUMNS 1024      /* so that a block's C stays near */
/* Multiply-adds below which another thread does not pay: they take 10 us, and what it wrote must
 * come over from its cache afterwards, which can take longer than was gained. */
#define SMALL_WORK (512 * 1024)
#define DEEP 4096 /* k from which on A and B do not stay in a cache: every block reads them anew */
#define NARROW 12               /* columns of C that would leave a quarter of each vector empty */
#define NARROW_ROWS 1024        /* rows of a block of such a product */

typedef struct {
    const pk_product *p;
    int64_t block_rows;
    int64_t blocks_down, blocks_across;
    int64_t unit, units; /* columns are dealt out evenly in units of so many */
} product_work;

PK_INLINE void finish(float *c, int64_t stride, int64_t rows, int64_t columns,
                      const float *row_bias, const float *column_bias, const int32_t activation) {
    for (int64_t r = 0; r < rows; r++, c += stride) {
        const pk_vec rb = row_bias ? pk_set1(row_bias[r]) : pk_zero();
        PK_FOR16(j, n, columns) {
            pk_vec x = pk_load_n(c + j, n);
            if (row_bias) x = pk_add(x, rb);
            if (column_bias) x = pk_add(x, pk_load_n(column_bias + j, n));
            pk_store_n(c + j, pk_activate(x, activation), n);
        }
    }
}

void pk_finish(float *c, int64_t stride, int64_t rows, int64_t columns, const float *row_bias,
               const float *column_bias, int32_t activation) {
    switch (activation) {
    case PK_ACT_RELU: finish(c, stride, rows, columns, row_bias, column_bias, PK_ACT_RELU); break;
    case PK_ACT_TANH: finish(c, stride, rows, columns, row_bias, column_bias, PK_ACT_TANH); break;
    case PK_ACT_SIGMOID:
        finish(c, stride, rows, columns, row_bias, column_bias, PK_ACT_SIGMOID);
        break;
    default:
        if (row_bias || column_bias)
            finish(c, stride, rows, columns, row_bias, column_bias, PK_ACT_NONE);
    }
}

static void finish_part(const pk_product *p, int64_t row, int64_t rows, int64_t column,
                        int64_t columns) {
    pk_finish(p->c + row * p->c_stride + column, p->c_stride, rows, columns, NULL,
              p->bias ? p->bias + column : NULL, p->activation);
}

/* An empty sum. */
static void clear_block(const pk_product *p, int64_t row, int64_t rows, int64_t column,
                        int64_t columns) {
    for (int64_t r = row; r < row + rows && !p->accumulate; r++)
        PK_FOR16(j, n, columns) pk_store_n(p->c + r * p->c_stride + column + j, pk_zero(), n);
    finish_part(p, row, rows, column, columns);
}

/* A chunk of the block's rows. Rows a multiple of 4 KiB apart share one set of the L1 cache, where
 * a tile's do not fit: they are packed, as windows are. */
static pk_left left_of(const pk_product *p, int64_t k0, int64_t k, int64_t row, int64_t rows,
                       float *room) {
    const pk_order order = p->a_transposed ? PK_ORDER_COLUMNS : PK_ORDER_ROWS;
    if (p->windows) {
        pk_pack_windows(p->windows, order, p->a, p->a_stride, row, rows, k0, k, room);
        return pk_packed_left(order, room);
    }
    if (p->a_transposed) return (pk_left){order, p->a + k0 * p->a_stride + row, p->a_stride, 0};
    const float *a = p->a + row * p->a_stride + k0;
    if (p->a_stride % 1024 || rows == 1) return (pk_left){order, a, p->a_stride, 0};
    pk_pack_a(order, a, p->a_stride, rows, k, room);
    return pk_packed_left(order, room);
}

/* Few rows: B is read where it lies, since each value of it is used once; only a last vector that
 * is not whole is packed. */
static void skinny_chunk(const pk_product *p, const pk_left *left, float *panel, int64_t k0,
                         int64_t k, int64_t row, int64_t rows, int64_t column, int64_t columns,
                         int32_t add) {
    const pk_tile_row *tile = &pk_tiles[left->order][rows];
    const pk_later none = {p->b, 0, 0};
    const float *b = p->b + k0 * p->b_stride + column;
    float *c = p->c + row * p->c_stride + column;
    if (rows == 1) {
        pk_tile_row_alone(left, k, b, p->b_stride, c, columns, add);
        return;
    }
    int64_t j = 0;
    for (int64_t n; columns - j >= 16; j += n) {
        pk_tile_fn fn = tile->narrow;
        n = 16;
        if (columns - j >= tile->wide_columns) {
            fn = tile->wide;
            n = tile->wide_columns;
        } else if (columns - j >= PK_TILE_COLUMNS) {
            fn = tile->full;
            n = PK_TILE_COLUMNS;
        }
        fn(k, left->at, left->stride, b + j, p->b_stride, c + j, p->c_stride, n, add, &none);
    }
    if (j == columns) return;
    pk_pack_b(PK_ORDER_ROWS, b + j, p->b_stride, k, columns - j, panel);
    tile->narrow(k, left->at, left->stride, panel, PK_TILE_COLUMNS, c + j, p->c_stride, columns - j,
                 add, &none);
}

/* The panel of B behind the one at column j, in this chunk or the next: B comes from far in large
 * products, and no hardware foresees the way across its rows. */
static pk_later panel_after(const pk_product *p, int64_t k0, int64_t k, int64_t j, int64_t column,
                            int64_t columns) {
    const int64_t next = j + PK_TILE_COLUMNS;
    const float *b = p->b + k0 * p->b_stride + 15;
    if (next < column + columns) return (pk_later){b + next, p->b_stride, k};
    const int64_t rest = pk_min_i64(PK_PRODUCT_CHUNK, p->k - k0 - k);
    return (pk_later){b + k * p->b_stride + column, p->b_stride, rest};
}

static void panel_chunk(const pk_product *p, const pk_left *left, float *panel, int64_t k0,
                        int64_t k, int64_t row, int64_t rows, int64_t column, int64_t columns,
                        int32_t add, int last) {
    for (int64_t j = column; j < column + columns; j += PK_TILE_COLUMNS) {
        const int64_t n = pk_min_i64(PK_TILE_COLUMNS, column + columns - j);
        float *c = p->c + row * p->c_stride + j;
        if (p->b_transposed) {
            const pk_later none = {panel, 0, 0};
            pk_pack_b(PK_ORDER_COLUMNS, p->b + j * p->b_stride + k0, p->b_stride, k, n, panel);
            pk_tile_panel(left, rows, k, panel, c, p->c_stride, n, add, &none);
        } else {
            const pk_later later = panel_after(p, k0, k, j, column, columns);
            const float *b = p->b + k0 * p->b_stride + j;
            if (n == PK_TILE_COLUMNS) {
                pk_tile_panel_packing(left, rows, k, b, p->b_stride, panel, c, p->c_stride, add,
                                      &later);
            } else {
                pk_pack_b(PK_ORDER_ROWS, b, p->b_stride, k, n, panel);
                pk_tile_panel(left, rows, k, panel, c, p->c_stride, n, add, &later);
            }
        }
        if (last) finish_part(p, row, rows, j, n);
    }
}

static void product_block(const pk_product *p, int64_t row, int64_t rows, int64_t column,
                          int64_t columns, float *scratch) {
    float *panel = scratch, *room = scratch + PK_PRODUCT_CHUNK * PK_TILE_COLUMNS;
    const int skinny = rows <= PK_TILE_ROWS && !p->b_transposed;
    if (p->k == 0) clear_block(p, row, rows, column, columns);
    for (int64_t k0 = 0; k0 < p->k; k0 += PK_PRODUCT_CHUNK) {
        const int64_t k = pk_min_i64(PK_PRODUCT_CHUNK, p->k - k0);
        const int32_t add = p->accumulate || k0 > 0;
        const int last = k0 + k == p->k;
        const pk_left left = left_of(p, k0, k, row, rows, room);
        if (!skinny) {
            panel_chunk(p, &left, panel, k0, k, row, rows, column, columns, add, last);
            continue;
        }
        skinny_chunk(p, &left, panel, k0, k, row, rows, column, columns, add);
        if (last) finish_part(p, row, rows, column, columns);
    }
}

static void product_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const product_work *w = context;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = i % w->blocks_down * w->block_rows, across = i / w->blocks_down,
                      column = w->units * across / w->blocks_across * w->unit,
                      after = w->units * (across + 1) / w->blocks_across * w->unit;
        product_block(w->p, row, pk_min_i64(w->block_rows, w->p->m - row), column,
                      pk_min_i64(after, w->p->n) - column, scratch);
    }
}

/* c[r, j] = block[j, r]; rows of the block behind n are read, not used. */
static void turn_back(const float *block, int64_t rows, int64_t n, float *c, int64_t stride) {
    for (int64_t r = 0; r < rows; r += 4) {
        pk_vec out[4];
        pk_columns_of_16(block + r, NARROW_ROWS, out);
        for (int64_t q = 0; q < pk_min_i64(4, rows - r); q++)
            pk_store_n(c + (r + q) * stride, out[q], n);
    }
}

/* Few columns, many rows: the transposed product, whose vectors run over the rows, block by block
 * in scratch.  An element is the same chain of fma either way. */
static void narrow_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const product_work *w = context;
    const pk_product *p = w->p;
    float *block = scratch, *room = block + 16 * NARROW_ROWS;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = i * w->block_rows, rows = pk_min_i64(w->block_rows, p->m - row);
        float *c = p->c + row * p->c_stride;
        const pk_product turned = {.m = p->n,
                                   .n = rows,
                                   .k = p->k,
                                   .c = block,
                                   .c_stride = NARROW_ROWS,
                                   .accumulate = p->accumulate,
                                   .a = p->b,
                                   .a_stride = p->b_stride,
                                   .a_transposed = !p->b_transposed,
                                   .b = p->a_transposed ? p->a + row : p->a + row * p->a_stride,
                                   .b_stride = p->a_stride,
                                   .b_transposed = !p->a_transposed};
        if (p->accumulate) pk_transpose_block(c, p->c_stride, rows, p->n, block, NARROW_ROWS);
        product_block(&turned, 0, p->n, 0, rows, room);
        turn_back(block, rows, p->n, c, p->c_stride);
        finish_part(p, row, rows, 0, p->n);
    }
}

static void multiply_narrow(const pk_call *call, const pk_product *p, int64_t pieces) {
    int64_t rows =
        pk_ceil_div(p->m, pk_max_i64(pk_min_i64(pieces, p->m), pk_ceil_div(p->m, NARROW_ROWS)));
    rows = pk_min_i64(NARROW_ROWS, pk_ceil_div(rows, PK_TILE_COLUMNS) * PK_TILE_COLUMNS);
    product_work w = {.p = p, .block_rows = rows};
    const int64_t blocks = pk_ceil_div(p->m, rows);
    pk_parallel(call, blocks, pieces == 1 ? blocks : 1, narrow_task, &w);
}

/* Cuts C into about as many blocks as wanted, the longer side first, in whole tiles. */
static product_work cut(const pk_product *p, int64_t wanted) {
    int64_t down = pk_ceil_div(p->m, BLOCK_ROWS), across = pk_ceil_div(p->n, BLOCK_COLUMNS);
    for (;;) {
        const int64_t rows = pk_ceil_div(p->m, down), columns = pk_ceil_div(p->n, across);
        if (down * across >= wanted) break;
        if (columns >= 2 * PK_TILE_COLUMNS && (columns >= rows || rows < 2 * PK_TILE_ROWS))
            across++;
        else if (rows >= 2 * PK_TILE_ROWS)
            down++;
        else
            break;
    }
    const int64_t share = pk_ceil_div(p->n, across), rows = pk_ceil_div(p->m, down);
    int64_t unit = PK_TILE_COLUMNS;
    /* Whole tiles, unless that makes one thread wait for another: half a tile costs less. */
    if (8 * pk_ceil_div(pk_ceil_div(p->n, unit), across) * unit > 9 * share) unit = 16;
    return (product_work){.p = p,
                          .block_rows = rows,
                          .blocks_down = pk_ceil_div(p->m, rows),
                          .blocks_across = across,
                          .unit = unit,
                          .units = pk_ceil_div(p->n, unit)};
}

void pk_multiply(const pk_call *call, const pk_product *p) {
    if (p->m <= 0 || p->n <= 0) return;
    /* Fewer than three rows take as long as three: they wait for B. */
    const int64_t work = pk_max_i64(p->m, 3) * p->n * p->k, threads = pk_threads(call);
    const int few = work < 40 * SMALL_WORK || p->k >= DEEP;
    int64_t pieces = threads == 1 || work < SMALL_WORK ? 1 : few ? threads : 4 * threads;
    if (pk_pool_smallest(call->pool)) pieces = INT64_MAX;
    if (p->n <= NARROW && p->m >= 2 * PK_TILE_COLUMNS && !p->windows) {
        multiply_narrow(call, p, pieces);
        return;
    }
    product_work w = cut(p, pieces);
    const int64_t blocks = w.blocks_down * w.blocks_across;
    if (pieces == 1 && blocks == 1)
        product_block(p, 0, p->m, 0, p->n, pk_scratch(call));
    else
        pk_parallel(call, blocks, pieces == 1 ? blocks : 1, product_task, &w);
}
