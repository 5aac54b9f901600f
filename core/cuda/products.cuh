/* products.cuh: c[i, j] = sum over k of a(i, k) b(k, j) in tiles; where a, b come from and what
 * becomes of a sum are structs, so that matrix products and convolutions are one kernel.
 *
 * Order of a sum: chunks of PK_PRODUCT_CHUNK as on the CPU, each from 0 by fma in the order of k,
 * chunks added in order. Where few tiles meet a long k it is cut into parts of whole chunks, by
 * shape alone; the parts' sums are added in order. */
#ifndef PK_PRODUCTS_CUH
#define PK_PRODUCTS_CUH
#include "elementwise.cuh"

#define PK_PRODUCT_CHUNK 256
#define PK_TILE 64 /* rows and columns of a tile */
#define PK_TILE_K 16
#define PK_TILE_EDGE 16 /* threads along a tile's edge: each has 4 by 4 elements */
#define PK_TILE_EACH (PK_TILE / PK_TILE_EDGE)
#define PK_TILES_WANTED                                                                            \
    264 /* two for each processor of a large device; part of the numbers, do not tune it */

/* A: float at(batch, i, k), int k_first: k is the dimension in which memory runs.  B: float
 * at(batch, k, j), int j_first. S: void put(batch, i, j, sum). */
template <class A, class B, class S> struct pk_product_kernel {
    A a;
    B b;
    S s;
    int64_t m, n, k, part, parts; /* part: of k, a multiple of the chunk */

    PK_DEVICE void operator()() const {
        PK_SHARED(float, tile_a, PK_TILE_K *(PK_TILE + 1));
        PK_SHARED(float, tile_b, PK_TILE_K *(PK_TILE + 1));
        const int64_t columns = (n + PK_TILE - 1) / PK_TILE, rows = (m + PK_TILE - 1) / PK_TILE;
        const int64_t column = blockIdx.x % columns * PK_TILE,
                      row = blockIdx.x / columns % rows * PK_TILE;
        const int64_t which = blockIdx.x / columns / rows, batch = which / parts;
        const int64_t begin = which % parts * part, end = begin + part < k ? begin + part : k;
        const int x = threadIdx.x % PK_TILE_EDGE, y = threadIdx.x / PK_TILE_EDGE;
        float sum[PK_TILE_EACH][PK_TILE_EACH] = {}, chunk[PK_TILE_EACH][PK_TILE_EACH] = {};
        for (int64_t at = begin; at < end; at += PK_TILE_K) {
            load(tile_a, tile_b, batch, row, column, at, end);
            pk_sync();
            for (int q = 0; q < PK_TILE_K; q++) {
                float va[PK_TILE_EACH], vb[PK_TILE_EACH];
                for (int i = 0; i < PK_TILE_EACH; i++)
                    va[i] = tile_a[q * (PK_TILE + 1) + y + PK_TILE_EDGE * i];
                for (int j = 0; j < PK_TILE_EACH; j++)
                    vb[j] = tile_b[q * (PK_TILE + 1) + x + PK_TILE_EDGE * j];
                for (int i = 0; i < PK_TILE_EACH; i++)
                    for (int j = 0; j < PK_TILE_EACH; j++)
                        chunk[i][j] = fmaf(va[i], vb[j], chunk[i][j]);
            }
            pk_sync();
            if ((at + PK_TILE_K - begin) % PK_PRODUCT_CHUNK != 0 && at + PK_TILE_K < end) continue;
            for (int i = 0; i < PK_TILE_EACH; i++)
                for (int j = 0; j < PK_TILE_EACH; j++) sum[i][j] += chunk[i][j], chunk[i][j] = 0.0f;
        }
        for (int i = 0; i < PK_TILE_EACH; i++)
            for (int j = 0; j < PK_TILE_EACH; j++) {
                const int64_t r = row + y + PK_TILE_EDGE * i, c = column + x + PK_TILE_EDGE * j;
                if (r < m && c < n) s.put(which, r, c, sum[i][j]);
            }
    }

    /* Neighbouring threads read along the dimension in which memory runs. */
    PK_DEVICE void load(float *tile_a, float *tile_b, int64_t batch, int64_t row, int64_t column,
                        int64_t at, int64_t end) const {
        for (int e = threadIdx.x; e < PK_TILE * PK_TILE_K; e += PK_TILE_EDGE * PK_TILE_EDGE) {
            const int q = a.k_first ? e % PK_TILE_K : e / PK_TILE,
                      i = a.k_first ? e / PK_TILE_K : e % PK_TILE;
            tile_a[q * (PK_TILE + 1) + i] = row + i < m && at + q < end
                                                ? a.at(batch, row + i, at + q)
                                                : 0.0f;
            const int p = b.j_first ? e / PK_TILE : e % PK_TILE_K,
                      j = b.j_first ? e % PK_TILE : e / PK_TILE_K;
            tile_b[p * (PK_TILE + 1) + j] = column + j < n && at + p < end
                                                ? b.at(batch, at + p, column + j)
                                                : 0.0f;
        }
    }
};

/* Sums of the parts, [batch, parts, m, n], and what adds them up. */
struct pk_partial_sums {
    float *out;
    int64_t m, n;
    PK_DEVICE void put(int64_t which, int64_t i, int64_t j, float sum) const {
        out[(which * m + i) * n + j] = sum;
    }
};
template <class S> struct pk_join_kernel {
    S s;
    const float *in;
    int64_t m, n, parts;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t batch = e / (m * n), at = e % (m * n);
        float sum = 0.0f;
        for (int64_t p = 0; p < parts; p++) sum += in[(batch * parts + p) * m * n + at];
        s.put(batch, at / n, at % n, sum);
    }
};

template <class A, class B, class S> pk_status pk_tile_product(const pk_call *call, int64_t batch,
                                                               int64_t m, int64_t n, int64_t k,
                                                               const A &a, const B &b, const S &s) {
    if (batch <= 0 || m <= 0 || n <= 0) return PK_OK;
    const int64_t tiles = pk_ceil_div(m, PK_TILE) * pk_ceil_div(n, PK_TILE) * batch;
    const int64_t chunks = pk_max_i64(1, pk_ceil_div(k, PK_PRODUCT_CHUNK));
    const int64_t room = PK_SCRATCH_ROOM / (4 * batch * m * n);
    int64_t parts = pk_max_i64(1, pk_min_i64(pk_min_i64(chunks, PK_TILES_WANTED / tiles), room));
    const int64_t part = pk_ceil_div(chunks, parts) * PK_PRODUCT_CHUNK;
    parts = pk_max_i64(1, pk_ceil_div(k, part));
    if (tiles * parts > 0x7fffffff)
        return pk_fail(call, PK_BAD_SHAPE, -1, "a product of %lld tiles",
                       (long long)(tiles * parts));
    const pk_dim grid((unsigned)(tiles * parts)), block(PK_TILE_EDGE * PK_TILE_EDGE);
    if (parts == 1)
        return PK_LAUNCH(call, grid, block, pk_product_kernel<A, B, S>{a, b, s, m, n, k, part, 1});
    const pk_partial_sums sums = {pk_device_scratch<float>(call), m, n};
    PK_TRY(PK_LAUNCH(call, grid, block,
                     pk_product_kernel<A, B, pk_partial_sums>{a, b, sums, m, n, k, part, parts}));
    return pk_each(call, batch * m * n, pk_join_kernel<S>{s, sums.out, m, n, parts});
}

/* ---- matrices ---- */
/* Row-major matrices one behind the other; transposed: stored the other way round. */
struct pk_left {
    const float *data;
    int64_t stride, size; /* of a stored row, of a matrix */
    int transposed, k_first;
    PK_DEVICE float at(int64_t batch, int64_t i, int64_t k) const {
        return data[batch * size + (transposed ? k * stride + i : i * stride + k)];
    }
};
struct pk_right {
    const float *data;
    int64_t stride, size;
    int transposed, j_first;
    PK_DEVICE float at(int64_t batch, int64_t k, int64_t j) const {
        return data[batch * size + (transposed ? j * stride + k : k * stride + j)];
    }
};
struct pk_result {
    float *data;
    int64_t stride, size;
    const float *bias; /* by column; NULL: none */
    int activation, add;
    PK_DEVICE void put(int64_t batch, int64_t i, int64_t j, float sum) const {
        if (bias) sum += bias[j];
        pk_put(data + batch * size + i * stride + j, pk_activate(activation, sum), add);
    }
};

/* c [m, n] = op(a) [m, k] op(b) [k, n] for `batch` dense matrices; the old c is added where `add`.
 */
static inline pk_status pk_multiply(const pk_call *call, int64_t batch, int64_t m, int64_t n,
                                    int64_t k, const float *a, int ta, const float *b, int tb,
                                    float *c, const float *bias, int activation, int add) {
    return pk_tile_product(call, batch, m, n, k, pk_left{a, ta ? m : k, m * k, ta, !ta},
                           pk_right{b, tb ? k : n, k * n, tb, !tb},
                           pk_result{c, n, m * n, bias, activation, add});
}
#endif
