/* pk_kernel.h: what a kernel file includes.
 *
 * A kernel is `pk_status fn(const pk_call *call)`: views of its tensors, attributes, random key, threads, error.  It never
 * sees a plan or a session.  Files under core/ops and core/cpu are compiled once per instruction-set level; PK_LEVEL_NAME
 * gives every external name of such a file that level's suffix.
 *
 * Rules for the same bits: work is cut by shape, never by thread count.  Independent outputs go through pk_parallel with a
 * grain that may change freely; sums over rows go in chunks of a fixed size, one partial per chunk, added in order; sums
 * along a row use pk_sum16's 16 lanes and tree (pk_simd.h).  No libm in inner loops where pk_simd.h has the function. */
#ifndef PK_KERNEL_H
#define PK_KERNEL_H
#include <stddef.h>
#include <stdint.h>

#include "paddlecore.h"

#define PK_MAX_DIM 8
#define PK_ALIGN 64

#define PK_JOIN_(a, b) a##_##b
#define PK_JOIN(a, b) PK_JOIN_(a, b)
#ifndef PK_LEVEL
#define PK_LEVEL baseline
#endif
#define PK_LEVEL_NAME(name) PK_JOIN(name, PK_LEVEL)

/* A tensor as a kernel sees it.  data == NULL: an optional input that was not given.  For a ragged tensor dim[0] is the
 * number of rows (tokens) and `offsets` has sequences + 1 entries. */
typedef struct pk_view {
    void *data;
    const int64_t *offsets;
    int64_t sequences;
    int64_t dim[PK_MAX_DIM];
    int32_t ndim;
    int32_t dtype;
    int32_t layout;
    int32_t reserved;
} pk_view;

/* Attributes in the order of the signature.  A list is a pointer to its count followed by its values. */
typedef union pk_attr {
    int64_t i;
    double f;
    const int64_t *list;
} pk_attr;

/* Key of the counter-based random numbers: the value of element e of sample s is pk_random_u32(&r, (first + s)*len + e). */
typedef struct pk_random {
    uint64_t seed;
    uint64_t step;
    uint64_t stream;   /* hash of the layer's path */
    int64_t first;     /* index of the first row in the whole batch */
} pk_random;

struct pk_pool;

typedef struct pk_call {
    const pk_view *in;
    const pk_view *out;
    const pk_attr *attr;
    int32_t n_in, n_out, n_attr;
    uint32_t accumulate;    /* bit i: out[i] is added to, not assigned */
    pk_random random;
    struct pk_pool *pool;   /* host threads; NULL runs alone */
    void *stream;           /* device stream, NULL on the host */
    const int32_t *guard;   /* in device memory: 0 there and the kernels do nothing; NULL on the host, where the core looks */
    pk_error *error;
} pk_call;

typedef pk_status (*pk_kernel_fn)(const pk_call *call);

/* A row of an op's table.  `signature` is compared with the Python side when the library is loaded:
 * "name.kernel(in: type, optional?: type, many*: type; attr: int|float|bool|list) -> (out: type, ...)",
 * types f32 f64 f16 bf16 i64 i32 i16 i8 u8 bool any. */
typedef struct pk_kernel_row {
    const char *signature;
    pk_kernel_fn fn;
} pk_kernel_row;

typedef struct pk_op_table {
    const char *name;
    const pk_kernel_row *rows;
    int32_t count;
} pk_op_table;

/* At the end of core/ops/<op>.c:  PK_OP(relu, {"relu.forward(x: f32) -> (y: f32)", relu_forward}, ...) */
#ifdef __cplusplus
#define PK_TABLE extern "C"
#else
#define PK_TABLE extern
#endif
#define PK_OP(op, ...)                                                                     \
    static const pk_kernel_row pk_rows_[] = {__VA_ARGS__};                                 \
    PK_TABLE const pk_op_table PK_LEVEL_NAME(pk_op_##op);                                  \
    const pk_op_table PK_LEVEL_NAME(pk_op_##op) = {#op, pk_rows_,                          \
                                                   (int32_t)(sizeof pk_rows_ / sizeof pk_rows_[0])}

/* Fills call->error and returns status; row and tensor -1 where they do not apply.  printf-style message that names
 * the numbers: "[fc] w has 12 rows, x has 13 in its last axes". */
pk_status pk_fail(const pk_call *call, pk_status status, int64_t row, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- threads (core/cpu/pool.c) ---- */
#define PK_SCRATCH_BYTES (1u << 20)   /* per thread, 64-byte aligned, contents undefined at each task */

/* begin..end of the cut work, thread number, that thread's scratch. */
typedef void (*pk_task)(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch);
/* Cuts 0..n into pieces of `grain` and runs them on the pool; returns when all are done.  Outputs of different indices
 * must be independent.  Nested calls run alone. */
void pk_parallel(const pk_call *call, int64_t n, int64_t grain, pk_task task, void *context);
int32_t pk_threads(const pk_call *call);
/* Scratch of the calling thread, outside pk_parallel. */
void *pk_scratch(const pk_call *call);

/* ---- small helpers ---- */
static inline int64_t pk_count(const pk_view *v) {
    int64_t n = 1;
    for (int32_t i = 0; i < v->ndim; i++) n *= v->dim[i];
    return n;
}
/* Elements of one row: the product of the dimensions from `axis` on. */
static inline int64_t pk_inner(const pk_view *v, int32_t axis) {
    int64_t n = 1;
    for (int32_t i = axis; i < v->ndim; i++) n *= v->dim[i];
    return n;
}
static inline int pk_adds(const pk_call *call, int32_t out) { return (call->accumulate >> out) & 1u; }
static inline float *pk_f32(const pk_view *v) { return (float *)v->data; }
static inline int64_t *pk_i64(const pk_view *v) { return (int64_t *)v->data; }
static inline int32_t *pk_i32(const pk_view *v) { return (int32_t *)v->data; }
static inline int64_t pk_min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t pk_max_i64(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t pk_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

#endif
