/* winograd_tiles.h: the transforms of winograd.h, sixteen channels a vector, and strips of an image
 * with channels innermost.
 *
 * With the points a = 5/8 and b = 3/2:
 *     input   B^T: a2b2 0 -(a2+b2) 0 1 0 | 0 -+ab2 -b2 +-a 1 0 | 0 -+a2b -a2 +-b 1 0
 *                  | 0 a2b2 0 -(a2+b2) 0 1
 *     filter  G:   (1 p p2) / product of (p - other points) for p = 0, +-a, +-b | 0 0 1
 *     output  A^T: powers 0..3 of the points; infinity counts in the last
 * The gradient of a filter takes the transposed matrices. */
#ifndef PK_WINOGRAD_TILES_H
#define PK_WINOGRAD_TILES_H
#include "pk_kernel.h"
#include "transpose.h"

#define WINO_TILE 4                        /* outputs along one side of a tile */
#define WINO_SIDE 6                        /* inputs along it */
#define WINO_POINTS (WINO_SIDE * WINO_SIDE)
#define WINO_MOST_WIDTH 224                /* widest image: what a strip and a line hold */
#define WINO_LINE (WINO_MOST_WIDTH + 16)   /* an odd number of cache lines */
#define WINO_STRIP (WINO_SIDE * (WINO_MOST_WIDTH + 2) * 16) /* floats of a strip */
#define WINO_LOAD_ROWS 8                   /* rows of tiles that a task transforms together */

/* Scratch of wino_load_strip. */
typedef struct wino_room {
    _Alignas(64) float lines[16 * WINO_LINE];
    float strip[WINO_STRIP];
} wino_room;

#define WINO_A 0.625f
#define WINO_A2 0.390625f
#define WINO_A3 0.244140625f
#define WINO_B 1.5f
#define WINO_B2 2.25f
#define WINO_B3 3.375f
#define WINO_AB2 0.87890625f   /* a2 * b2 */
#define WINO_SUM2 2.640625f    /* a2 + b2 */
#define WINO_N0 (1.0f / 0.87890625f)
#define WINO_NA (1.0f / (2.0f * WINO_A2 * (WINO_A2 - WINO_B2)))
#define WINO_NB (1.0f / (2.0f * WINO_B2 * (WINO_B2 - WINO_A2)))

#define WINO_EACH(i, n) _Pragma("GCC unroll 6") for (int i = 0; i < (n); i++)

PK_INLINE pk_vec wino_times(float c, pk_vec x) { return pk_mul(pk_set1(c), x); }
/* c*x + y */
PK_INLINE pk_vec wino_plus(float c, pk_vec x, pk_vec y) { return pk_fma(pk_set1(c), x, y); }

/* B^T d; values lie `step` apart */
PK_INLINE void wino_input(pk_vec *t, const pk_vec *d, int step) {
    const pk_vec d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step], d4 = d[4 * step],
                 d5 = d[5 * step];
    const pk_vec ua = wino_plus(-WINO_B2, d2, d4), va = wino_plus(-WINO_B2, d1, d3);
    const pk_vec ub = wino_plus(-WINO_A2, d2, d4), vb = wino_plus(-WINO_A2, d1, d3);
    t[0] = wino_plus(WINO_AB2, d0, wino_plus(-WINO_SUM2, d2, d4));
    t[step] = wino_plus(WINO_A, va, ua);
    t[2 * step] = wino_plus(-WINO_A, va, ua);
    t[3 * step] = wino_plus(WINO_B, vb, ub);
    t[4 * step] = wino_plus(-WINO_B, vb, ub);
    t[5 * step] = wino_plus(WINO_AB2, d1, wino_plus(-WINO_SUM2, d3, d5));
}

/* G g, 3 values to 6 */
PK_INLINE void wino_filter(pk_vec *t, int to, const pk_vec *g, int from) {
    const pk_vec g0 = g[0], g1 = g[from], g2 = g[2 * from];
    const pk_vec ea = wino_times(WINO_NA, wino_plus(WINO_A2, g2, g0));
    const pk_vec eb = wino_times(WINO_NB, wino_plus(WINO_B2, g2, g0));
    t[0] = wino_times(WINO_N0, g0);
    t[to] = wino_plus(WINO_NA * WINO_A, g1, ea);
    t[2 * to] = wino_plus(-WINO_NA * WINO_A, g1, ea);
    t[3 * to] = wino_plus(WINO_NB * WINO_B, g1, eb);
    t[4 * to] = wino_plus(-WINO_NB * WINO_B, g1, eb);
    t[5 * to] = g2;
}

/* G^T u, 6 values to 3 */
PK_INLINE void wino_filter_back(pk_vec *g, int to, const pk_vec *u, int from) {
    const pk_vec sa = pk_add(u[from], u[2 * from]), da = pk_sub(u[from], u[2 * from]);
    const pk_vec sb = pk_add(u[3 * from], u[4 * from]), db = pk_sub(u[3 * from], u[4 * from]);
    g[0] = wino_plus(WINO_N0, u[0], wino_plus(WINO_NA, sa, wino_times(WINO_NB, sb)));
    g[to] = wino_plus(WINO_NA * WINO_A, da, wino_times(WINO_NB * WINO_B, db));
    g[2 * to] = wino_plus(WINO_NA * WINO_A2, sa, wino_plus(WINO_NB * WINO_B2, sb, u[5 * from]));
}

/* A^T m, 6 values to 4 */
PK_INLINE void wino_output(pk_vec *y, int to, const pk_vec *m, int from) {
    const pk_vec sa = pk_add(m[from], m[2 * from]), da = pk_sub(m[from], m[2 * from]);
    const pk_vec sb = pk_add(m[3 * from], m[4 * from]), db = pk_sub(m[3 * from], m[4 * from]);
    y[0] = pk_add(m[0], pk_add(sa, sb));
    y[to] = wino_plus(WINO_A, da, wino_times(WINO_B, db));
    y[2 * to] = wino_plus(WINO_A2, sa, wino_times(WINO_B2, sb));
    y[3 * to] = wino_plus(WINO_A3, da, wino_plus(WINO_B3, db, m[5 * from]));
}

/* A y, 4 values to 6 */
PK_INLINE void wino_output_back(pk_vec *m, int to, const pk_vec *y, int from) {
    const pk_vec y0 = y[0], y1 = y[from], y2 = y[2 * from], y3 = y[3 * from];
    const pk_vec ea = wino_plus(WINO_A2, y2, y0),
                 oa = wino_plus(WINO_A3, y3, wino_times(WINO_A, y1));
    const pk_vec eb = wino_plus(WINO_B2, y2, y0),
                 ob = wino_plus(WINO_B3, y3, wino_times(WINO_B, y1));
    m[0] = y0;
    m[to] = pk_add(ea, oa);
    m[2 * to] = pk_sub(ea, oa);
    m[3 * to] = pk_add(eb, ob);
    m[4 * to] = pk_sub(eb, ob);
    m[5 * to] = y3;
}

/* One tile of 6x6 pixels from a strip, rows `row` floats apart, to 36 vectors `point` apart. */
PK_INLINE void wino_input_tile(const float *strip, int64_t row, float *v, int64_t point) {
    pk_vec d[WINO_POINTS], t[WINO_POINTS];
    WINO_EACH(i, 6) WINO_EACH(j, 6) d[i * 6 + j] = pk_load(strip + i * row + j * 16);
    WINO_EACH(j, 6) wino_input(t + j, d + j, 6);
    WINO_EACH(i, 6) {
        wino_input(d + i * 6, t + i * 6, 1);
        WINO_EACH(j, 6) pk_store(v + (i * 6 + j) * point, d[i * 6 + j]);
    }
}

/* The gradient of 4x4 outputs from a strip to 36 vectors. */
PK_INLINE void wino_gradient_tile(const float *strip, int64_t row, float *v, int64_t point) {
    pk_vec y[16], t[24], m[6];
    WINO_EACH(i, 4) WINO_EACH(j, 4) y[i * 4 + j] = pk_load(strip + i * row + j * 16);
    WINO_EACH(j, 4) wino_output_back(t + j, 4, y + j, 4);
    WINO_EACH(i, 6) {
        wino_output_back(m, 1, t + i * 4, 1);
        WINO_EACH(j, 6) pk_store(v + (i * 6 + j) * point, m[j]);
    }
}

/* 36 vectors to 4x4 outputs. */
PK_INLINE void wino_output_tile(const float *m, int64_t point, pk_vec y[16]) {
    pk_vec u[6], t[24];
    WINO_EACH(j, 6) {
        WINO_EACH(i, 6) u[i] = pk_load(m + (i * 6 + j) * point);
        wino_output(t + j, 6, u, 1);
    }
    WINO_EACH(i, 4) wino_output(y + i * 4, 1, t + i * 6, 1);
}

/* Rows first..rows of a strip [rows][columns][16]: sixteen channels (`channels` of them there, the
 * rest 0) of x [channels, height, width] from pixel (top, left) on, 0 outside of the image.
 * `lines` holds 16 * WINO_LINE floats: rows lie there so that sixteen of them do not share sets of
 * the cache, as they often do in the image. */
PK_INLINE void wino_load_strip(const float *x, int64_t channels, int64_t height, int64_t width,
                               int64_t top, int64_t left, int64_t first, int64_t rows,
                               int64_t columns, float *lines, float *strip) {
    const int64_t begin = pk_max_i64(0, -left), end = pk_min_i64(columns, width - left);
    for (int64_t r = first; r < rows; r++) {
        float *to = strip + r * columns * 16;
        const int64_t row = top + r;
        if (row < 0 || row >= height || end <= begin) {
            for (int64_t j = 0; j < columns; j++) pk_store(to + j * 16, pk_zero());
            continue;
        }
        const float *from = x + row * width + left + begin;
        for (int64_t c = 0; c < 16; c++) {
            if (c < channels)
                PK_FOR16(j, n, end - begin)
                    pk_store(lines + c * WINO_LINE + j,
                             pk_load_n(from + c * height * width + j, n));
            else
                for (int64_t j = 0; j < end - begin; j += 16)
                    pk_store(lines + c * WINO_LINE + j, pk_zero());
        }
        for (int64_t j = 0; j < begin; j++) pk_store(to + j * 16, pk_zero());
        for (int64_t j = 0; j < end - begin; j += 4) {
            pk_vec four[4];
            pk_columns_of_16(lines + j, WINO_LINE, four);
            for (int64_t q = 0; q < 4 && begin + j + q < columns; q++)
                pk_store(to + (begin + j + q) * 16, four[q]);
        }
        for (int64_t j = end; j < columns; j++) pk_store(to + j * 16, pk_zero());
    }
}

#endif
