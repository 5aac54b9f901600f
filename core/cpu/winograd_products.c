/* Micro-kernels: accumulators fill the registers while k, or the tiles, run. */
#include "winograd_products.h"

#include "pk_simd.h"

#if defined(__AVX512F__)
#define MOST_ROWS 14
#define PAIRS 2 /* vectors beside each other */
#elif PK_HAS_FMA
#define MOST_ROWS 6
#define PAIRS 1
#else
#define MOST_ROWS 2
#define PAIRS 1
#endif

/* The sum of a[i * row] * b[v] over k from 0 on, assigned or added to c; all but the pointers and k
 * is constant where this is instantiated. */
PK_INLINE void tile(const int rows, const int vectors, int64_t k, const float *a, const int64_t row,
                    int64_t a_step, const float *b, int64_t b_step, float *c, int64_t c_stride,
                    int add) {
    pk_vec acc[MOST_ROWS][PAIRS];
    _Pragma("GCC unroll 14") for (int i = 0; i < rows; i++)
        _Pragma("GCC unroll 2") for (int v = 0; v < vectors; v++)
            acc[i][v] = pk_zero();
    for (int64_t q = 0; q < k; q++, a += a_step, b += b_step) {
        pk_vec bv[PAIRS];
        _Pragma("GCC unroll 2") for (int v = 0; v < vectors; v++) bv[v] = pk_load(b + 16 * v);
        _Pragma("GCC unroll 14") for (int i = 0; i < rows; i++) {
            const pk_vec av = pk_set1(a[i * row]);
            _Pragma("GCC unroll 2") for (int v = 0; v < vectors; v++)
                acc[i][v] = pk_fma(av, bv[v], acc[i][v]);
        }
    }
    _Pragma("GCC unroll 14") for (int i = 0; i < rows; i++)
        _Pragma("GCC unroll 2") for (int v = 0; v < vectors; v++)
            pk_store(c + i * c_stride + 16 * v,
                     add ? pk_add(pk_load(c + i * c_stride + 16 * v), acc[i][v]) : acc[i][v]);
}

typedef void (*forward_fn)(int64_t k, const float *a, const float *b, float *c, int add);
typedef void (*tiles_fn)(int64_t k, const float *a, int64_t a_step, const float *b, int64_t b_step,
                         float *c, int64_t c_stride, int add);
#define KERNELS(rows, vectors)                                                                     \
    static void forward_##rows##_##vectors(int64_t k, const float *a, const float *b, float *c,    \
                                           int add) {                                              \
        tile(rows, vectors, k, a, WINO_ROW, 1, b, WINO_WIDE, c, WINO_WIDE, add);                   \
    }                                                                                              \
    static void tiles_##rows##_##vectors(int64_t k, const float *a, int64_t a_step,                \
                                         const float *b, int64_t b_step, float *c,                 \
                                         int64_t c_stride, int add) {                              \
        tile(rows, vectors, k, a, 1, a_step, b, b_step, c, c_stride, add);                         \
    }
#if PAIRS == 2
#define KERNEL_ROW(rows) KERNELS(rows, 1) KERNELS(rows, 2)
#define NAMES(kind, rows) {kind##_##rows##_1, kind##_##rows##_2},
#else
#define KERNEL_ROW(rows) KERNELS(rows, 1)
#define NAMES(kind, rows) {kind##_##rows##_1},
#endif
#if MOST_ROWS == 14
#define EACH_ROWS(F) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14)
#elif MOST_ROWS == 6
#define EACH_ROWS(F) F(1) F(2) F(3) F(4) F(5) F(6)
#else
#define EACH_ROWS(F) F(1) F(2)
#endif
EACH_ROWS(KERNEL_ROW)
#define FORWARD_NAME(rows) NAMES(forward, rows)
#define TILES_NAME(rows) NAMES(tiles, rows)
static const forward_fn forward_kernels[MOST_ROWS + 1][PAIRS] = {{0}, EACH_ROWS(FORWARD_NAME)};
static const tiles_fn tiles_kernels[MOST_ROWS + 1][PAIRS] = {{0}, EACH_ROWS(TILES_NAME)};

void pk_wino_multiply(int64_t tiles, int64_t k, int vectors, const float *a, const float *b,
                      float *c, int add) {
    const int64_t parts = pk_ceil_div(tiles, MOST_ROWS);
    for (int64_t t = 0; t < parts; t++) {
        const int64_t first = tiles * t / parts, rows = tiles * (t + 1) / parts - first;
        for (int v = 0; v < vectors; v += PAIRS)
            forward_kernels[rows][pk_min_i64(PAIRS, vectors - v) - 1](
                k, a + first * WINO_ROW, b + 16 * v, c + first * WINO_WIDE + 16 * v, add);
    }
}

void pk_wino_multiply_tiles(int64_t tiles, int64_t rows, int64_t columns, const float *a,
                            int64_t a_stride, const float *b, int64_t b_stride, float *c,
                            int64_t c_stride, int add) {
    const int64_t parts = pk_ceil_div(rows, MOST_ROWS);
    for (int64_t j = 0; j < columns; j += 16 * PAIRS) {
        const int64_t pairs = pk_min_i64(PAIRS, (columns - j) / 16);
        for (int64_t t = 0; t < parts; t++) {
            const int64_t first = rows * t / parts, count = rows * (t + 1) / parts - first;
            tiles_kernels[count][pairs - 1](tiles, a + first, a_stride, b + j, b_stride,
                                            c + first * c_stride + j, c_stride, add);
        }
    }
}
