/* Opens a plan's bytes: header, section table, texts.  Nothing here trusts a number before it was compared with the size. */
#include <string.h>

#include "core.h"

static const uint32_t record_bytes[PK_SEC_COUNT_] = {
    [PK_SEC_STRINGS] = 1, [PK_SEC_SYMBOLS] = sizeof(pk_plan_symbol), [PK_SEC_AXES] = sizeof(pk_plan_axis),
    [PK_SEC_TENSORS] = sizeof(pk_plan_tensor), [PK_SEC_NODES] = sizeof(pk_plan_node), [PK_SEC_REFS] = sizeof(int32_t),
    [PK_SEC_ATTRS] = sizeof(pk_plan_attr), [PK_SEC_LISTS] = sizeof(int64_t), [PK_SEC_ENTRIES] = sizeof(pk_plan_entry),
    [PK_SEC_SLOTS] = sizeof(pk_plan_slot), [PK_SEC_RANGES] = sizeof(pk_plan_range),
    [PK_SEC_INPUTS] = sizeof(pk_plan_input), [PK_SEC_ARGUMENTS] = sizeof(pk_plan_argument), [PK_SEC_CONSTANTS] = 1,
    [PK_SEC_ORIGINS] = sizeof(pk_plan_origin)};

/* The layout that Python writes; a compiler that pads differently must not build. */
_Static_assert(sizeof(pk_plan_header) == 32 && sizeof(pk_plan_section) == 24 && sizeof(pk_plan_symbol) == 32, "layout");
_Static_assert(sizeof(pk_plan_axis) == 16 && sizeof(pk_plan_tensor) == 168 && sizeof(pk_plan_node) == 72, "layout");
_Static_assert(sizeof(pk_plan_attr) == 16 && sizeof(pk_plan_entry) == 40 && sizeof(pk_plan_range) == 24, "layout");
_Static_assert(sizeof(pk_plan_origin) == 16 && sizeof(pk_plan_input) == 8 && sizeof(pk_plan_argument) == 8, "layout");

static pk_status bad(pk_error *error, const char *what, uint32_t kind) {
    return pk_error_at(error, PK_BAD_PLAN, -1, -1, "%s (section kind %u)", what, kind);
}

static pk_status read_section(pk_plan *plan, const pk_plan_section *s, uint64_t bytes, const void **place,
                              pk_error *error) {
    const uint64_t align = s->kind == PK_SEC_CONSTANTS ? PK_ALIGN : 8;
    if (place[s->kind]) return bad(error, "a section comes twice", s->kind);
    if (s->record != record_bytes[s->kind]) return bad(error, "a section's records have another size", s->kind);
    if (s->offset % align) return bad(error, "a section is not aligned", s->kind);
    if (s->count > INT32_MAX || s->offset > bytes || s->count * s->record > bytes - s->offset)
        return bad(error, "a section ends outside the plan", s->kind);
    place[s->kind] = plan->bytes + s->offset;
    plan->count[s->kind] = (int32_t)s->count;
    return PK_OK;
}

static pk_status check_texts(const pk_plan *plan, pk_error *error) {
    const int32_t size = PK_COUNT(plan, STRINGS);
    if (size < 1 || plan->strings[size - 1] != 0) return bad(error, "the texts do not end", PK_SEC_STRINGS);
#define TEXTS(section, table, field)                                                                  \
    for (int32_t i = 0; i < PK_COUNT(plan, section); i++)                                             \
        if (plan->table[i].field >= (uint32_t)size)                                                   \
            return bad(error, "a name lies outside the texts", PK_SEC_##section)
    TEXTS(SYMBOLS, symbols, name);
    TEXTS(AXES, axes, name);
    TEXTS(TENSORS, tensors, name);
    TEXTS(NODES, nodes, signature);
    TEXTS(ENTRIES, entries, name);
    TEXTS(RANGES, ranges, name);
    TEXTS(INPUTS, inputs, name);
    TEXTS(ARGUMENTS, arguments, name);
    TEXTS(ORIGINS, origins, file);
    TEXTS(ORIGINS, origins, path);
#undef TEXTS
    return PK_OK;
}

pk_status pk_plan_read(pk_plan *plan, uint64_t bytes, pk_error *error) {
    const pk_plan_header *h = (const pk_plan_header *)plan->bytes;
    if (bytes < sizeof *h || memcmp(h->magic, PK_PLAN_MAGIC, sizeof h->magic) != 0)
        return pk_error_at(error, PK_BAD_PLAN, -1, -1, "these bytes are not a plan");
    if (h->version != PK_PLAN_VERSION)
        return pk_error_at(error, PK_BAD_PLAN, -1, -1, "the plan has version %u, this core reads %d: compile it anew",
                           h->version, PK_PLAN_VERSION);
    if (h->bytes != bytes)
        return pk_error_at(error, PK_BAD_PLAN, -1, -1, "the plan says it has %llu bytes and has %llu",
                           (unsigned long long)h->bytes, (unsigned long long)bytes);
    if (h->sections >= PK_SEC_COUNT_ || h->sections * sizeof(pk_plan_section) > bytes - sizeof *h)
        return pk_error_at(error, PK_BAD_PLAN, -1, -1, "the plan has %u sections", h->sections);

    /* A section that is left out is an empty one. */
    static const int64_t nothing = 0;
    const void *place[PK_SEC_COUNT_] = {NULL};
    const pk_plan_section *table = (const pk_plan_section *)(h + 1);
    for (uint32_t i = 0; i < h->sections; i++) {
        if (table[i].kind < 1 || table[i].kind >= PK_SEC_COUNT_) return bad(error, "unknown section", table[i].kind);
        pk_status status = read_section(plan, &table[i], bytes, place, error);
        if (status != PK_OK) return status;
    }
    for (int32_t i = 1; i < PK_SEC_COUNT_; i++)
        if (!place[i]) place[i] = &nothing;

    plan->header = h;
    plan->strings = place[PK_SEC_STRINGS];
    plan->symbols = place[PK_SEC_SYMBOLS];
    plan->axes = place[PK_SEC_AXES];
    plan->tensors = place[PK_SEC_TENSORS];
    plan->nodes = place[PK_SEC_NODES];
    plan->refs = place[PK_SEC_REFS];
    plan->attrs = place[PK_SEC_ATTRS];
    plan->lists = place[PK_SEC_LISTS];
    plan->entries = place[PK_SEC_ENTRIES];
    plan->slots = place[PK_SEC_SLOTS];
    plan->ranges = place[PK_SEC_RANGES];
    plan->inputs = place[PK_SEC_INPUTS];
    plan->arguments = place[PK_SEC_ARGUMENTS];
    plan->constants = place[PK_SEC_CONSTANTS];
    plan->device_constants = plan->constants;
    plan->origins = place[PK_SEC_ORIGINS];
    return check_texts(plan, error);
}
