/* runtime.cuh: device/runtime.cuh for the emulation.  "Device" memory can be touched only while a
 * kernel or a copy runs, so an adapter that looks into it on the host ends in a segmentation fault
 * here as it would with CUDA. */
#ifndef PK_RUNTIME_CUH
#define PK_RUNTIME_CUH
#include <stdio.h>

#include "pk_cuda.cuh"

#define PK_BACKEND_NAME "cuda-emulated"

/* emulate.cpp */
void *pk_rt_take(uint64_t bytes);
void pk_rt_give(void *data);
int pk_rt_copy(pk_queue queue, void *to, const void *from, uint64_t bytes);
int pk_rt_fill(pk_queue queue, void *to, int byte, uint64_t bytes);

static inline int pk_rt_devices(char *, size_t) { return 1; }
static inline int pk_rt_use(int device) { return device == 0; }
static inline void pk_rt_name(int, char *text, size_t room) { snprintf(text, room, "emulated"); }
static inline int pk_rt_open(pk_queue *queue) { return *queue = 0, 1; }
static inline void pk_rt_close(pk_queue) {}
static inline int pk_rt_wait(pk_queue) { return 1; }
static inline const char *pk_rt_error(void) { return "the emulation failed"; }
#endif
