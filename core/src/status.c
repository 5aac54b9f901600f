/* Errors, counters and what the library says of itself. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "pk_build.h"

#define ABI 1

static _Atomic int64_t host_allocations, plans, steps, allocations_in_steps;
static _Thread_local int in_step;
static _Thread_local int64_t before_step;

void *pk_host_zeros(uint64_t count, uint64_t size) {
    atomic_fetch_add(&host_allocations, 1);
    uint64_t bytes;
    void *data = NULL;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > (uint64_t)PK_MAX_BYTES) return NULL;
    if (posix_memalign(&data, PK_ALIGN, bytes ? bytes : 1) != 0) return NULL;
    return memset(data, 0, bytes);
}

void pk_release(void *data) { free(data); }

static int64_t allocations(void) {
    pk_memory_counters pool;
    pk_backend_table.counters(&pool, 0);
    return atomic_load(&host_allocations) + pool.allocations;
}

/* Other threads may create objects meanwhile, so this can count too many but never too few. */
void pk_step_begins(void) {
    in_step = 1;
    before_step = allocations();
}

void pk_step_ends(int64_t count) {
    atomic_fetch_add(&steps, count);
    if (in_step) atomic_fetch_add(&allocations_in_steps, allocations() - before_step);
    in_step = 0;
}

void pk_get_counters(pk_counters *counters) {
    pk_memory_counters pool;
    pk_backend_table.counters(&pool, 0);
    counters->allocations = atomic_load(&host_allocations) + pool.allocations;
    counters->used = pool.used;
    counters->peak = pool.peak;
    counters->plans = atomic_load(&plans);
    counters->steps = atomic_load(&steps);
    counters->allocations_in_steps = atomic_load(&allocations_in_steps);
}

void pk_reset_peak(void) {
    pk_memory_counters pool;
    pk_backend_table.counters(&pool, 1);
}

void pk_get_info(pk_info *info) {
    memset(info, 0, sizeof *info);
    info->abi = ABI;
    while (pk_backend_table.kernel(info->kernels)) info->kernels++;
    info->sizeof_error = (int32_t)sizeof(pk_error);
    info->sizeof_step = (int32_t)sizeof(pk_step);
    snprintf(info->backend, sizeof info->backend, "%s", pk_backend_table.name);
    snprintf(info->level, sizeof info->level, "%s", pk_backend_table.level());
    snprintf(info->build, sizeof info->build, "%s", PK_BUILD);
}

const char *pk_kernel_signature(int32_t index) {
    const pk_kernel_row *row = index < 0 ? NULL : pk_backend_table.kernel(index);
    return row ? row->signature : NULL;
}

pk_status pk_set_level(const char *level, pk_error *error) {
    pk_error_clear(error);
    if (atomic_load(&plans) > 0)
        return pk_error_at(error, PK_BAD_CALL, -1, -1, "the instruction-set level is chosen before the first plan");
    if (!pk_backend_table.set_level(level))
        return pk_error_at(error, PK_BAD_CALL, -1, -1, "this machine or build has no level '%.32s'", level ? level : "");
    return PK_OK;
}

pk_status pk_load_ops(const char *path, pk_error *error) {
    pk_error_clear(error);
    if (!pk_backend_table.load)
        return pk_error_at(error, PK_BAD_CALL, -1, -1, "libraries of ops run on the CPU, not on %s", pk_backend_table.name);
    return pk_backend_table.load(path, error);
}

/* A device that cannot read host memory gets its own copy of the constants. */
static pk_status show_constants(pk_plan *plan, pk_error *error) {
    const uint64_t bytes = (uint64_t)PK_COUNT(plan, CONSTANTS);
    if (pk_backend_table.unified || bytes == 0) return PK_OK;
    uint8_t *copy = pk_backend_table.take(bytes);
    if (!copy) return pk_error_at(error, PK_NO_MEMORY, -1, -1, "no device memory for the plan's constants");
    plan->device_constants = copy;
    const pk_status status = pk_backend_table.copy(NULL, copy, plan->constants, 0, bytes);
    return status == PK_OK ? PK_OK : pk_error_at(error, status, -1, -1, "the plan's constants could not be copied");
}

pk_status pk_plan_create(const uint8_t *bytes, uint64_t count, pk_plan **plan, pk_error *error) {
    pk_error_clear(error);
    if (!plan || (!bytes && count)) return pk_error_at(error, PK_BAD_CALL, -1, -1, "no plan given");
    *plan = NULL;
    pk_plan *p = pk_host_zeros(1, sizeof *p);
    if (!p) return pk_error_at(error, PK_NO_MEMORY, -1, -1, "no memory for a plan");
    pk_status status = PK_OK;
    p->bytes = pk_host_zeros(count, 1);
    if (!p->bytes) {
        status = pk_error_at(error, PK_NO_MEMORY, -1, -1, "no memory for a plan of %llu bytes", (unsigned long long)count);
    } else {
        if (count) memcpy(p->bytes, bytes, count);
        status = pk_plan_read(p, count, error);
        if (status == PK_OK) status = pk_plan_check(p, error);
        if (status == PK_OK) status = pk_plan_check_nodes(p, error);
        if (status == PK_OK) status = show_constants(p, error);
    }
    if (status != PK_OK) {
        pk_plan_free(p);
        return status;
    }
    atomic_fetch_add(&plans, 1);
    *plan = p;
    return PK_OK;
}

void pk_error_clear(pk_error *error) {
    if (!error) return;
    memset(error, 0, sizeof *error);
    error->node = error->tensor = error->step = -1;
    error->row = -1;
}

pk_status pk_error_at(pk_error *error, pk_status status, int32_t node, int32_t tensor, const char *format, ...) {
    if (!error) return status;
    error->status = (int32_t)status;
    error->node = node;
    error->tensor = tensor;
    va_list args;
    va_start(args, format);
    vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    return status;
}

pk_status pk_fail(const pk_call *call, pk_status status, int64_t row, const char *format, ...) {
    if (!call->error) return status;
    call->error->status = (int32_t)status;
    call->error->row = row;
    va_list args;
    va_start(args, format);
    vsnprintf(call->error->message, sizeof call->error->message, format, args);
    va_end(args);
    return status;
}
