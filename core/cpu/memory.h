/* memory.h: buddy pools.  The caller gives the function that supplies large pieces, so that a device's memory is managed by
 * the same code: the bookkeeping lies on the host and never touches the memory it manages. */
#ifndef PK_MEMORY_H
#define PK_MEMORY_H
#include <stdint.h>

#include "pk_backend.h"

typedef struct pk_memory pk_memory;
typedef struct pk_memory_source {
    void *(*take)(void *context, uint64_t bytes); /* 64-byte aligned; NULL when there is none */
    void (*give)(void *context, void *data, uint64_t bytes);
    void *context;
} pk_memory_source;

/* The source of ordinary host memory. */
extern const pk_memory_source pk_memory_host;

/* Pieces of 2^order bytes are cut in halves down to 256 bytes; what is larger than half a piece comes straight from the
 * source at its own size.  NULL: no memory. */
pk_memory *pk_memory_create(pk_memory_source source, int32_t order);
void pk_memory_free(pk_memory *memory);
/* 64-byte aligned; 0 bytes give a block too.  NULL: no memory.  Any thread. */
void *pk_memory_take(pk_memory *memory, uint64_t bytes);
void pk_memory_give(pk_memory *memory, void *data);
/* Zeroes memory of pk_memory_host.  Of a large stretch the pages go back to the system, which gives zeroed ones where one is
 * first written: a table of which a training only ever uses some rows takes no more memory than those. */
void pk_memory_clear(void *data, uint64_t bytes);
void pk_memory_read(pk_memory *memory, pk_memory_counters *counters, int reset_peak);

#endif
