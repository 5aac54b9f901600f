/* Libraries of ops are loaded for the life of the process: plans keep pointers to their kernels.  Rows are only added,
 * and their number is published last, so that a plan may be made meanwhile. */
#include "library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "pk_backend.h"
#include "pk_library.h"

#define MOST_ROWS 1024
#define MOST_LIBRARIES 64

static const pk_kernel_row *rows[MOST_ROWS];
static _Atomic int32_t row_count;
static void *handles[MOST_LIBRARIES];
static int32_t handle_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const pk_kernel_row *pk_library_row(int32_t index) {
    return index < atomic_load_explicit(&row_count, memory_order_acquire) ? rows[index] : NULL;
}

static pk_status service_fail(const pk_call *call, pk_status status, int64_t row, const char *format, va_list args) {
    char text[sizeof((pk_error *)0)->message];
    vsnprintf(text, sizeof text, format, args);
    return pk_fail(call, status, row, "%s", text);
}

static const pk_services services = {service_fail, pk_parallel, pk_threads, pk_scratch};

static pk_status refuse(pk_error *error, const char *text, const char *what) {
    if (error) {
        error->status = PK_BAD_CALL;
        snprintf(error->message, sizeof error->message, text, what);
    }
    return PK_BAD_CALL;
}

/* A row is one of the table's op, and no kernel has its name yet. */
static pk_status check_row(const pk_op_table *table, const pk_kernel_row *row, int32_t more, pk_error *error) {
    const size_t op = strlen(table->name);
    const char *text = row->signature;
    if (!text || !row->fn || strncmp(text, table->name, op) != 0 || text[op] != '.')
        return refuse(error, "the table of the op %.200s has a row that is not its own", table->name);
    const size_t name = strcspn(text, "(") + 1;
    const pk_kernel_row *known;
    for (int32_t i = 0; (known = pk_backend_table.kernel(i)) != NULL; i++)
        if (strncmp(known->signature, text, name) == 0)
            return refuse(error, "there is a kernel of that name: %.200s", known->signature);
    for (int32_t i = atomic_load(&row_count); i < more; i++)
        if (strncmp(rows[i]->signature, text, name) == 0)
            return refuse(error, "it has this kernel twice: %.200s", text);
    return PK_OK;
}

static pk_status take_tables(const pk_op_table *const *tables, pk_error *error) {
    int32_t count = atomic_load(&row_count);
    for (; *tables; tables++)
        for (int32_t i = 0; i < (*tables)->count; i++) {
            if (count == MOST_ROWS) return refuse(error, "libraries hold too many kernels%s", "");
            const pk_kernel_row *row = &(*tables)->rows[i];
            const pk_status status = check_row(*tables, row, count, error);
            if (status != PK_OK) return status;
            rows[count++] = row;
        }
    atomic_store_explicit(&row_count, count, memory_order_release);
    return PK_OK;
}

static pk_status open_library(void *handle, pk_error *error) {
    for (int32_t i = 0; i < handle_count; i++)
        if (handles[i] == handle) return PK_OK;
    if (handle_count == MOST_LIBRARIES) return refuse(error, "there are too many libraries%s", "");
    pk_library_fn library;
    void *symbol = dlsym(handle, "pk_library");
    memcpy(&library, &symbol, sizeof library); /* ISO C has no cast from an object to a function */
    if (!symbol) return refuse(error, "it has no function %s: PK_LIBRARY is missing", "pk_library");
    const pk_op_table *const *tables = library(PK_LIBRARY_ABI, &services);
    if (!tables) return refuse(error, "it was made for another version of the core: compile it again%s", "");
    const pk_status status = take_tables(tables, error);
    if (status == PK_OK) handles[handle_count++] = handle;
    return status;
}

pk_status pk_library_load(const char *path, pk_error *error) {
    pthread_mutex_lock(&lock);
    void *handle = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    pk_status status;
    if (!handle) {
        const char *why = path ? dlerror() : NULL;
        status = refuse(error, "%.400s", why ? why : "no path given");
    } else {
        const int32_t before = handle_count;
        status = open_library(handle, error);
        if (handle_count == before) dlclose(handle); /* refused, or counted before */
    }
    pthread_mutex_unlock(&lock);
    return status;
}
