/* sort.cuh: ids of rows brought together, so that rows of one id are added up by one thread in
 * their order. */
#ifndef PK_SORT_CUH
#define PK_SORT_CUH
#include "rows.cuh"

#define PK_NO_ID INT64_MAX /* behind all others */

/* Ids and the places of their rows, sorted together: by id, equal ids by place. */
typedef struct pk_keys {
    int64_t *id, *place;
} pk_keys;

struct pk_make_keys {
    pk_keys keys;
    const int64_t *ids;
    int64_t base, skip; /* number of the first place; an id without a row, as are negative ones */
    PK_DEVICE void operator()(int64_t i) const {
        const int64_t id = ids[i];
        keys.id[base + i] = id < 0 || id == skip ? PK_NO_ID : id;
        keys.place[base + i] = base + i;
    }
};
struct pk_fill_keys {
    pk_keys keys;
    int64_t first;
    PK_DEVICE void operator()(int64_t i) const {
        keys.id[first + i] = PK_NO_ID;
        keys.place[first + i] = first + i;
    }
};
/* One step of a bitonic sort of a power of two of keys. */
struct pk_exchange {
    pk_keys keys;
    int64_t whole, half;
    PK_DEVICE void operator()(int64_t i) const {
        const int64_t other = i ^ half;
        if (other < i) return;
        const int64_t a = keys.id[i], b = keys.id[other], p = keys.place[i], q = keys.place[other];
        const int behind = a > b || (a == b && p > q);
        if (behind != ((i & whole) == 0)) return;
        keys.id[i] = b, keys.id[other] = a;
        keys.place[i] = q, keys.place[other] = p;
    }
};

/* Room for n keys: a power of two. */
static inline int64_t pk_sort_room(int64_t n) {
    int64_t room = 1;
    while (room < n) room *= 2;
    return room;
}
/* Keys n .. room - 1 are filled up, then all are sorted. */
static inline pk_status pk_sort_keys(const pk_call *call, const pk_keys &keys, int64_t n) {
    const int64_t room = pk_sort_room(n);
    PK_TRY(pk_each(call, room - n, pk_fill_keys{keys, n}));
    for (int64_t whole = 2; whole <= room; whole *= 2)
        for (int64_t half = whole / 2; half > 0; half /= 2)
            PK_TRY(pk_each(call, room, pk_exchange{keys, whole, half}));
    return PK_OK;
}

/* ---- rows added up by index ---- */
struct pk_zero_floats {
    float *out;
    PK_DEVICE void operator()(int64_t i) const { out[i] = 0.0f; }
};
/* The first key of an id adds the rows of all of them. */
struct pk_add_sorted {
    float *out;
    const float *x;
    pk_keys keys;
    int64_t n, width;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t at = e / width, column = e % width, id = keys.id[at];
        if (id == PK_NO_ID || (at > 0 && keys.id[at - 1] == id)) return;
        float sum = out[id * width + column];
        for (int64_t k = at; k < n && keys.id[k] == id; k++)
            sum += x[keys.place[k] * width + column];
        out[id * width + column] = sum;
    }
};
/* out [height, width] = 0 (unless add), then out[index[i]] += x[i] in the order of i, but for
 * index[i] == skip. */
static inline pk_status pk_add_rows(const pk_call *call, float *out, int64_t height, const float *x,
                                    const int64_t *index, int64_t rows, int64_t width, int64_t skip,
                                    int add) {
    if (!add) PK_TRY(pk_each(call, height * width, pk_zero_floats{out}));
    if (rows == 0 || width == 0) return PK_OK;
    const int64_t room = pk_sort_room(rows);
    if (room * 16 > PK_SCRATCH_ROOM)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld rows are too many to be added up at once",
                       (long long)rows);
    int64_t *scratch = pk_device_scratch<int64_t>(call);
    const pk_keys keys = {scratch, scratch + room};
    PK_TRY(pk_each(call, rows, pk_make_keys{keys, index, 0, skip}));
    PK_TRY(pk_sort_keys(call, keys, rows));
    return pk_each(call, rows * width, pk_add_sorted{out, x, keys, rows, width});
}

/* ---- rows gathered by index ---- */
template <class T> struct pk_gather_kernel {
    T *out;
    const T *x;
    const int64_t *index;
    int64_t width, skip;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t row = index[e / width];
        out[e] = row == skip ? T(0) : x[row * width + e % width];
    }
};
struct pk_gather_add_kernel {
    float *out;
    const float *x;
    const int64_t *index;
    int64_t width, skip;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t row = index[e / width];
        if (row != skip) out[e] += x[row * width + e % width];
    }
};
/* out[i] = x[index[i]] for rows of `width` elements of `size` bytes; zeros where index[i] == skip.
 * add: floats, added. */
static inline pk_status pk_gather_rows(const pk_call *call, void *out, const void *x,
                                       const int64_t *index, int64_t rows, int64_t width,
                                       int64_t size, int64_t skip, int add) {
    const int64_t n = rows * width;
    if (add)
        return pk_each(call, n,
                       pk_gather_add_kernel{(float *)out, (const float *)x, index, width, skip});
    switch (size) {
    case 8:
        return pk_each(
            call, n,
            pk_gather_kernel<uint64_t>{(uint64_t *)out, (const uint64_t *)x, index, width, skip});
    case 4:
        return pk_each(
            call, n,
            pk_gather_kernel<uint32_t>{(uint32_t *)out, (const uint32_t *)x, index, width, skip});
    case 2:
        return pk_each(
            call, n,
            pk_gather_kernel<uint16_t>{(uint16_t *)out, (const uint16_t *)x, index, width, skip});
    default:
        return pk_each(
            call, n,
            pk_gather_kernel<uint8_t>{(uint8_t *)out, (const uint8_t *)x, index, width, skip});
    }
}

/* The sequence that token `row` belongs to. */
PK_DEVICE int64_t pk_sequence_of(const int64_t *offsets, int64_t sequences, int64_t row) {
    int64_t low = 0, high = sequences;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (offsets[middle + 1] > row) high = middle;
        else low = middle + 1;
    }
    return low;
}
#endif
