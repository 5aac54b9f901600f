/* Micro-kernels: one function for each number of rows, each order of A and each width. */
#include "tile.h"

#include <string.h>

#include "transpose.h"

/* The first n lanes of one accumulator, or all of them. */
PK_INLINE void put(float *c, pk_vec v, int64_t n, int32_t add) {
    if (n >= 16)
        pk_store(c, add ? pk_add(pk_load(c), v) : v);
    else if (n > 0)
        pk_store_n(c, add ? pk_add(pk_load_n(c, n), v) : v, n);
}

#define AHEAD 64 /* steps before a tile's end at which it asks for its C */

/* What the compiler must compute where it stands: it would keep the addresses of all rows of C in
 * registers, or derive all rows of A from one, and run out of them inside the loop. */
#define HERE(pointer) __asm__("" : "+r"(pointer))

/* Everything but the pointers is a constant where this is instantiated, so the loops unroll and acc
 * lives in registers. */
PK_INLINE void tile(const int rows, const int vectors, const pk_order order, int64_t k,
                    const float *a, int64_t a_stride, const float *b, int64_t b_stride,
                    const int packs, float *panel, float *c, int64_t c_stride, int64_t columns,
                    int32_t add, const pk_later *later) {
    pk_vec acc[PK_TILE_ROWS][8];
    _Pragma("GCC unroll 16") for (int i = 0; i < rows; i++)
        _Pragma("GCC unroll 8") for (int v = 0; v < vectors; v++) acc[i][v] = pk_zero();
    const float *third[(PK_TILE_ROWS + 2) / 3]; /* every third row of A */
    _Pragma("GCC unroll 16") for (int g = 0; 3 * g < rows; g++) {
        third[g] = a + 3 * g * a_stride;
        if (order == PK_ORDER_ROWS) HERE(third[g]);
    }
    /* The fma leave room for one prefetch a step: first of nothing new, then of C row by row, which
     * comes from far and must not leave the L1 cache again before the end, then of what is needed
     * later.  Tiles of few rows are bound by their loads and do without. */
    const int asks = rows > 3;
    const int64_t asked = pk_min_i64(k, pk_max_i64(AHEAD, later->rows + rows));
    const float *ahead = c;
    int64_t step = 0, rest = asks ? asked : 0;
    for (int64_t left = k;;) {
        for (; left > rest; left--) {
            pk_vec bv[8];
            _Pragma("GCC unroll 8") for (int v = 0; v < vectors; v++) bv[v] = pk_load(b + 16 * v);
            if (packs) {
                _Pragma("GCC unroll 8") for (int v = 0; v < vectors; v++)
                    pk_store(panel + 16 * v, bv[v]);
                panel += 16 * vectors;
            }
            _Pragma("GCC unroll 16") for (int i = 0; i < rows; i++) {
                const pk_vec av =
                    pk_set1(order == PK_ORDER_ROWS ? third[i / 3][i % 3 * a_stride] : a[i]);
                _Pragma("GCC unroll 8") for (int v = 0; v < vectors; v++)
                    acc[i][v] = pk_fma(av, bv[v], acc[i][v]);
            }
            if (order == PK_ORDER_COLUMNS)
                a += a_stride;
            else
                _Pragma("GCC unroll 16") for (int g = 0; 3 * g < rows; g++) third[g]++;
            b += b_stride;
            if (!asks) continue;
            _Pragma("GCC unroll 8") for (int v = 0; v < vectors; v++)
                __builtin_prefetch(ahead + 16 * v, 1, 3);
            ahead += step;
        }
        if (left == 0) break;
        if (left == asked && step == 0) {
            step = c_stride;
            rest = pk_max_i64(0, asked - rows);
        } else {
            ahead = later->at;
            step = later->stride;
            rest = 0;
        }
    }
    _Pragma("GCC unroll 16") for (int i = 0; i < rows; i++, c += c_stride) {
        HERE(c);
        _Pragma("GCC unroll 8") for (int v = 0; v < vectors; v++)
            put(c + 16 * v, acc[i][v], columns - 16 * v, add);
    }
}

#define TILE(name, rows, vectors, order)                                                         \
    static void name(int64_t k, const float *a, int64_t a_stride, const float *b,                \
                     int64_t b_stride, float *c, int64_t c_stride, int64_t columns, int32_t add, \
                     const pk_later *later) {                                                    \
        tile(rows, vectors, order, k, a, a_stride, b, b_stride, 0, NULL, c, c_stride, columns,   \
             add, later);                                                                        \
    }
#define PACKING_TILE(name, rows, order)                                                         \
    static void name(int64_t k, const float *a, int64_t a_stride, const float *b,               \
                     int64_t b_stride, float *panel, float *c, int64_t c_stride, int32_t add,   \
                     const pk_later *later) {                                                   \
        tile(rows, PK_TILE_VECTORS, order, k, a, a_stride, b, b_stride, 1, panel, c, c_stride,  \
             PK_TILE_COLUMNS, add, later);                                                      \
    }
#define TILE_WIDTHS(rows, wide)                                 \
    TILE(narrow_r##rows, rows, 1, PK_ORDER_ROWS)                \
    TILE(narrow_c##rows, rows, 1, PK_ORDER_COLUMNS)             \
    TILE(full_r##rows, rows, PK_TILE_VECTORS, PK_ORDER_ROWS)    \
    TILE(full_c##rows, rows, PK_TILE_VECTORS, PK_ORDER_COLUMNS) \
    TILE(wide_r##rows, rows, wide, PK_ORDER_ROWS)               \
    TILE(wide_c##rows, rows, wide, PK_ORDER_COLUMNS)            \
    PACKING_TILE(packing_r##rows, rows, PK_ORDER_ROWS)          \
    PACKING_TILE(packing_c##rows, rows, PK_ORDER_COLUMNS)
#define ENTRY(o, rows, wide) \
    {narrow_##o##rows, full_##o##rows, wide_##o##rows, 16 * (wide), packing_##o##rows}

#if defined(__AVX512F__)
#define EACH_ROWS(F)                                        \
    F(1, 8) F(2, 8) F(3, 8) F(4, 4) F(5, 4) F(6, 4) F(7, 2) \
    F(8, 2) F(9, 2) F(10, 2) F(11, 2) F(12, 2) F(13, 2) F(14, 2)
#elif PK_HAS_FMA
#define EACH_ROWS(F) F(1, 4) F(2, 2) F(3, 2) F(4, 1) F(5, 1) F(6, 1)
#else
#define EACH_ROWS(F) F(1, 2) F(2, 1)
#endif
EACH_ROWS(TILE_WIDTHS)
#define ENTRY_R(rows, wide) ENTRY(r, rows, wide),
#define ENTRY_C(rows, wide) ENTRY(c, rows, wide),

const pk_tile_row pk_tiles[2][PK_TILE_ROWS + 1] = {
    {{0}, EACH_ROWS(ENTRY_R)},
    {{0}, EACH_ROWS(ENTRY_C)},
};

void pk_pack_a(pk_order order, const float *a, int64_t stride, int64_t rows, int64_t k,
               float *packed) {
    if (order == PK_ORDER_ROWS) {
        for (int64_t r = 0; r < rows; r++, a += stride, packed += PK_A_ROW_STRIDE) {
            int64_t i = 0;
            for (; i + 16 <= k; i += 16) pk_store(packed + i, pk_load(a + i));
            if (i < k) pk_store(packed + i, pk_load_n(a + i, k - i));
        }
        return;
    }
    /* A store may run over the next k's place, which is written after it. */
    const int64_t tiles = pk_tile_split(rows);
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t begin = pk_tile_begin(rows, tiles, t),
                      count = pk_tile_begin(rows, tiles, t + 1) - begin;
        for (int64_t q = 0; q < k; q++, packed += PK_A_COLUMN_STRIDE)
            pk_store(packed, pk_load_n(a + q * stride + begin, count));
        packed += (PK_PRODUCT_CHUNK - k) * PK_A_COLUMN_STRIDE;
    }
}

void pk_pack_b(pk_order order, const float *b, int64_t stride, int64_t k, int64_t columns,
               float *panel) {
    if (order == PK_ORDER_ROWS) {
        if (columns == PK_TILE_COLUMNS) {
            for (int64_t q = 0; q < k; q++, b += stride, panel += PK_TILE_COLUMNS)
                _Pragma("GCC unroll 4") for (int v = 0; v < PK_TILE_VECTORS; v++)
                    pk_store(panel + 16 * v, pk_load(b + 16 * v));
            return;
        }
        for (int64_t q = 0; q < k; q++, b += stride, panel += PK_TILE_COLUMNS)
            for (int v = 0; v < PK_TILE_VECTORS; v++)
                pk_store(panel + 16 * v, pk_load_n(b + 16 * v, pk_max_i64(columns - 16 * v, 0)));
        return;
    }
    for (int64_t v = 0; v < PK_TILE_COLUMNS; v += 16) {
        const int64_t rows = pk_max_i64(pk_min_i64(columns - v, 16), 0);
        const float *p = b + v * stride;
        float *to = panel + v;
        int64_t q = 0;
        for (; rows == 16 && q + 4 <= k; q += 4, to += 4 * PK_TILE_COLUMNS) {
            pk_vec out[4];
            pk_columns_of_16(p + q, stride, out);
            for (int j = 0; j < 4; j++) pk_store(to + j * PK_TILE_COLUMNS, out[j]);
        }
        for (; q < k; q++, to += PK_TILE_COLUMNS) pk_store(to, pk_column_of(p + q, stride, rows));
    }
}

/* What tile t of so many asks for: as much as it has time for. */
PK_INLINE pk_later part_of(const pk_later *later, int64_t t, int64_t tiles) {
    const int64_t each = pk_max_i64(AHEAD - PK_TILE_ROWS, pk_ceil_div(later->rows, tiles)),
                  begin = t * each;
    if (begin >= later->rows) return (pk_later){later->at, 0, 0};
    return (pk_later){later->at + begin * later->stride, later->stride,
                      pk_min_i64(each, later->rows - begin)};
}

/* Tiles first .. of all rows. */
static void tiles_from(int64_t first, const pk_left *left, int64_t rows, int64_t k,
                       const float *panel, float *c, int64_t c_stride, int64_t columns,
                       int32_t add, const pk_later *later) {
    const int64_t tiles = pk_tile_split(rows);
    for (int64_t t = first; t < tiles; t++) {
        const int64_t begin = pk_tile_begin(rows, tiles, t),
                      count = pk_tile_begin(rows, tiles, t + 1) - begin,
                      row = left->order == PK_ORDER_ROWS ? begin * left->stride : begin;
        const pk_tile_row *kind = &pk_tiles[left->order][count];
        const pk_later part = part_of(later, t, tiles);
        (columns <= 16 ? kind->narrow : kind->full)(
            k, left->at + (left->tile ? t * left->tile : row), left->stride, panel, PK_TILE_COLUMNS,
            c + begin * c_stride, c_stride, columns, add, &part);
    }
}

void pk_tile_panel(const pk_left *left, int64_t rows, int64_t k, const float *panel, float *c,
                   int64_t c_stride, int64_t columns, int32_t add, const pk_later *later) {
    tiles_from(0, left, rows, k, panel, c, c_stride, columns, add, later);
}

void pk_tile_panel_packing(const pk_left *left, int64_t rows, int64_t k, const float *b,
                           int64_t b_stride, float *panel, float *c, int64_t c_stride, int32_t add,
                           const pk_later *later) {
    const int64_t tiles = pk_tile_split(rows), count = pk_tile_begin(rows, tiles, 1);
    const pk_later part = part_of(later, 0, tiles);
    pk_tiles[left->order][count].packing(k, left->at, left->stride, b, b_stride, panel, c, c_stride,
                                         add, &part);
    tiles_from(1, left, rows, k, panel, c, c_stride, PK_TILE_COLUMNS, add, later);
}

void pk_tile_column(pk_order order, int64_t rows, int64_t k, const float *packed_a,
                    const float *panel, float *c, int64_t c_stride, int64_t columns, int32_t add) {
    const pk_left left = pk_packed_left(order, packed_a);
    const pk_later none = {panel, 0, 0};
    tiles_from(0, &left, rows, k, panel, c, c_stride, columns, add, &none);
}

/* One row: b is used once, so what counts is that it is read in long pieces. */
#if defined(__AVX512F__)
#define ROW_VECTORS 16
#define EACH_VECTORS(F)                       \
    F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8)   \
    F(9) F(10) F(11) F(12) F(13) F(14) F(15) F(16)
#else
#define ROW_VECTORS 6
#define EACH_VECTORS(F) F(1) F(2) F(3) F(4) F(5) F(6)
#endif

/* The last vector holds 1 to 16 columns. */
PK_INLINE void row_alone(const int vectors, int64_t k, const float *a, int64_t a_step,
                         const float *b, int64_t b_stride, float *c, int64_t last, int32_t add) {
    pk_vec acc[ROW_VECTORS];
    _Pragma("GCC unroll 16") for (int v = 0; v < vectors; v++) acc[v] = pk_zero();
    for (int64_t q = 0; q < k; q++, a += a_step, b += b_stride) {
        const pk_vec av = pk_set1(*a);
        _Pragma("GCC unroll 16") for (int v = 0; v < vectors - 1; v++)
            acc[v] = pk_fma(av, pk_load(b + 16 * v), acc[v]);
        acc[vectors - 1] = pk_fma(av, pk_load_n(b + 16 * (vectors - 1), last), acc[vectors - 1]);
    }
    _Pragma("GCC unroll 16") for (int v = 0; v < vectors; v++)
        put(c + 16 * v, acc[v], v < vectors - 1 ? 16 : last, add);
}

typedef void (*row_fn)(int64_t k, const float *a, int64_t a_step, const float *b, int64_t b_stride,
                       float *c, int64_t last, int32_t add);
#define ROW(v)                                                                                  \
    static void row_##v(int64_t k, const float *a, int64_t a_step, const float *b,              \
                        int64_t b_stride, float *c, int64_t last, int32_t add) {                \
        row_alone(v, k, a, a_step, b, b_stride, c, last, add);                                  \
    }
EACH_VECTORS(ROW)
#define ROW_NAME(v) row_##v,
static const row_fn rows_alone[] = {EACH_VECTORS(ROW_NAME)};

void pk_tile_row_alone(const pk_left *left, int64_t k, const float *b, int64_t b_stride, float *c,
                       int64_t columns, int32_t add) {
    const int64_t step = left->order == PK_ORDER_ROWS ? 1 : left->stride;
    /* Pieces of about the same length. */
    const int64_t vectors = pk_ceil_div(columns, 16), pieces = pk_ceil_div(vectors, ROW_VECTORS);
    for (int64_t i = 0; i < pieces; i++) {
        const int64_t first = vectors * i / pieces, count = vectors * (i + 1) / pieces - first;
        rows_alone[count - 1](k, left->at, step, b + 16 * first, b_stride, c + 16 * first,
                              pk_min_i64(16, columns - 16 * (first + count - 1)), add);
    }
}
