/* paddlecore.h: the C interface of the paddlecli core, for every backend.
 *
 * cffi parses this file as it is (lines that start with '#' are dropped), so it holds plain declarations only:
 * fixed-width integers, opaque handles, plain structs.  Three objects: a plan (immutable, shared), params (all
 * state that outlives a step) and a session (what one step needs; one thread at a time).  Who creates frees, in any order.
 * Every fallible call returns a status and fills a caller-owned error.  Nothing here aborts, exits or prints. */
#ifndef PADDLECORE_H
#define PADDLECORE_H
#include <stdint.h>
#pragma GCC visibility push(default)

typedef enum pk_status {
    PK_OK = 0,
    PK_BAD_PLAN = 1,     /* the plan's bytes are not a valid plan */
    PK_NO_KERNEL = 2,    /* the plan names a kernel that this core does not have, or another signature */
    PK_BAD_SHAPE = 3,    /* sizes that do not fit each other */
    PK_BAD_DATA = 4,     /* a value in the data is out of range (a label, a row id) */
    PK_TOO_SMALL = 5,    /* the batch does not fit the session, or an output its place (see `written`): make room and
                            repeat; nothing of that step ran */
    PK_NO_MEMORY = 6,
    PK_INTERRUPTED = 7,  /* pk_interrupt was called */
    PK_BAD_CALL = 8,     /* a wrong argument of this interface */
    PK_HALTED = 9,       /* an entry's halt tensor became non-zero: the request ended after that step */
    PK_DEVICE_ERROR = 10
} pk_status;

typedef enum pk_dtype {
    PK_F32 = 0, PK_F64 = 1, PK_F16 = 2, PK_BF16 = 3,
    PK_I64 = 4, PK_I32 = 5, PK_I16 = 6, PK_I8 = 7, PK_U8 = 8, PK_BOOL = 9
} pk_dtype;

/* Filled by a failing call.  `op` and `message` are NUL-terminated; -1 where a number does not apply. */
typedef struct pk_error {
    int32_t status;
    int32_t node;        /* index in the plan's node table */
    int32_t tensor;      /* index in the plan's tensor table */
    int32_t step;        /* index of the step inside the request */
    int64_t row;         /* row of the batch */
    char op[64];
    char message[448];
} pk_error;

typedef struct pk_plan pk_plan;
typedef struct pk_params pk_params;
typedef struct pk_session pk_session;
typedef struct pk_table pk_table;

/* What this library is.  `level` is the instruction-set level in use. */
typedef struct pk_info {
    int32_t abi;             /* raised when this header changes */
    int32_t kernels;         /* number of kernel rows */
    int32_t sizeof_error;    /* layout handshake */
    int32_t sizeof_step;
    char backend[16];        /* cpu, cuda */
    char level[16];          /* baseline, avx2, avx512, neon */
    char build[64];          /* version and hash of the sources */
} pk_info;

/* One input of one batch.  Dense: `rows` rows of the declared trailing shape.  Ragged: `data` holds offsets[sequences]
 * rows; `offsets` holds sequences + 1 numbers that start at 0 and never fall.  A nested axis has one column per level in
 * `outer` order: the plan's axis table says which. */
typedef struct pk_column {
    const void *data;
    const int64_t *offsets;  /* NULL for a dense column */
    int64_t rows;            /* rows of data */
    int64_t sequences;       /* offsets has sequences + 1 entries; 0 for a dense column */
} pk_column;

/* A place for one output of an entry; `bytes` is its room, `written` what the core wrote. */
typedef struct pk_buffer {
    void *data;
    int64_t bytes;
    int64_t written;
    int64_t rows;            /* first dimension of what was written */
} pk_buffer;

/* One step of a request.  Either `table` and `rows` (the core gathers the n rows itself) or `columns` (one per input of
 * the entry, in the entry's order).  `args` has one number per argument of the plan. */
typedef struct pk_step {
    int32_t entry;
    int32_t n_columns;
    int32_t n_outputs;
    int32_t reserved;
    int64_t n;               /* samples in this batch */
    int64_t first_sample;    /* index of its first sample in the whole batch of the step */
    int64_t step;            /* step number: key of the random numbers */
    const pk_table *table;
    const int64_t *rows;     /* n row numbers of the table */
    const pk_column *columns;
    const double *args;
    pk_buffer *outputs;      /* n_outputs places, in the entry's order; may be NULL */
    double *results;         /* one number per fetch of the entry; may be NULL */
    const int64_t *first_rows; /* by axis of the plan: index of its first row in the whole batch of the step; NULL: all 0 */
} pk_step;

/* One line of the profile: kernel name, calls, seconds, bytes read and written by shape. */
typedef struct pk_profile_row {
    int32_t node;
    int32_t reserved;
    int64_t calls;
    double seconds;
    double bytes;
} pk_profile_row;

typedef struct pk_counters {
    int64_t allocations;       /* allocations since the library was loaded */
    int64_t used;              /* bytes of the pools in use */
    int64_t peak;              /* most bytes in use so far */
    int64_t plans;             /* plans created since the library was loaded */
    int64_t steps;             /* steps run since the library was loaded */
    int64_t allocations_in_steps; /* must stay 0 */
} pk_counters;

void pk_get_info(pk_info *info);
/* "relu.forward(x: f32) -> (y: f32)"; NULL past the end. */
const char *pk_kernel_signature(int32_t index);
/* level: NULL or "" for the best of this machine. Only before the first plan. */
pk_status pk_set_level(const char *level, pk_error *error);
/* Adds the kernels of a library of ops (pk_library.h) for the life of the process.  It may not have a kernel of a name that is
 * known; loading one twice does nothing. */
pk_status pk_load_ops(const char *path, pk_error *error);
void pk_get_counters(pk_counters *counters);
void pk_reset_peak(void);

pk_status pk_plan_create(const uint8_t *bytes, uint64_t count, pk_plan **plan, pk_error *error);
void pk_plan_free(pk_plan *plan);

/* All ranges of the plan (parameters, gradients, optimizer and other state), zeroed. */
pk_status pk_params_create(const pk_plan *plan, pk_params **params, pk_error *error);
void pk_params_free(pk_params *params);
pk_status pk_params_write(pk_params *params, int32_t range, uint64_t offset, const void *data, uint64_t bytes,
                          pk_error *error);
pk_status pk_params_read(const pk_params *params, int32_t range, uint64_t offset, void *data, uint64_t bytes,
                         pk_error *error);
/* Raised by every write and every step that updates: derived copies are remade when it changed. */
int64_t pk_params_version(const pk_params *params);

/* Column data that stays in memory: the one handle that keeps host pointers after the call.  One column per input. */
pk_status pk_table_create(const pk_plan *plan, const pk_column *columns, int32_t count, const int32_t *inputs,
                          pk_table **table, pk_error *error);
void pk_table_free(pk_table *table);

/* threads: 0 for one per core. flags: 1 smallest grain in every parallel loop (tests), 2 profile, 4 poison dead slots and
 * check finite values after each node. */
pk_status pk_session_create(const pk_plan *plan, pk_params *params, int32_t threads, int32_t flags,
                            pk_session **session, pk_error *error);
void pk_session_free(pk_session *session);
/* Room for batches up to `values`, one per symbol of the plan (derived symbols are computed; give 0). The only call that allocates. */
pk_status pk_session_reserve(pk_session *session, const int64_t *values, int32_t count, pk_error *error);
/* Runs steps in order until one fails, halts or is interrupted; *done is the number of steps that ended. */
pk_status pk_session_run(pk_session *session, const pk_step *steps, int32_t count, int32_t *done, pk_error *error);
/* What a failed run with PK_TOO_SMALL would have needed: one number per symbol. */
pk_status pk_session_needed(const pk_session *session, int64_t *values, int32_t count, pk_error *error);
/* From any thread, also a signal handler: urgent 0 stops between steps, 1 between nodes. Cleared by the next run. */
void pk_interrupt(pk_session *session, int32_t urgent);
int32_t pk_session_profile(const pk_session *session, pk_profile_row *rows, int32_t count);
int64_t pk_session_bytes(const pk_session *session);
/* How often a scan or decode node ran its body in the last step; -1 where there is no such node. */
int64_t pk_session_repeats(const pk_session *session, int32_t node);
#pragma GCC visibility pop
#endif
