/* pool.h: the threads of a session.  Kernels use pk_parallel, pk_threads and pk_scratch of
 * pk_kernel.h. */
#ifndef PK_POOL_H
#define PK_POOL_H
#include <stdint.h>

typedef struct pk_pool pk_pool;

/* threads: 0 for one per processor this process may use; the calling thread is one of them.
 * smallest_grain: every pk_parallel cuts its work into single indices (tests).  All memory is taken
 * here.  NULL: no memory or no thread. */
pk_pool *pk_pool_create(int32_t threads, int32_t smallest_grain);
/* Stops and joins the threads; NULL is allowed.  No pk_parallel may be running on the pool. */
void pk_pool_free(pk_pool *pool);
int32_t pk_pool_threads(const pk_pool *pool);
/* Bytes of all threads' scratch (address space; only what kernels touch becomes memory). */
int64_t pk_pool_bytes(const pk_pool *pool);
/* 1 for a pool with the smallest grain, on which a kernel that chooses its own pieces makes as many
 * as it can. */
int32_t pk_pool_smallest(const pk_pool *pool);

#endif
