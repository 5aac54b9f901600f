/* random.cuh: pk_random.h on the device, four elements at a time. */
#ifndef PK_RANDOM_CUH
#define PK_RANDOM_CUH
#include "pk_cuda.cuh"
#include "pk_random.h"

/* The stream's element that flat element 0 of a tensor is. */
static inline uint64_t pk_random_start(const pk_call *call, const pk_view *rows) {
    return (uint64_t)call->random.first * (uint64_t)pk_inner(rows, 1);
}
/* Blocks of four that elements start .. start + n - 1 lie in. */
static inline int64_t pk_random_blocks(uint64_t start, int64_t n) {
    return n == 0 ? 0 : (int64_t)((start + (uint64_t)n + 3) / 4 - start / 4);
}
#endif
