/* tile.h: the micro-kernels under products and convolutions, and their packing.
 *
 * A tile is rows x columns of C, at most PK_TILE_ROWS x PK_TILE_COLUMNS, held in registers while k
 * runs over one chunk. Every element is one chain of fma over k: the shape of the tile changes no
 * bit.  A is read where it lies or packed, a block of rows in one of two orders, so that packing
 * never transposes: ROWS keeps k contiguous, COLUMNS keeps the tile's rows contiguous. Packed B is
 * a panel [k][PK_TILE_COLUMNS], zero padded. */
#ifndef PK_TILE_H
#define PK_TILE_H
#include "pk_kernel.h"
#include "pk_simd.h"
#include "products.h"

/* Accumulators fill the registers: 28 of 32 on AVX-512, 12 of 16 on AVX2 (two a vector), 24 of 32
 * on NEON. */
#if defined(__AVX512F__)
#define PK_TILE_ROWS 14
#define PK_TILE_VECTORS 2
#elif PK_HAS_FMA
#define PK_TILE_ROWS 6
#define PK_TILE_VECTORS 1
#else
#define PK_TILE_ROWS 2
#define PK_TILE_VECTORS 1
#endif
#define PK_TILE_COLUMNS (16 * PK_TILE_VECTORS)

typedef enum pk_order { PK_ORDER_ROWS = 0, PK_ORDER_COLUMNS = 1 } pk_order;

/* Floats from one row (ROWS) or one k (COLUMNS) of packed A to the next: 16 more than a chunk, or
 * rows would fall into the same sets of the L1 cache. */
#define PK_A_ROW_STRIDE (PK_PRODUCT_CHUNK + 16)
#define PK_A_COLUMN_STRIDE (PK_TILE_ROWS > 8 ? 16 : 8)

/* Memory that is needed soon: `rows` rows, PK_TILE_COLUMNS floats of each. `at` is where a row's
 * first vector ends, which is on the cache line that its begin may not be on. */
typedef struct pk_later {
    const float *at;
    int64_t stride, rows;
} pk_later;

/* c [rows, columns] (=|+=) a [rows, k] * b [k, columns], k <= PK_PRODUCT_CHUNK.  a_stride is from
 * one row (ROWS) or one k (COLUMNS) to the next.  b must be readable to the next multiple of 16
 * columns.  rows is the index into the tables below. */
typedef void (*pk_tile_fn)(int64_t k, const float *a, int64_t a_stride, const float *b,
                           int64_t b_stride, float *c, int64_t c_stride, int64_t columns,
                           int32_t add, const pk_later *later);

typedef struct pk_tile_row {
    pk_tile_fn narrow; /* up to 16 columns */
    pk_tile_fn full;   /* up to PK_TILE_COLUMNS */
    pk_tile_fn wide;   /* up to wide_columns: for few rows, so that enough fma are in flight */
    int64_t wide_columns;
    /* PK_TILE_COLUMNS of a b that lies anywhere, which the tile also packs on its way: the loads
     * that miss the cache run beside the fma. */
    void (*packing)(int64_t k, const float *a, int64_t a_stride, const float *b, int64_t b_stride,
                    float *panel, float *c, int64_t c_stride, int32_t add, const pk_later *later);
} pk_tile_row;

#define pk_tiles PK_LEVEL_NAME(pk_tiles)
extern const pk_tile_row pk_tiles[2][PK_TILE_ROWS + 1];

/* Rows of each tile when `rows` are cut as evenly as can be: sizes differ by at most one. */
PK_INLINE int64_t pk_tile_split(int64_t rows) { return pk_ceil_div(rows, PK_TILE_ROWS); }
PK_INLINE int64_t pk_tile_begin(int64_t rows, int64_t tiles, int64_t i) { return rows * i / tiles; }

/* Packs rows x k of A.  ROWS: a[r, k] at a[r * stride + k].  COLUMNS: at a[k * stride + r]. */
#define pk_pack_a PK_LEVEL_NAME(pk_pack_a)
void pk_pack_a(pk_order order, const float *a, int64_t stride, int64_t rows, int64_t k,
               float *packed);
/* Packs k x columns of B into one panel; columns <= PK_TILE_COLUMNS.  ROWS: b[k * stride + j].
 * COLUMNS: b[j * stride + k]. */
#define pk_pack_b PK_LEVEL_NAME(pk_pack_b)
void pk_pack_b(pk_order order, const float *b, int64_t stride, int64_t k, int64_t columns,
               float *panel);
/* Rows of A as tiles read them. */
typedef struct pk_left {
    pk_order order;
    const float *at;
    int64_t stride; /* from one row (ROWS) or one k (COLUMNS) to the next */
    int64_t tile;   /* from one packed tile to the next; 0: a tile begins at its first row */
} pk_left;

PK_INLINE pk_left pk_packed_left(pk_order order, const float *packed) {
    if (order == PK_ORDER_ROWS) return (pk_left){order, packed, PK_A_ROW_STRIDE, 0};
    return (pk_left){order, packed, PK_A_COLUMN_STRIDE, PK_PRODUCT_CHUNK * PK_A_COLUMN_STRIDE};
}

/* c [rows, columns] (=|+=) A * one panel; what is needed later is asked for on the way. */
#define pk_tile_panel PK_LEVEL_NAME(pk_tile_panel)
void pk_tile_panel(const pk_left *left, int64_t rows, int64_t k, const float *panel, float *c,
                   int64_t c_stride, int64_t columns, int32_t add, const pk_later *later);
/* The same where the panel is made of b [k, PK_TILE_COLUMNS], rows b_stride apart. */
#define pk_tile_panel_packing PK_LEVEL_NAME(pk_tile_panel_packing)
void pk_tile_panel_packing(const pk_left *left, int64_t rows, int64_t k, const float *b,
                           int64_t b_stride, float *panel, float *c, int64_t c_stride, int32_t add,
                           const pk_later *later);
/* pk_tile_panel of a packed A. */
#define pk_tile_column PK_LEVEL_NAME(pk_tile_column)
void pk_tile_column(pk_order order, int64_t rows, int64_t k, const float *packed_a,
                    const float *panel, float *c, int64_t c_stride, int64_t columns, int32_t add);

/* c [columns] (=|+=) one row of A * b [k, columns], read where it lies. */
#define pk_tile_row_alone PK_LEVEL_NAME(pk_tile_row_alone)
void pk_tile_row_alone(const pk_left *left, int64_t k, const float *b, int64_t b_stride, float *c,
                       int64_t columns, int32_t add);

/* pk_activation on sixteen lanes; inlined with a constant it costs no branch. */
PK_INLINE pk_vec pk_activate(pk_vec x, int32_t activation) {
    switch (activation) {
    case PK_ACT_RELU: return pk_relu(x);
    case PK_ACT_TANH: return pk_tanh(x);
    case PK_ACT_SIGMOID: return pk_sigmoid(x);
    default: return x;
    }
}

#endif
