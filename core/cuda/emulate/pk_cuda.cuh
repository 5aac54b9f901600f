/* pk_cuda.cuh: the dialect of device/pk_cuda.cuh for a plain C++ compiler: kernels run on the host.
 *
 * Blocks run one after the other.  Threads that do not meet run in a loop; others are fibers that
 * run until they meet or end.  Threads that wait for others which have gone elsewhere are an error
 * of the launch, as is meeting in pk_each. */
#ifndef PK_CUDA_CUH
#define PK_CUDA_CUH
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PK_BOTH
extern "C" {
#include "pk_kernel.h"
}

#define PK_DEVICE inline
#define PK_SHARED(type, name, count) static type name[count] /* one block at a time */
#define PK_WARP 32

typedef int pk_queue;
typedef struct pk_dim {
    unsigned x, y, z;
    pk_dim(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
} pk_dim;
extern pk_dim threadIdx, blockIdx, blockDim, gridDim;

/* emulate.cpp */
void pk_emulated_meet(int warp_only);
void *pk_emulated_lane(int lane, size_t bytes);
pk_status pk_emulated_launch(const pk_call *call, pk_dim grid, pk_dim block, int meets,
                             void (*body)(const void *), const void *kernel);

/* ---- threads that meet ---- */
inline void pk_sync() { pk_emulated_meet(0); }
inline int pk_lane_() {
    return (int)((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % PK_WARP);
}
/* Every lane of the warp calls; a lane out of range gives its own value. */
template <class T> T pk_warp_from_(T value, int lane) {
    memcpy(pk_emulated_lane(pk_lane_(), sizeof value), &value, sizeof value);
    pk_emulated_meet(1);
    T found = value;
    if (lane >= 0 && lane < PK_WARP)
        memcpy(&found, pk_emulated_lane(lane, sizeof found), sizeof found);
    pk_emulated_meet(1);
    return found;
}
template <class T> T pk_warp_down(T value, int by) { return pk_warp_from_(value, pk_lane_() + by); }
template <class T> T pk_warp_xor(T value, int mask) {
    return pk_warp_from_(value, pk_lane_() ^ mask);
}
template <class T> T pk_warp_from(T value, int lane) { return pk_warp_from_(value, lane); }

/* ---- memory: one thread at a time ---- */
inline void pk_device_fence() {}
inline void pk_atomic_min(unsigned long long *at, unsigned long long value) {
    if (value < *at) *at = value;
}
inline void pk_atomic_add(int64_t *at, int64_t value) { *at += value; }
inline void pk_atomic_max(int32_t *at, int32_t value) {
    if (value > *at) *at = value;
}

template <int meets, class F>
pk_status pk_launch(const pk_call *, struct pk_gate, pk_dim, pk_dim, const F &);
#include "launch.cuh"

template <class F> struct pk_emulated_entry {
    pk_gate gate;
    F f;
    static void run(const void *context) {
        const pk_emulated_entry *e = (const pk_emulated_entry *)context;
        if (pk_is_open(e->gate)) e->f();
    }
};
template <int meets, class F>
pk_status pk_launch(const pk_call *call, pk_gate gate, pk_dim grid, pk_dim block, const F &f) {
    const pk_emulated_entry<F> e{gate, f};
    return pk_emulated_launch(call, grid, block, meets, pk_emulated_entry<F>::run, &e);
}
#endif
