/* rows.cuh: rows of any element type moved, gathered and looked up. */
#ifndef PK_ROWS_CUH
#define PK_ROWS_CUH
#include "pk_cuda.cuh"

/* Bytes of an element. */
static inline int64_t pk_element_bytes(int32_t dtype) {
    const int8_t bytes[] = {4, 8, 2, 2, 8, 4, 2, 1, 1, 1};
    return bytes[dtype];
}

/* Kernels of any element type can add to an output of floats only. */
static inline pk_status pk_check_add(const pk_call *call, int32_t out) {
    if (pk_adds(call, out) && call->out[out].dtype != PK_F32)
        return pk_fail(call, PK_BAD_CALL, -1,
                       "output %d cannot be added to: it does not hold floats", (int)out);
    return PK_OK;
}

/* out[r, e] = in[r, e] for rows of n elements of type T; strides in elements. */
template <class T> struct pk_move_kernel {
    T *out;
    const T *in;
    int64_t n, out_stride, in_stride;
    PK_DEVICE void operator()(int64_t i) const {
        out[i / n * out_stride + i % n] = in[i / n * in_stride + i % n];
    }
};
struct pk_move_add_kernel {
    float *out;
    const float *in;
    int64_t n, out_stride, in_stride;
    PK_DEVICE void operator()(int64_t i) const {
        out[i / n * out_stride + i % n] += in[i / n * in_stride + i % n];
    }
};

template <class T> pk_status pk_move_as(const pk_call *call, void *out, int64_t out_stride,
                                        const void *in, int64_t in_stride, int64_t rows,
                                        int64_t bytes) {
    const int64_t s = sizeof(T);
    return pk_each(
        call, rows * (bytes / s),
        pk_move_kernel<T>{(T *)out, (const T *)in, bytes / s, out_stride / s, in_stride / s});
}

/* out[r, 0..bytes) = in[r, 0..bytes) for all rows; strides in bytes, `size` of an element.  add:
 * floats, added. */
static inline pk_status pk_move_rows(const pk_call *call, void *out, int64_t out_stride,
                                     const void *in, int64_t in_stride, int64_t rows, int64_t bytes,
                                     int64_t size, int add) {
    if (rows == 0 || bytes == 0 || (out == in && !add)) return PK_OK;
    if (add)
        return pk_each(call, rows * (bytes / 4),
                       pk_move_add_kernel{(float *)out, (const float *)in, bytes / 4,
                                          out_stride / 4, in_stride / 4});
    if (size == 8) return pk_move_as<uint64_t>(call, out, out_stride, in, in_stride, rows, bytes);
    if (size == 4) return pk_move_as<uint32_t>(call, out, out_stride, in, in_stride, rows, bytes);
    if (size == 2) return pk_move_as<uint16_t>(call, out, out_stride, in, in_stride, rows, bytes);
    return pk_move_as<uint8_t>(call, out, out_stride, in, in_stride, rows, bytes);
}

/* The elements of one view in another of the same type and number. */
static inline pk_status pk_move_view(const pk_call *call, const pk_view *out, const pk_view *in,
                                     int add) {
    const int64_t size = pk_element_bytes(in->dtype), bytes = pk_count(in) * size;
    return pk_move_rows(call, out->data, bytes, in->data, bytes, 1, bytes, size, add);
}

/* State stands among inputs and outputs as the same memory; where a caller gives two places the
 * first is copied over. */
static inline pk_status pk_take_state(const pk_call *call, int32_t in, int32_t out) {
    const pk_view *from = &call->in[in], *to = &call->out[out];
    if (pk_count(from) != pk_count(to))
        return pk_fail(call, PK_BAD_SHAPE, -1, "output %d has %lld elements, the state %lld",
                       (int)out, (long long)pk_count(to), (long long)pk_count(from));
    return pk_move_view(call, to, from, 0);
}

struct pk_check_index_kernel {
    pk_gate gate;
    const int64_t *index;
    int64_t height, skip, inner;
    const char *what;
    PK_DEVICE void operator()(int64_t i) const {
        const int64_t value = index[i];
        if ((value < 0 || value >= height) && value != skip)
            pk_fault_at(gate, what, i / inner, value, height);
    }
};
/* Bad data in row i / inner where index[i] is outside of 0 .. height - 1 and is not `skip`; nothing
 * behind it runs then. what: printf text for the value and the height. */
static inline pk_status pk_check_index(const pk_call *call, const int64_t *index, int64_t n,
                                       int64_t height, int64_t skip, int64_t inner,
                                       const char *what) {
    const pk_gate gate = pk_gate_of(call);
    return pk_each_behind(
        call, gate, n,
        pk_check_index_kernel{gate, index, height, skip, pk_max_i64(1, inner), what});
}
#endif
