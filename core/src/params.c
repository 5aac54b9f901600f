/* Params: the ranges of a plan in memory, with a version that every change raises. */
#include <string.h>

#include "core.h"

static pk_status check_place(const pk_params *params, int32_t range, uint64_t offset, uint64_t bytes, pk_error *error) {
    pk_error_clear(error);
    if (!params || range < 0 || range >= PK_COUNT(params->plan, RANGES))
        return pk_error_at(error, PK_BAD_CALL, -1, -1, "there is no range %d", range);
    const uint64_t room = params->plan->ranges[range].bytes;
    if (offset > room || bytes > room - offset)
        return pk_error_at(error, PK_BAD_CALL, -1, -1, "bytes %llu to %llu of range %s, which has %llu",
                           (unsigned long long)offset, (unsigned long long)(offset + bytes),
                           pk_text(params->plan, params->plan->ranges[range].name), (unsigned long long)room);
    return PK_OK;
}

/* The plan must live while its params are used. */
pk_status pk_params_create(const pk_plan *plan, pk_params **params, pk_error *error) {
    pk_error_clear(error);
    if (!plan || !params) return pk_error_at(error, PK_BAD_CALL, -1, -1, "no plan given");
    *params = NULL;
    const int32_t ranges = PK_COUNT(plan, RANGES);
    pk_params *p = pk_host_zeros(1, sizeof *p);
    if (p) p->range = pk_host_zeros((uint64_t)ranges, sizeof *p->range);
    if (!p || !p->range) {
        pk_params_free(p);
        return pk_error_at(error, PK_NO_MEMORY, -1, -1, "no memory for params");
    }
    p->plan = plan;
    p->ranges = ranges;
    for (int32_t i = 0; i < ranges; i++) {
        const uint64_t bytes = plan->ranges[i].bytes;
        p->range[i] = pk_backend_table.take(bytes);
        if (p->range[i] && pk_backend_table.copy(NULL, p->range[i], NULL, 0, bytes) == PK_OK) continue;
        pk_params_free(p);
        return pk_error_at(error, PK_NO_MEMORY, -1, -1, "no memory for range %s of %llu bytes",
                           pk_text(plan, plan->ranges[i].name), (unsigned long long)bytes);
    }
    *params = p;
    return PK_OK;
}

void pk_params_free(pk_params *params) {
    if (!params) return;
    for (int32_t i = 0; params->range && i < params->ranges; i++)
        if (params->range[i]) pk_backend_table.give(params->range[i]);
    pk_release(params->range);
    pk_release(params);
}

pk_status pk_params_write(pk_params *params, int32_t range, uint64_t offset, const void *data, uint64_t bytes,
                          pk_error *error) {
    pk_status status = check_place(params, range, offset, bytes, error);
    if (status != PK_OK) return status;
    if (!data && bytes) return pk_error_at(error, PK_BAD_CALL, -1, -1, "no data given");
    if (bytes == 0) return PK_OK;
    atomic_fetch_add(&params->version, 1);
    return pk_backend_table.copy(NULL, params->range[range] + offset, data, 0, bytes);
}

pk_status pk_params_read(const pk_params *params, int32_t range, uint64_t offset, void *data, uint64_t bytes,
                         pk_error *error) {
    pk_status status = check_place(params, range, offset, bytes, error);
    if (status != PK_OK) return status;
    if (!data && bytes) return pk_error_at(error, PK_BAD_CALL, -1, -1, "no place given");
    return bytes == 0 ? PK_OK : pk_backend_table.copy(NULL, data, params->range[range] + offset, 0, bytes);
}

int64_t pk_params_version(const pk_params *params) { return params ? atomic_load(&params->version) : -1; }
