/* core.h: the three objects inside, and what the files of core/src ask of each other. */
#ifndef PK_CORE_H
#define PK_CORE_H
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "pk_backend.h"
#include "pk_kernel.h"
#include "pk_plan.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "a plan is read in place: this core needs a little-endian machine"
#endif

/* Sizes above this are refused, so that sums and products of a few of them cannot overflow. */
#define PK_MAX_SIZE ((int64_t)1 << 40)
#define PK_MAX_BYTES ((int64_t)1 << 50)

/* ---- signatures ---- */
#define PK_MAX_PORTS 48
#define PK_ANY 255
typedef struct pk_signature {
    int32_t inputs, outputs, attrs;
    uint8_t in_type[PK_MAX_PORTS], out_type[PK_MAX_PORTS], attr_kind[PK_MAX_PORTS];
    uint64_t optional, optional_out;   /* bit i: input or output i may be absent */
    uint64_t work;                     /* bit i: output i is scratch */
    int32_t many_inputs, many_outputs; /* the last port takes one or more */
} pk_signature;
int pk_signature_parse(const char *text, pk_signature *signature);

/* ---- plan ---- */
enum pk_loop_kind { PK_LOOP_NONE = 0, PK_LOOP_SCAN, PK_LOOP_DECODE };
/* The loop a tensor belongs to: `value` is the scan's axis or the decode's limit. */
typedef struct pk_loop_tag {
    int32_t kind;
    int64_t value;
} pk_loop_tag;

/* Where the counter of a node's random numbers starts: the first row in the whole batch. */
enum pk_base_kind { PK_BASE_NONE = 0, PK_BASE_SAMPLE, PK_BASE_AXIS, PK_BASE_STEP };

typedef struct pk_node_info {
    pk_kernel_fn fn;
    int32_t random_base;        /* pk_base_kind */
    int32_t random_axis;
    int64_t random_rows;        /* rows of the output for each row of the base */
    uint64_t work;              /* bit i: output i is scratch */
} pk_node_info;

typedef struct pk_axis_info {
    int32_t sequences, total, longest, step_rows; /* symbols; step_rows -1 where none is used */
} pk_axis_info;

/* What one entry touches.  A use is one place where a view is needed: each ref of each node, then guards, loop flags,
 * fetches, outputs and the halt tensor. */
typedef struct pk_entry_info {
    int32_t *use;               /* tensors */
    int32_t uses;
    int32_t *node_use;          /* by node of the entry: first use of its refs */
    int32_t *guard_use;         /* by node: use of its guard, -1 */
    int32_t *flag_use;          /* by node: use of a decode's flag, -1 */
    int32_t fetch_use, output_use, halt_use;
    int32_t *stepped;           /* uses in loop bodies that move with the step, in node order */
    int32_t *stepped_first;     /* by node (and one more): where its part of `stepped` begins */
    uint8_t *axis_parts;        /* by axis: bit 1 << pk_axis_part for the parts wanted, bit 7: needed at all */
    uint8_t *input_state;       /* by input of the plan: 0 not of this entry, 1 bound, 2 also read by a node */
} pk_entry_info;
#define PK_AXIS_NEEDED 0x80u
#define PK_AXIS_SORTED ((1u << PK_PART_ORDER) | (1u << PK_PART_STARTS) | (1u << PK_PART_MAP) | (1u << PK_PART_MAP_REVERSED))

struct pk_plan {
    uint8_t *bytes;             /* own copy, 64-byte aligned */
    const pk_plan_header *header;
    const char *strings;
    const pk_plan_symbol *symbols;
    const pk_plan_axis *axes;
    const pk_plan_tensor *tensors;
    const pk_plan_node *nodes;
    const int32_t *refs;
    const pk_plan_attr *attrs;
    const int64_t *lists;
    const pk_plan_entry *entries;
    const pk_plan_slot *slots;
    const pk_plan_range *ranges;
    const pk_plan_input *inputs;
    const pk_plan_argument *arguments;
    const uint8_t *constants;
    const uint8_t *device_constants; /* what kernels see of them: the same bytes when unified */
    const pk_plan_origin *origins;
    int32_t count[PK_SEC_COUNT_];
    int32_t batch;              /* the batch symbol */
    pk_axis_info *axis_info;
    pk_loop_tag *tags;          /* by tensor */
    pk_node_info *node_info;
    pk_attr *attr_values;
    pk_entry_info *entry_info;
};
#define PK_COUNT(plan, section) ((plan)->count[PK_SEC_##section])

static inline const char *pk_text(const pk_plan *plan, uint32_t offset) { return plan->strings + offset; }

/* plan_read.c: sections and their bounds.  plan_check.c: symbols, axes, tensors.  plan_nodes.c: nodes and entries. */
pk_status pk_plan_read(pk_plan *plan, uint64_t bytes, pk_error *error);
pk_status pk_plan_check(pk_plan *plan, pk_error *error);
pk_status pk_plan_check_nodes(pk_plan *plan, pk_error *error);

/* ---- sizes (sizes.c); `symbols` are values, one per symbol ---- */
extern const uint8_t pk_dtype_bytes[10];
extern const char *const pk_dtype_names[10];
/* Value of a dimension, -1 when it is too large. */
int64_t pk_dim_value(const pk_plan_dim *dim, const int64_t *symbols);
/* Elements and bytes of a tensor, -1 when too large. */
int64_t pk_tensor_count(const pk_plan_tensor *t, const int64_t *symbols);
int64_t pk_tensor_bytes(const pk_plan_tensor *t, const int64_t *symbols);
/* Bytes of one row (dimension 0 is divided by its symbol). */
int64_t pk_row_bytes(const pk_plan_tensor *t, const int64_t *symbols);
int pk_is_static(const pk_plan_tensor *t);
/* Fills SUM, PRODUCT and STEP_ROWS from the symbols before them (and PAIRS by its bound when `bound`); 0 when too large. */
int pk_derive_symbols(const pk_plan *plan, int64_t *symbols, int bound);

/* ---- params, table ---- */
struct pk_params {
    const pk_plan *plan;
    uint8_t **range;
    int32_t ranges;             /* their number: nothing that is freed looks into its plan, which may be gone */
    _Atomic int64_t version;
};

struct pk_table {
    const pk_plan *plan;
    pk_column *columns;         /* by input of the plan; data NULL and rows -1 where none was given */
    int64_t rows;
};

/* ---- session ---- */
/* The numbers of an axis in the present batch: host pointers, and what kernels see. */
typedef struct pk_axis_data {
    int64_t *part[6];
    int64_t *seen[6];
    int64_t sequences, total, longest;
} pk_axis_data;

/* Views and calls of an entry for one set of sizes and input addresses. */
typedef struct pk_binding {
    int32_t valid;
    int64_t *symbols;
    const void **input;         /* by input of the plan */
    pk_view *views;             /* by use */
    pk_call *calls;             /* by node */
    int64_t used_at;
} pk_binding;
#define PK_BINDINGS 2           /* an epoch's common batch and its short last one */

/* Poison mode: slot tensors by the node of their entry after which nobody needs them. */
typedef struct pk_deaths {
    int32_t *tensor;            /* in the order of nodes */
    int32_t *first;             /* by node, and one more: where its part of `tensor` begins */
} pk_deaths;

typedef struct pk_slot_room pk_slot_room;

struct pk_session {
    const pk_plan *plan;
    pk_params *params;
    int32_t flags;
    void *device;
    pk_call proto;              /* pool and stream of every call */
    int64_t *capacity, *symbols, *needed;
    uint8_t *host, *mirror;     /* inputs, axis data and arguments; mirror == host when unified */
    int64_t host_bytes;
    uint8_t *arena;
    int64_t arena_bytes;
    uint8_t **slot;
    int64_t *slot_bytes, *slot_at;
    pk_slot_room *slot_room;    /* while slots are placed */
    pk_axis_data *axes;
    uint8_t **input_buffer;     /* host, by input */
    int64_t *input_bytes;
    const void **input;         /* what kernels see in this step */
    uint8_t *argument;          /* host, 8 bytes each */
    pk_binding *bindings;       /* PK_BINDINGS by entry */
    int32_t binding_count;
    int64_t clock;
    int64_t *repeats;           /* by node: repetitions of a loop in the last step */
    pk_profile_row *profile;
    pk_deaths *deaths;          /* by entry; NULL without poison */
    int64_t loop_step;          /* of the loop that runs */
    atomic_int stop;
};
#define PK_FLAG_PROFILE 2
#define PK_FLAG_POISON 4

/* slots.c: addresses `at` of slots of these sizes, and the end of the last; 0 when that is too large. */
pk_slot_room *pk_slot_room_create(const pk_plan *plan);
void pk_slot_room_free(pk_slot_room *room);
int pk_place_slots(pk_slot_room *room, const pk_plan_slot *slots, const int64_t *bytes, int64_t *at, int64_t *sum);
static inline int64_t pk_aligned(int64_t bytes) { return (bytes + PK_ALIGN - 1) / PK_ALIGN * PK_ALIGN; }
/* bind.c: sizes, offsets, gathered data and arguments of a step. */
pk_status pk_bind(pk_session *session, const pk_step *step, pk_error *error);
/* axis.c: the order of a scan and the maps, from the offsets. */
void pk_axis_fill(pk_axis_data *axis, uint8_t parts);
/* views.c: the binding of an entry for the sizes in session->symbols. */
pk_status pk_views(pk_session *session, int32_t entry, pk_binding **binding, pk_error *error);
/* Moves the views of a loop body's node to the present step. */
void pk_views_step(const pk_session *session, const pk_entry_info *entry, pk_binding *binding, int32_t node);
/* exec.c: the nodes of an entry. */
pk_status pk_exec(pk_session *session, const pk_step *step, pk_binding *binding, int *updated, pk_error *error);
/* poison.c: the checks of debug level 4. */
int pk_poison_create(pk_session *session);
void pk_poison_free(pk_session *session);
/* All slots; then after each node its outputs are looked at, and after each top-level node the dead are filled again. */
pk_status pk_poison_start(pk_session *session, pk_error *error);
pk_status pk_poison_check(const pk_session *session, int32_t node, const pk_call *call, pk_error *error);
pk_status pk_poison_dead(pk_session *session, int32_t entry, int32_t node, pk_error *error);
double pk_value(const void *data, int32_t dtype);

/* ---- status.c ---- */
/* Host memory with a counter, zeroed, 64-byte aligned; all of it goes back through pk_release. */
void *pk_host_zeros(uint64_t count, uint64_t size);
void pk_release(void *data);
void pk_error_clear(pk_error *error);
pk_status pk_error_at(pk_error *error, pk_status status, int32_t node, int32_t tensor, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Between them, allocations are counted as made in a step. */
void pk_step_begins(void);
void pk_step_ends(int64_t steps);

#endif
