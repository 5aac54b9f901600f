/* pk_library.h: a library of ops outside of this project.
 *
 * A library is one or more C files that include pk_kernel.h and end with PK_OP like those of core/ops; one of them, the only
 * one that includes this header, names all tables:
 *     #include "pk_library.h"
 *     static pk_status cube_forward(const pk_call *call) { ... }
 *     PK_OP(cube, {"cube.forward(x: f32) -> (y: f32)", cube_forward});
 *     PK_LIBRARY(PK_TABLE_OF(cube))
 * It is linked with nothing of the core: what pk_kernel.h declares (pk_fail, pk_parallel ...) is defined here and goes through
 * the functions that the core hands over when it loads the library.  Compile it with the core's flags:
 *     cc -shared -fPIC -O3 -std=c11 -fno-math-errno -fno-trapping-math -ffp-contract=off -I <headers> cube.c -o cube.so */
#ifndef PK_LIBRARY_H
#define PK_LIBRARY_H
#include <stdarg.h>

#include "pk_kernel.h"

/* Raised when pk_call, pk_view, the row tables or the functions below change. */
#define PK_LIBRARY_ABI 1

typedef struct pk_services {
    pk_status (*fail)(const pk_call *call, pk_status status, int64_t row, const char *format, va_list args);
    void (*parallel)(const pk_call *call, int64_t n, int64_t grain, pk_task task, void *context);
    int32_t (*threads)(const pk_call *call);
    void *(*scratch)(const pk_call *call);
} pk_services;

/* The one symbol that a library exports, `pk_library`.  NULL: it was made for another ABI. */
typedef const pk_op_table *const *(*pk_library_fn)(int32_t abi, const pk_services *services);

#define PK_TABLE_OF(op) &PK_LEVEL_NAME(pk_op_##op)
#define PK_LIBRARY(...)                                                                                           \
    static const pk_services *pk_services_;                                                                       \
    __attribute__((visibility("hidden"))) pk_status pk_fail(const pk_call *call, pk_status status, int64_t row,   \
                                                            const char *format, ...) {                            \
        va_list args;                                                                                             \
        va_start(args, format);                                                                                   \
        status = pk_services_->fail(call, status, row, format, args);                                             \
        va_end(args);                                                                                             \
        return status;                                                                                            \
    }                                                                                                             \
    __attribute__((visibility("hidden"))) void pk_parallel(const pk_call *call, int64_t n, int64_t grain,         \
                                                           pk_task task, void *context) {                         \
        pk_services_->parallel(call, n, grain, task, context);                                                    \
    }                                                                                                             \
    __attribute__((visibility("hidden"))) int32_t pk_threads(const pk_call *call) {                               \
        return pk_services_->threads(call);                                                                       \
    }                                                                                                             \
    __attribute__((visibility("hidden"))) void *pk_scratch(const pk_call *call) {                                 \
        return pk_services_->scratch(call);                                                                       \
    }                                                                                                             \
    static const pk_op_table *const pk_library_tables_[] = {__VA_ARGS__, NULL};                                   \
    __attribute__((visibility("default"))) const pk_op_table *const *pk_library(int32_t abi,                      \
                                                                                const pk_services *services) {    \
        pk_services_ = services;                                                                                  \
        return abi == PK_LIBRARY_ABI ? pk_library_tables_ : NULL;                                                 \
    }

#endif
