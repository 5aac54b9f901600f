/* reductions.cuh: sums and maxima whose order depends on shapes alone. */
#ifndef PK_REDUCTIONS_CUH
#define PK_REDUCTIONS_CUH
#include "pk_cuda.cuh"

/* ---- within a warp or a block; every thread calls and gets the result ---- */
template <class T> PK_DEVICE T pk_warp_sum(T value) {
    for (int by = PK_WARP / 2; by > 0; by /= 2) value += pk_warp_xor(value, by);
    return value;
}
/* A NaN is passed over. */
PK_DEVICE float pk_warp_max(float value) {
    for (int by = PK_WARP / 2; by > 0; by /= 2) value = fmaxf(value, pk_warp_xor(value, by));
    return value;
}
/* Blocks of whole warps along x.  Warps in their order. */
template <class T> PK_DEVICE T pk_block_sum(T value) {
    PK_SHARED(T, part, PK_WARP);
    const T mine = pk_warp_sum(value);
    if (threadIdx.x % PK_WARP == 0) part[threadIdx.x / PK_WARP] = mine;
    pk_sync();
    T sum = part[0];
    for (unsigned w = 1; w < blockDim.x / PK_WARP; w++) sum += part[w];
    pk_sync();
    return sum;
}

/* ---- one sum ---- */
#define PK_FLAT_BLOCK 256
#define PK_FLAT_CHUNK 2048 /* elements that are worth a block */
#define PK_FLAT_BLOCKS 1024

/* V: T at(i).  S: void put(T sum), called by one thread. */
template <class T, class V, class S> struct pk_flat_kernel {
    V v;
    S s;
    T *partial; /* NULL: this block has the whole sum */
    int64_t n;
    PK_DEVICE void operator()() const {
        T mine = T(0);
        const int64_t step = (int64_t)gridDim.x * PK_FLAT_BLOCK;
        for (int64_t i = (int64_t)blockIdx.x * PK_FLAT_BLOCK + threadIdx.x; i < n; i += step)
            mine += v.at(i);
        const T sum = pk_block_sum(mine);
        if (threadIdx.x != 0) return;
        if (partial) partial[blockIdx.x] = sum;
        else s.put(sum);
    }
};
template <class T> struct pk_partials {
    const T *data;
    PK_DEVICE T at(int64_t i) const { return data[i]; }
};

/* s.put(sum of v.at(i), i < n); uses the first kilobytes of the scratch. */
template <class T, class V, class S>
pk_status pk_flat_sum(const pk_call *call, int64_t n, const V &v, const S &s) {
    const int64_t blocks = pk_min_i64(pk_max_i64(1, pk_ceil_div(n, PK_FLAT_CHUNK)), PK_FLAT_BLOCKS);
    const pk_dim block(PK_FLAT_BLOCK);
    T *partial = pk_device_scratch<T>(call);
    if (blocks == 1)
        return PK_LAUNCH(call, pk_dim(1), block, pk_flat_kernel<T, V, S>{v, s, NULL, n});
    PK_TRY(PK_LAUNCH(call, pk_dim((unsigned)blocks), block,
                     pk_flat_kernel<T, V, S>{v, s, partial, n}));
    return PK_LAUNCH(
        call, pk_dim(1), block,
        pk_flat_kernel<T, pk_partials<T>, S>{pk_partials<T>{partial}, s, NULL, blocks});
}

struct pk_floats {
    const float *x;
    PK_DEVICE double at(int64_t i) const { return x[i]; }
};
struct pk_squares {
    const float *x;
    PK_DEVICE double at(int64_t i) const { return (double)x[i] * (double)x[i]; }
};
struct pk_scaled_result {
    float *out;
    float scale;
    int add;
    PK_DEVICE void put(double sum) const {
        *out = (float)((add ? (double)*out : 0.0) + (double)scale * sum);
    }
};

/* ---- sums over dimensions ---- */
/* Neighbouring dimensions that are both summed or both kept become one; then there is the last one,
 * a row that is summed or kept, and the others. */
typedef struct pk_walk {
    int32_t n; /* without the last one */
    int32_t row_summed;
    int64_t dim[PK_MAX_DIM], step[PK_MAX_DIM];
    int32_t is_summed[PK_MAX_DIM];
    int64_t row, kept, summed; /* size of the last one; products of the others */
} pk_walk;

static inline pk_walk pk_walk_of(int32_t ndim, const int64_t *dim, uint32_t bits) {
    pk_walk w = {};
    for (int32_t d = 0; d < ndim; d++) {
        const int32_t s = (bits >> d) & 1u;
        if (dim[d] == 1) continue;
        if (w.n > 0 && w.is_summed[w.n - 1] == s) {
            w.dim[w.n - 1] *= dim[d];
        } else {
            w.is_summed[w.n] = s;
            w.dim[w.n++] = dim[d];
        }
    }
    if (w.n == 0) w.dim[0] = 1, w.is_summed[0] = 0, w.n = 1;
    w.n--;
    w.row = w.dim[w.n];
    w.row_summed = w.is_summed[w.n];
    w.kept = w.summed = 1;
    int64_t step = w.row;
    for (int32_t i = w.n - 1; i >= 0; i--) {
        w.step[i] = step;
        step *= w.dim[i];
        if (w.is_summed[i]) w.summed *= w.dim[i];
        else w.kept *= w.dim[i];
    }
    return w;
}

/* Offset of the index-th combination of the kept, or of the summed, dimensions. */
PK_DEVICE int64_t pk_walk_offset(const pk_walk &w, int summed, int64_t index) {
    int64_t at = 0;
    for (int32_t i = w.n - 1; i >= 0; i--) {
        if (w.is_summed[i] != summed) continue;
        at += index % w.dim[i] * w.step[i];
        index /= w.dim[i];
    }
    return at;
}

#define PK_ROW_WARPS 4 /* outputs of a block where each has a warp */
#define PK_ROW_LONG 4096 /* elements from which on each has a block */

/* Rows are summed: an output has a warp, or a block where `whole`. */
template <int whole> struct pk_sum_rows_kernel {
    pk_walk w;
    const float *x;
    float *out;
    float scale;
    int add;
    PK_DEVICE void operator()() const {
        const int lanes = whole ? PK_FLAT_BLOCK : PK_WARP;
        const int64_t k = whole ? blockIdx.x
                                : (int64_t)blockIdx.x * PK_ROW_WARPS + threadIdx.x / PK_WARP;
        float mine = 0.0f;
        if (k < w.kept) {
            const float *from = x + pk_walk_offset(w, 0, k);
            for (int64_t e = threadIdx.x % lanes; e < w.summed * w.row; e += lanes)
                mine += from[pk_walk_offset(w, 1, e / w.row) + e % w.row];
        }
        const float sum = whole ? pk_block_sum(mine) : pk_warp_sum(mine);
        if (k < w.kept && threadIdx.x % lanes == 0) pk_put(out + k, scale * sum, add);
    }
};

#define PK_COLUMN_ROWS 64 /* rows of a chunk */

/* Rows are kept: sums over chunks of rows, [chunks, kept, row]; then the chunks in order.  One
 * chunk goes to the result at once. */
struct pk_sum_columns_kernel {
    pk_walk w;
    const float *x;
    float *out;
    int64_t rows;
    float scale;
    int add;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t width = w.kept * w.row, chunk = e / width, at = e % width;
        const float *from = x + pk_walk_offset(w, 0, at / w.row) + at % w.row;
        const int64_t last = chunk * rows + rows < w.summed ? chunk * rows + rows : w.summed;
        float sum = 0.0f;
        for (int64_t r = chunk * rows; r < last; r++) sum += from[pk_walk_offset(w, 1, r)];
        pk_put(out + e, scale * sum, add);
    }
};
struct pk_join_columns_kernel {
    const float *partial;
    float *out;
    int64_t width, chunks;
    float scale;
    int add;
    PK_DEVICE void operator()(int64_t i) const {
        float sum = 0.0f;
        for (int64_t c = 0; c < chunks; c++) sum += partial[c * width + i];
        pk_put(out + i, scale * sum, add);
    }
};

/* Bit d of `summed`: dimension d of x [dim] is summed.  out (kept dimensions only) (=|+=) scale *
 * sum. */
static inline pk_status pk_sum_dims(const pk_call *call, float *out, const float *x, int32_t ndim,
                                    const int64_t *dim, uint32_t summed, float scale, int add) {
    const pk_walk w = pk_walk_of(ndim, dim, summed);
    if (w.row_summed && w.n == 0)
        return pk_flat_sum<double>(call, w.row, pk_floats{x}, pk_scaled_result{out, scale, add});
    if (w.row_summed && w.summed * w.row >= PK_ROW_LONG)
        return PK_LAUNCH(call, pk_dim((unsigned)w.kept), pk_dim(PK_FLAT_BLOCK),
                         pk_sum_rows_kernel<1>{w, x, out, scale, add});
    if (w.row_summed)
        return PK_LAUNCH(call, pk_dim((unsigned)pk_ceil_div(w.kept, PK_ROW_WARPS)),
                         pk_dim(PK_ROW_WARPS * PK_WARP),
                         pk_sum_rows_kernel<0>{w, x, out, scale, add});
    const int64_t width = w.kept * w.row;
    if (width == 0) return PK_OK;
    const int64_t most = pk_max_i64(1, PK_SCRATCH_ROOM / 4 / width);
    const int64_t rows = pk_max_i64(PK_COLUMN_ROWS, pk_ceil_div(w.summed, most));
    const int64_t chunks = pk_ceil_div(w.summed, rows);
    if (chunks <= 1) return pk_each(call, width, pk_sum_columns_kernel{w, x, out, rows, scale, add});
    float *partial = pk_device_scratch<float>(call);
    PK_TRY(pk_each(call, chunks * width, pk_sum_columns_kernel{w, x, partial, rows, 1.0f, 0}));
    return pk_each(call, width, pk_join_columns_kernel{partial, out, width, chunks, scale, add});
}

struct pk_repeat_kernel {
    pk_walk w;
    const float *x;
    float *out;
    float scale;
    int add;
    PK_DEVICE void operator()(int64_t e) const {
        int64_t row = e / w.row, index = 0, size = 1;
        for (int32_t i = w.n - 1; i >= 0; i--) {
            if (!w.is_summed[i]) {
                index += row % w.dim[i] * size;
                size *= w.dim[i];
            }
            row /= w.dim[i];
        }
        pk_put(out + e, scale * (w.row_summed ? x[index] : x[index * w.row + e % w.row]), add);
    }
};

/* out [dim] (=|+=) scale * x, x [kept dimensions only] repeated along those in `summed`. */
static inline pk_status pk_repeat_dims(const pk_call *call, float *out, const float *x,
                                       int32_t ndim, const int64_t *dim, uint32_t summed,
                                       float scale, int add) {
    const pk_walk w = pk_walk_of(ndim, dim, summed);
    return pk_each(call, w.kept * w.summed * w.row, pk_repeat_kernel{w, x, out, scale, add});
}

/* The bits of a list of dimensions (negative ones count from the end; none: all), for a tensor of
 * ndim. */
static inline pk_status pk_dims_bits(const pk_call *call, const int64_t *list, int32_t ndim,
                                     uint32_t *bits) {
    *bits = list[0] == 0 ? (1u << ndim) - 1u : 0;
    for (int64_t i = 0; i < list[0]; i++) {
        const int64_t d = list[1 + i] < 0 ? list[1 + i] + ndim : list[1 + i];
        if (d < 0 || d >= ndim)
            return pk_fail(call, PK_BAD_SHAPE, -1, "dimension %lld of a tensor of %d dimensions",
                           (long long)list[1 + i], (int)ndim);
        *bits |= 1u << d;
    }
    return PK_OK;
}
#endif
