/* runtime.cuh: what the backend asks of CUDA.  emulate/runtime.cuh is the same for the emulation.
 */
#ifndef PK_RUNTIME_CUH
#define PK_RUNTIME_CUH
#include <stdio.h>

#include "pk_cuda.cuh"

#define PK_BACKEND_NAME "cuda"

static inline int pk_rt_ok(cudaError_t error) { return error == cudaSuccess; }

/* Number of devices; `why` says why there is none. */
static inline int pk_rt_devices(char *why, size_t room) {
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess) count = 0;
    if (count == 0)
        snprintf(why, room, "%s",
                 error == cudaSuccess ? "no CUDA device" : cudaGetErrorString(error));
    return count;
}
/* For the calling thread. */
static inline int pk_rt_use(int device) { return pk_rt_ok(cudaSetDevice(device)); }
static inline void pk_rt_name(int device, char *text, size_t room) {
    int major = 0, minor = 0;
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    snprintf(text, room, "sm_%d%d:%d", major, minor, device);
}
static inline void *pk_rt_take(uint64_t bytes) {
    void *data = NULL;
    if (pk_rt_ok(cudaMalloc(&data, bytes))) return data;
    cudaGetLastError();
    return NULL;
}
static inline void pk_rt_give(void *data) { cudaFree(data); }
static inline int pk_rt_open(pk_queue *queue) {
    return pk_rt_ok(cudaStreamCreateWithFlags(queue, cudaStreamNonBlocking));
}
static inline void pk_rt_close(pk_queue queue) { cudaStreamDestroy(queue); }
static inline int pk_rt_wait(pk_queue queue) { return pk_rt_ok(cudaStreamSynchronize(queue)); }

/* In the order of the queue; what goes to the host is there when this returns. */
static inline int pk_rt_copy(pk_queue queue, void *to, const void *from, uint64_t bytes) {
    cudaPointerAttributes place;
    if (!pk_rt_ok(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, queue))) return 0;
    if (pk_rt_ok(cudaPointerGetAttributes(&place, to)) && place.type == cudaMemoryTypeDevice)
        return 1;
    return pk_rt_wait(queue);
}
static inline int pk_rt_fill(pk_queue queue, void *to, int byte, uint64_t bytes) {
    return pk_rt_ok(cudaMemsetAsync(to, byte, bytes, queue));
}
/* The text of the last error, which is forgotten. */
static inline const char *pk_rt_error(void) { return cudaGetErrorString(cudaGetLastError()); }
#endif
