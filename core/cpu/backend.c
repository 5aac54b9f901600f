/* The CPU backend: host memory from buddy pools, a thread pool, the kernels of the chosen level. */
#include "pk_backend.h"

#include <pthread.h>
#include <string.h>

#include "level.h"
#include "library.h"
#include "memory.h"
#include "pool.h"

#define POOL_ORDER 22 /* pieces of 4 MiB; anything above 2 MiB comes at its own size */

static pk_memory *memory;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int32_t chosen = -1; /* level; set before the first plan, so it never changes under a running session */

static void start(void) {
    memory = pk_memory_create(pk_memory_host, POOL_ORDER);
    if (chosen < 0) chosen = pk_level_best();
}

static const char *cpu_level(void) {
    pthread_once(&once, start);
    return pk_level_name(chosen);
}

static int cpu_set_level(const char *name) {
    pthread_once(&once, start);
    int32_t level = name && *name ? pk_level_find(name) : pk_level_best();
    if (level < 0 || !pk_level_supported(level)) return 0;
    chosen = level;
    return 1;
}

static const pk_kernel_row *cpu_kernel(int32_t index) {
    pthread_once(&once, start);
    int32_t ops;
    const pk_op_table *const *tables = pk_level_tables(chosen, &ops);
    for (int32_t i = 0; i < ops; i++) {
        if (index < tables[i]->count) return &tables[i]->rows[index];
        index -= tables[i]->count;
    }
    return pk_library_row(index);
}

static void *cpu_take(uint64_t bytes) {
    pthread_once(&once, start);
    return memory ? pk_memory_take(memory, bytes) : NULL;
}

static void cpu_give(void *data) {
    if (memory) pk_memory_give(memory, data);
}

static void cpu_counters(pk_memory_counters *counters, int reset_peak) {
    pthread_once(&once, start);
    memset(counters, 0, sizeof *counters);
    if (memory) pk_memory_read(memory, counters, reset_peak);
}

static pk_status cpu_open(int32_t threads, int32_t flags, void **device, pk_call *call) {
    pk_pool *pool = pk_pool_create(threads, flags & 1);
    if (!pool) return PK_NO_MEMORY;
    *device = pool;
    call->pool = pool;
    call->stream = NULL;
    return PK_OK;
}

static void cpu_close(void *device) { pk_pool_free(device); }

static pk_status cpu_copy(void *device, void *to, const void *from, int byte, uint64_t bytes) {
    (void)device;
    if (bytes == 0) return PK_OK;
    if (from) memcpy(to, from, bytes);
    else if (byte == 0) pk_memory_clear(to, bytes);
    else memset(to, byte, bytes);
    return PK_OK;
}

const pk_backend pk_backend_table = {
    "cpu", 1, cpu_level, cpu_kernel, cpu_set_level, cpu_take, cpu_give, cpu_counters, cpu_open, cpu_close, cpu_copy,
    NULL, pk_library_load};
