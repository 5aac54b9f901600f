/* backend.cu: the CUDA backend: memory of one device from buddy pools, a queue for each session,
 * the kernels of core/ops.
 *
 * The catalogue of kernels needs no device; taking memory or opening a session does. */
#include "runtime.cuh"

#include <pthread.h>
#include <stdlib.h>

extern "C" {
#include "memory.h"
#include "pk_backend.h"
}
#include "pk_cuda_tables.h"

#define POOL_ORDER 25 /* pieces of 32 MiB; anything above 16 MiB comes at its own size */

namespace {

pk_memory *memory;
pthread_once_t once = PTHREAD_ONCE_INIT;
int chosen;
char level_name[32];

void *source_take(void *, uint64_t bytes) { return pk_rt_take(bytes); }
void source_give(void *, void *data, uint64_t) { pk_rt_give(data); }

void start() {
    const pk_memory_source source = {source_take, source_give, NULL};
    memory = pk_memory_create(source, POOL_ORDER);
}

const char *cuda_level() {
    char why[64];
    if (pk_rt_devices(why, sizeof why) <= chosen) return "none";
    pk_rt_name(chosen, level_name, sizeof level_name);
    return level_name;
}

/* level: the number of the device; "" for the first one. */
int cuda_set_level(const char *level) {
    char why[64];
    char *end = NULL;
    const long number = level && *level ? strtol(level, &end, 10) : 0;
    if ((end && *end) || number < 0 || number >= pk_rt_devices(why, sizeof why)) return 0;
    chosen = (int)number;
    return 1;
}

const pk_kernel_row *cuda_kernel(int32_t index) {
    if (index < 0) return NULL;
    for (int32_t i = 0; pk_cuda_tables[i]; i++) {
        if (index < pk_cuda_tables[i]->count) return &pk_cuda_tables[i]->rows[index];
        index -= pk_cuda_tables[i]->count;
    }
    return NULL;
}

void *cuda_take(uint64_t bytes) {
    pthread_once(&once, start);
    return memory && pk_rt_use(chosen) ? pk_memory_take(memory, bytes) : NULL;
}

void cuda_give(void *data) {
    if (memory && pk_rt_use(chosen)) pk_memory_give(memory, data);
}

void cuda_counters(pk_memory_counters *counters, int reset_peak) {
    pthread_once(&once, start);
    memset(counters, 0, sizeof *counters);
    if (memory) pk_memory_read(memory, counters, reset_peak);
}

void cuda_close(void *device) {
    pk_stream *s = (pk_stream *)device;
    if (!s) return;
    cuda_give(s->fault);
    cuda_give(s->scratch);
    pk_rt_close(s->queue);
    free(s);
}

const pk_fault NO_FAULT = {PK_NO_FAULT, 0, NULL, NULL, 0};

pk_status cuda_open(int32_t, int32_t, void **device, pk_call *call) {
    pk_stream *s = (pk_stream *)calloc(1, sizeof *s);
    if (!s) return PK_NO_MEMORY;
    if (!pk_rt_use(chosen) || !pk_rt_open(&s->queue)) {
        free(s);
        return PK_DEVICE_ERROR;
    }
    s->fault = (pk_fault *)cuda_take(sizeof *s->fault);
    s->scratch = (char *)cuda_take(PK_SCRATCH_ROOM);
    const int ready = s->fault && s->scratch &&
                      pk_rt_copy(s->queue, s->fault, &NO_FAULT, sizeof NO_FAULT);
    if (!ready || !pk_rt_wait(s->queue)) {
        cuda_close(s);
        return PK_NO_MEMORY;
    }
    *device = s;
    call->pool = NULL;
    call->stream = s;
    return PK_OK;
}

/* Without a session: on the device's own queue, done when this returns. */
pk_status cuda_copy(void *device, void *to, const void *from, int byte, uint64_t bytes) {
    const pk_queue queue = device ? ((pk_stream *)device)->queue : (pk_queue)0;
    if (bytes == 0) return PK_OK;
    int done = pk_rt_use(chosen) &&
               (from ? pk_rt_copy(queue, to, from, bytes) : pk_rt_fill(queue, to, byte, bytes));
    if (done && !device) done = pk_rt_wait(queue);
    return done ? PK_OK : PK_DEVICE_ERROR;
}

pk_status cuda_finish(void *device, const pk_call **at, pk_error *error) {
    pk_stream *s = (pk_stream *)device;
    pk_fault fault;
    *at = NULL;
    if (!pk_rt_use(chosen) || !pk_rt_wait(s->queue) ||
        !pk_rt_copy(s->queue, &fault, s->fault, sizeof fault)) {
        if (error) {
            snprintf(error->message, sizeof error->message, "the device failed: %s", pk_rt_error());
            error->status = PK_DEVICE_ERROR;
        }
        return PK_DEVICE_ERROR;
    }
    if (fault.where == PK_NO_FAULT) return PK_OK;
    pk_rt_copy(s->queue, s->fault, &NO_FAULT, sizeof NO_FAULT);
    *at = fault.call;
    if (error) {
        error->status = PK_BAD_DATA;
        error->row = (int64_t)(fault.where >> 32);
        snprintf(error->message, sizeof error->message, fault.what,
                 (long long)(int32_t)(uint32_t)fault.where, (long long)fault.limit);
    }
    return PK_BAD_DATA;
}

} /* namespace */

extern "C" const pk_backend pk_backend_table = {
    PK_BACKEND_NAME, 0,         cuda_level, cuda_kernel, cuda_set_level, cuda_take, cuda_give,
    cuda_counters,   cuda_open, cuda_close, cuda_copy,   cuda_finish,   NULL};
