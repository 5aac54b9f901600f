/* pk_backend.h: what core/src needs of the machine that runs kernels.
 *
 * A library holds core/src and exactly one backend (core/cpu or core/cuda), which defines pk_backend_table.  All memory
 * that kernels see comes through it.  `unified`: kernels may read host memory, so nothing is copied to be seen by them. */
#ifndef PK_BACKEND_H
#define PK_BACKEND_H
#include <stdint.h>

#include "pk_kernel.h"

typedef struct pk_memory_counters {
    int64_t allocations; /* since the library was loaded */
    int64_t used;        /* bytes in use, as asked for */
    int64_t peak;
} pk_memory_counters;

typedef struct pk_backend {
    const char *name;    /* cpu, cuda */
    int32_t unified;
    /* The instruction-set level in use, and the kernels of that level by number; NULL past the end. */
    const char *(*level)(void);
    const pk_kernel_row *(*kernel)(int32_t index);
    /* level NULL or "": the best of this machine.  0 when there is no such level. */
    int (*set_level)(const char *level);
    /* Device memory, 64-byte aligned, contents undefined; NULL when there is none left. */
    void *(*take)(uint64_t bytes);
    void (*give)(void *data);
    void (*counters)(pk_memory_counters *counters, int reset_peak);
    /* A session's threads and stream; fills what every call carries.  flags are those of pk_session_create. */
    pk_status (*open)(int32_t threads, int32_t flags, void **device, pk_call *call);
    void (*close)(void *device);
    /* Between host and device, or fill (from == NULL: every byte is `byte`), in the order of the device's work.  The host
     * side of a download is complete when it returns. */
    pk_status (*copy)(void *device, void *to, const void *from, int byte, uint64_t bytes);
    /* Waits for the device's work.  Where a kernel found bad data: PK_BAD_DATA, the error's message and row, and the call
     * in *at.  NULL where kernels are done when they return. */
    pk_status (*finish)(void *device, const pk_call **at, pk_error *error);
    /* Adds the kernels of a shared library (pk_library.h) to its own.  NULL where there are no such libraries. */
    pk_status (*load)(const char *path, pk_error *error);
} pk_backend;

extern const pk_backend pk_backend_table;

#endif
