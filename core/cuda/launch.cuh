/* launch.cuh: how a kernel reaches the device; shared by the CUDA dialect and its emulation, each
 * of which includes it.
 *
 * A kernel is a struct of its arguments with `operator()() const`, passed to the device by value:
 *     struct scale { float *y; const float *x; float a;
 *         PK_DEVICE void operator()(int64_t i) const { y[i] = a * x[i]; } };
 *     return pk_each(call, n, scale{y, x, a});
 * Kernels stand in an unnamed namespace: the type names the instantiation, and many files have one
 * of the same name.
 *
 * Every launch passes a gate.  It is closed where the node's guard is 0, and after a kernel has
 * found bad data, so that nothing behind it touches parameters; neither costs a round trip to the
 * host. */
#ifndef PK_LAUNCH_CUH
#define PK_LAUNCH_CUH

#define PK_NO_FAULT (~0ull)
#define PK_SCRATCH_ROOM                                                                            \
    (32ll << 20) /* bytes of device scratch of a session: partial sums of one kernel call */

/* In device memory, one a session.  `what` is a text of the host, never read on the device. */
typedef struct pk_fault {
    unsigned long long
        where; /* row << 32 | low half of the value; PK_NO_FAULT: none.  The first row wins. */
    unsigned long long ticket; /* launch that found it */
    const pk_call *call;
    const char *what; /* printf text for (value, limit) */
    int64_t limit;
} pk_fault;

/* What pk_call.stream points to. */
typedef struct pk_stream {
    pk_queue queue;
    pk_fault *fault; /* device */
    char *scratch; /* device, PK_SCRATCH_ROOM bytes */
    unsigned long long tickets;
} pk_stream;

typedef struct pk_gate {
    const int32_t *guard; /* device; NULL: always open */
    pk_fault *fault;
    const pk_call *call;
    unsigned long long ticket;
} pk_gate;

static inline pk_stream *pk_stream_of(const pk_call *call) { return (pk_stream *)call->stream; }

static inline pk_gate pk_gate_of(const pk_call *call) {
    pk_stream *s = pk_stream_of(call);
    return pk_gate{call->guard, s->fault, call, ++s->tickets};
}

/* A fault of the same launch does not close it: all its rows are looked at, so the first one is
 * always the one reported. */
PK_DEVICE int pk_is_open(const pk_gate &gate) {
    if (gate.guard && *gate.guard == 0) return 0;
    const volatile pk_fault *fault = gate.fault;
    return fault->where == PK_NO_FAULT || fault->ticket == gate.ticket;
}

/* Bad data in a row: the call will fail with PK_BAD_DATA. */
PK_DEVICE void pk_fault_at(const pk_gate &gate, const char *what, int64_t row, int64_t value,
                           int64_t limit) {
    const int64_t least = -2147483647 - 1, most = 2147483647;
    const int64_t shown = value < least ? least : value > most ? most : value;
    pk_fault *fault = gate.fault;
    fault->ticket = gate.ticket;
    fault->call = gate.call;
    fault->what = what;
    fault->limit = limit;
    pk_device_fence();
    pk_atomic_min(&fault->where, (unsigned long long)row << 32 | (uint32_t)shown);
}

/* Scratch of a kernel call: `bytes` at most PK_SCRATCH_ROOM.  Later launches of the call find it as
 * earlier ones left it. */
template <class T> T *pk_device_scratch(const pk_call *call) {
    return (T *)pk_stream_of(call)->scratch;
}

#define PK_EACH_BLOCK 256

/* f(i) for i = 0 .. n - 1, in any order: the threads do not meet. */
template <class F> struct pk_each_kernel {
    F f;
    int64_t n;
    PK_DEVICE void operator()() const {
        const int64_t step = (int64_t)gridDim.x * PK_EACH_BLOCK;
        for (int64_t i = (int64_t)blockIdx.x * PK_EACH_BLOCK + threadIdx.x; i < n; i += step) f(i);
    }
};

template <class F>
pk_status pk_each_behind(const pk_call *call, const pk_gate &gate, int64_t n, const F &f) {
    if (n <= 0) return PK_OK;
    const int64_t blocks = pk_min_i64(pk_ceil_div(n, PK_EACH_BLOCK), 1 << 16);
    return pk_launch<0>(call, gate, pk_dim((unsigned)blocks), pk_dim(PK_EACH_BLOCK),
                        pk_each_kernel<F>{f, n});
}
template <class F> pk_status pk_each(const pk_call *call, int64_t n, const F &f) {
    return pk_each_behind(call, pk_gate_of(call), n, f);
}

/* PK_LAUNCH(call, grid, block, kernel): threads of a block may meet (pk_sync, warp functions,
 * shared memory). */
#define PK_LAUNCH(call, grid, block, ...)                                                          \
    pk_launch<1>(call, pk_gate_of(call), grid, block, __VA_ARGS__)

/* value, or value added to what is there */
PK_DEVICE void pk_put(float *out, float value, int add) { *out = add ? *out + value : value; }

#define PK_TRY(expression)                                                                         \
    do {                                                                                           \
        const pk_status status_ = (expression);                                                    \
        if (status_ != PK_OK) return status_;                                                      \
    } while (0)
#endif
