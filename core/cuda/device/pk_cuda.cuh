/* pk_cuda.cuh: the dialect in which kernels are written, for CUDA.  emulate/pk_cuda.cuh is the same
 * for a plain C++ compiler.
 *
 * A kernel file uses this, the CUDA names threadIdx, blockIdx, blockDim and gridDim, and C's math
 * functions: no inline assembly, no cooperative launch, no float atomics, no #ifdef. */
#ifndef PK_CUDA_CUH
#define PK_CUDA_CUH
#include <cuda_runtime.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PK_BOTH __host__ __device__
extern "C" {
#include "pk_kernel.h"
}

/* Functions of the device.  Those of a kernel file stand in its unnamed namespace, as its kernels
 * do. */
#define PK_DEVICE __device__ __forceinline__
#define PK_SHARED(type, name, count) __shared__ type name[count]
#define PK_WARP 32

typedef cudaStream_t pk_queue;
typedef dim3 pk_dim;

/* ---- threads that meet ---- */
PK_DEVICE void pk_sync() { __syncthreads(); }
template <class T> PK_DEVICE T pk_warp_down(T value, int by) {
    return __shfl_down_sync(0xffffffffu, value, by);
}
template <class T> PK_DEVICE T pk_warp_xor(T value, int mask) {
    return __shfl_xor_sync(0xffffffffu, value, mask);
}
template <class T> PK_DEVICE T pk_warp_from(T value, int lane) {
    return __shfl_sync(0xffffffffu, value, lane);
}

/* ---- memory ---- */
PK_DEVICE void pk_device_fence() { __threadfence(); }
PK_DEVICE void pk_atomic_min(unsigned long long *at, unsigned long long value) {
    atomicMin(at, value);
}
PK_DEVICE void pk_atomic_add(int64_t *at, int64_t value) {
    atomicAdd((unsigned long long *)at, (unsigned long long)value);
}
PK_DEVICE void pk_atomic_max(int32_t *at, int32_t value) { atomicMax(at, value); }

template <int meets, class F>
pk_status pk_launch(const pk_call *, struct pk_gate, pk_dim, pk_dim, const F &);
#include "launch.cuh"

template <class F> __global__ void pk_entry(const pk_gate gate, const F f) {
    if (pk_is_open(gate)) f();
}
template <int meets, class F>
pk_status pk_launch(const pk_call *call, pk_gate gate, pk_dim grid, pk_dim block, const F &f) {
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) return PK_OK;
    pk_entry<F><<<grid, block, 0, pk_stream_of(call)->queue>>>(gate, f);
    const cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) return PK_OK;
    return pk_fail(call, PK_DEVICE_ERROR, -1, "the launch failed: %s", cudaGetErrorString(error));
}
#endif
