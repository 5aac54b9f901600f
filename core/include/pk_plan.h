/* pk_plan.h: the records of a plan's byte string (docs/plan-format.md says it in words).
 *
 * Little-endian.  A header, a section table, then the sections, each 8-byte aligned.  The compiler (Python) writes them,
 * core/src/plan_read.c, plan_check.c and plan_nodes.c validate every number in them before anything else looks.  Indices
 * are into the section named; -1 is "none".  Records hold fixed-width fields only and have no padding that is not named. */
#ifndef PK_PLAN_H
#define PK_PLAN_H
#include <stdint.h>

#define PK_PLAN_MAGIC "PKPLAN\r\n"
#define PK_PLAN_VERSION 2 /* rises when a record changes, as docs/plan-format.md says */

enum pk_section_kind {
    PK_SEC_STRINGS = 1,  /* NUL-terminated texts; a text is named by its byte offset */
    PK_SEC_SYMBOLS, PK_SEC_AXES, PK_SEC_TENSORS, PK_SEC_NODES,
    PK_SEC_REFS,         /* int32 lists: tensors of nodes, inputs, fetches, outputs of entries */
    PK_SEC_ATTRS, PK_SEC_LISTS, /* int64: count, then values */
    PK_SEC_ENTRIES, PK_SEC_SLOTS, PK_SEC_RANGES, PK_SEC_INPUTS, PK_SEC_ARGUMENTS,
    PK_SEC_CONSTANTS,    /* raw bytes, 64-byte aligned pieces */
    PK_SEC_ORIGINS,
    PK_SEC_COUNT_
};

typedef struct pk_plan_header {
    char magic[8];
    uint32_t version;
    uint32_t sections;
    uint64_t bytes;      /* of the whole plan */
    uint64_t seed;       /* first half of the key of every random number */
} pk_plan_header;

typedef struct pk_plan_section {
    uint32_t kind;
    uint32_t record;     /* bytes of one record */
    uint64_t offset;     /* from the start of the plan */
    uint64_t count;      /* records */
} pk_plan_section;

/* Sizes known when a batch is bound.  A dimension is coefficient * symbol; symbol -1 is 1. */
enum pk_symbol_kind {
    PK_SYM_BATCH = 0,    /* samples in the batch */
    PK_SYM_SEQUENCES,    /* a: axis; sequences of it (= rows of the parent axis, or the batch) */
    PK_SYM_TOTAL,        /* a: axis; rows of it */
    PK_SYM_LONGEST,      /* a: axis; longest sequence */
    PK_SYM_SUM,          /* ca*symbol a + cb*symbol b (b = -1: ca*symbol a + cb) */
    PK_SYM_PRODUCT,      /* ca*symbol a*symbol b */
    PK_SYM_PAIRS,        /* a, b: axes of equal sequences; sum of len_a*len_b */
    PK_SYM_STEP_ROWS     /* a: axis; rows of the present step inside a scan over it; capacity = SEQUENCES */
};
typedef struct pk_plan_symbol {
    uint32_t kind;
    uint32_t name;
    int32_t a, b;
    int64_t ca, cb;
} pk_plan_symbol;   /* operands come before the symbol that uses them */

typedef struct pk_plan_axis {
    uint32_t name;
    int32_t parent;      /* axis of the next outer level, -1: the batch */
    int32_t input;       /* the input whose offsets define it */
    uint32_t flags;      /* PK_AXIS_ORDERED: the step order of a scan is wanted */
} pk_plan_axis;
#define PK_AXIS_ORDERED 1u

/* Where a tensor's bytes are. */
enum pk_storage {
    PK_AT_SLOT = 0,      /* place: slot; offset: bytes */
    PK_AT_INPUT,         /* place: input */
    PK_AT_ARGUMENT,      /* place: argument */
    PK_AT_RANGE,         /* place: range; offset: bytes */
    PK_AT_CONSTANT,      /* offset in PK_SEC_CONSTANTS */
    PK_AT_AXIS,          /* place: axis; part: pk_axis_part; int64 */
    PK_AT_ALIAS,         /* place: tensor; the same bytes from `offset` on, under another shape */
    PK_AT_STEP,          /* place: tensor P packed by steps; its rows of the present step (n_t rows from start_t) */
    PK_AT_PREVIOUS,      /* place: tensor P packed by steps, part: tensor I; the first n_t rows of the step before, or of I at
                            the first step (in a reversed loop "before" is still step t - 1) */
    PK_AT_PREFIX         /* place: tensor of one row a sequence in step order; its first n_t rows */
};
enum pk_axis_part {
    PK_PART_OFFSETS = 0, /* [sequences + 1] */
    PK_PART_ORDER,       /* [sequences]: sequence numbers, longest first, equal lengths in their old order */
    PK_PART_STARTS,      /* [longest + 1]: first packed row of each step */
    PK_PART_MAP,         /* [total]: row of the axis for each packed row */
    PK_PART_MAP_REVERSED,/* [total]: the same when every sequence is read from its end */
    PK_PART_SEQUENCE     /* [total]: the sequence of each row */
};
typedef struct pk_plan_dim {
    int64_t coefficient;
    int32_t symbol;
    int32_t reserved;
} pk_plan_dim;
typedef struct pk_plan_tensor {
    uint32_t name;
    uint32_t origin;
    uint8_t dtype, layout, storage, ndim;
    int32_t axis;        /* ragged axis of dimension 0, -1: dense */
    int32_t place, part;
    uint64_t offset;
    float scale;         /* of quantised values; 1 otherwise */
    uint32_t reserved;
    pk_plan_dim dim[8];
} pk_plan_tensor;

enum pk_node_kind {
    PK_NODE_KERNEL = 0,
    PK_NODE_SCAN,        /* the next `body` nodes run once for each step of `axis` */
    PK_NODE_DECODE,      /* the next `body` nodes run at most `limit` times, until tensor `flag` is non-zero */
    PK_NODE_EXCHANGE,    /* reserved for distributed training */
    PK_NODE_HOST
};
typedef struct pk_plan_node {
    uint32_t kind;
    uint32_t signature;  /* text: the kernel's whole signature */
    uint32_t refs;       /* first of inputs + outputs in PK_SEC_REFS; an absent optional input is -1 */
    uint16_t inputs, outputs;
    uint32_t attrs;      /* first in PK_SEC_ATTRS */
    uint32_t attr_count;
    uint32_t accumulate; /* bit i: output i is added to */
    int32_t guard;       /* tensor of one int32: the node does nothing where it is 0; -1 */
    uint64_t stream;     /* key of its random numbers */
    uint32_t origin;
    uint32_t body;       /* nodes of the body that follow a loop */
    int32_t axis;        /* scan: the axis */
    int32_t flag;        /* decode: the stop flag's tensor (int32) */
    int64_t limit;       /* decode: most repetitions */
    uint32_t flags;      /* PK_NODE_REVERSED: a scan from the last step to the first; PK_NODE_UPDATES: writes parameters */
    uint32_t reserved;
} pk_plan_node;
#define PK_NODE_REVERSED 1u
#define PK_NODE_UPDATES 2u

enum pk_attr_kind { PK_ATTR_INT = 0, PK_ATTR_FLOAT, PK_ATTR_LIST };
typedef struct pk_plan_attr {
    uint32_t kind;
    uint32_t reserved;
    union {
        int64_t i;       /* int, bool; or for a list the index of its count in PK_SEC_LISTS */
        double f;
    } value;
} pk_plan_attr;

typedef struct pk_plan_entry {
    uint32_t name;
    uint32_t first_node, nodes;
    uint32_t first_input, inputs;    /* refs: inputs (indices of PK_SEC_INPUTS) that it reads, in the order of its columns */
    uint32_t first_fetch, fetches;   /* refs: tensors of one element, each a number of the result row */
    uint32_t first_output, outputs;  /* refs: tensors copied out whole when the step gives places */
    int32_t halt;                    /* tensor of one int32: non-zero ends the request after this step */
} pk_plan_entry;

/* As large as its largest tensor, which are needed from `first` to `last` in the order of the plan's own clock; slots that
 * are never needed at the same time may lie over each other. */
typedef struct pk_plan_slot { uint32_t first, last; } pk_plan_slot;

enum pk_range_class { PK_RANGE_PARAM = 0, PK_RANGE_GRAD, PK_RANGE_OPTIMIZER, PK_RANGE_STATE, PK_RANGE_METRIC };
typedef struct pk_plan_range {
    uint32_t name;
    uint32_t klass;
    uint32_t dtype;
    uint32_t reserved;
    uint64_t bytes;
} pk_plan_range;

typedef struct pk_plan_input {
    uint32_t name;
    int32_t tensor;      /* its PK_AT_INPUT tensor */
} pk_plan_input;

typedef struct pk_plan_argument {
    uint32_t name;
    int32_t tensor;      /* its PK_AT_ARGUMENT tensor of one element */
} pk_plan_argument;

typedef struct pk_plan_origin {
    uint32_t file, path; /* texts: recipe or source file; layer path */
    uint32_t line, column;
} pk_plan_origin;

#endif
