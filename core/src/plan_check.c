/* Checks of symbols, axes and tensors: after them, sizes may be computed and addresses found without a further look. */
#include <string.h>

#include "core.h"

#define FAIL(tensor, ...) return pk_error_at(error, PK_BAD_PLAN, -1, tensor, __VA_ARGS__)

static int within(int64_t index, int64_t count) { return index >= 0 && index < count; }

/* ---- symbols and axes ---- */
static int32_t *axis_symbol(pk_plan *plan, const pk_plan_symbol *s) {
    pk_axis_info *info = &plan->axis_info[s->a];
    switch (s->kind) {
    case PK_SYM_SEQUENCES: return &info->sequences;
    case PK_SYM_TOTAL: return &info->total;
    case PK_SYM_LONGEST: return &info->longest;
    default: return &info->step_rows;
    }
}

static pk_status check_operands(const pk_plan *plan, int32_t i, pk_error *error) {
    const pk_plan_symbol *s = &plan->symbols[i];
    const int two = s->kind == PK_SYM_PRODUCT || s->b >= 0;
    if (!within(s->a, i) || (two && !within(s->b, i)) || s->b < -1)
        FAIL(-1, "symbol %d uses one that does not come before it", i);
    if (plan->symbols[s->a].kind == PK_SYM_STEP_ROWS || (two && plan->symbols[s->b].kind == PK_SYM_STEP_ROWS))
        FAIL(-1, "symbol %d is made from the rows of a step", i);
    if (!within(s->ca, PK_MAX_SIZE) || !within(s->cb, PK_MAX_SIZE)) FAIL(-1, "symbol %d has a bad coefficient", i);
    return PK_OK;
}

static pk_status check_symbol(pk_plan *plan, int32_t i, pk_error *error) {
    const pk_plan_symbol *s = &plan->symbols[i];
    const int32_t axes = PK_COUNT(plan, AXES);
    int32_t *place;
    switch (s->kind) {
    case PK_SYM_BATCH:
        if (plan->batch >= 0) FAIL(-1, "the batch has two symbols");
        plan->batch = i;
        return PK_OK;
    case PK_SYM_SEQUENCES:
    case PK_SYM_TOTAL:
    case PK_SYM_LONGEST:
    case PK_SYM_STEP_ROWS:
        if (!within(s->a, axes)) FAIL(-1, "symbol %d names axis %d of %d", i, s->a, axes);
        place = axis_symbol(plan, s);
        if (*place >= 0) FAIL(-1, "symbol %d repeats symbol %d", i, *place);
        *place = i;
        return PK_OK;
    case PK_SYM_SUM:
    case PK_SYM_PRODUCT: return check_operands(plan, i, error);
    case PK_SYM_PAIRS:
        if (!within(s->a, axes) || !within(s->b, axes) || plan->axes[s->a].parent != plan->axes[s->b].parent)
            FAIL(-1, "symbol %d pairs axes %d and %d, which have not the same sequences", i, s->a, s->b);
        return PK_OK;
    default: FAIL(-1, "symbol %d has the unknown kind %u", i, s->kind);
    }
}

static pk_status check_symbols(pk_plan *plan, pk_error *error) {
    const int32_t axes = PK_COUNT(plan, AXES);
    plan->axis_info = pk_host_zeros((uint64_t)axes, sizeof *plan->axis_info);
    if (!plan->axis_info) return pk_error_at(error, PK_NO_MEMORY, -1, -1, "no memory for a plan");
    memset(plan->axis_info, 0xff, (size_t)axes * sizeof *plan->axis_info);
    plan->batch = -1;
    for (int32_t i = 0; i < axes; i++)
        if (plan->axes[i].parent < -1 || plan->axes[i].parent >= i) FAIL(-1, "axis %d has a bad parent", i);
    for (int32_t i = 0; i < PK_COUNT(plan, SYMBOLS); i++) {
        pk_status status = check_symbol(plan, i, error);
        if (status != PK_OK) return status;
    }
    if (plan->batch < 0) FAIL(-1, "the batch has no symbol");
    for (int32_t i = 0; i < axes; i++) {
        const pk_axis_info *info = &plan->axis_info[i];
        if (info->sequences < 0 || info->total < 0 || info->longest < 0) FAIL(-1, "axis %d lacks symbols", i);
    }
    return PK_OK;
}

/* The input that gives an axis its offsets must itself be ragged along it. */
static pk_status check_axis_inputs(const pk_plan *plan, pk_error *error) {
    for (int32_t i = 0; i < PK_COUNT(plan, AXES); i++) {
        const int32_t input = plan->axes[i].input;
        if (!within(input, PK_COUNT(plan, INPUTS)) || plan->tensors[plan->inputs[input].tensor].axis != i)
            FAIL(-1, "axis %s is not an axis of the input that defines it", pk_text(plan, plan->axes[i].name));
    }
    return PK_OK;
}

/* ---- tensors ---- */
static pk_status check_dims(pk_plan *plan, int32_t i, pk_error *error) {
    const pk_plan_tensor *t = &plan->tensors[i];
    pk_loop_tag *tag = &plan->tags[i];
    if (t->name >= (uint32_t)PK_COUNT(plan, STRINGS) || t->dtype > PK_BOOL || t->layout > 2 || t->ndim > PK_MAX_DIM)
        FAIL(i, "tensor %d has a bad type", i);
    if (t->origin && t->origin >= (uint32_t)PK_COUNT(plan, ORIGINS)) FAIL(i, "tensor %d has a bad origin", i);
    for (int32_t d = 0; d < t->ndim; d++) {
        const pk_plan_dim *dim = &t->dim[d];
        if (dim->coefficient < 0 || dim->coefficient > PK_MAX_SIZE || dim->symbol < -1 ||
            dim->symbol >= PK_COUNT(plan, SYMBOLS))
            FAIL(i, "tensor %d has a bad dimension %d", i, d);
        if (dim->symbol < 0 || plan->symbols[dim->symbol].kind != PK_SYM_STEP_ROWS) continue;
        const int32_t axis = plan->symbols[dim->symbol].a;
        if (tag->kind == PK_LOOP_SCAN && tag->value != axis) FAIL(i, "tensor %d has rows of two loops", i);
        tag->kind = PK_LOOP_SCAN;
        tag->value = axis;
    }
    if (pk_is_static(t) && pk_tensor_bytes(t, NULL) < 0) FAIL(i, "tensor %d is too large", i);
    if (t->axis < -1 || t->axis >= PK_COUNT(plan, AXES)) FAIL(i, "tensor %d has a bad axis", i);
    if (t->axis >= 0 && (t->ndim < 1 || t->dim[0].symbol != plan->axis_info[t->axis].total || t->dim[0].coefficient != 1))
        FAIL(i, "tensor %d is ragged, but its rows are not those of its axis", i);
    return PK_OK;
}

/* Bytes from `offset` on must lie within `room`; a symbolic size is looked at when a batch is bound. */
static pk_status check_room(const pk_plan_tensor *t, int32_t i, uint64_t room, const char *where, pk_error *error) {
    if (t->offset > room) FAIL(i, "tensor %d starts behind its %s", i, where);
    if (!pk_is_static(t)) return PK_OK;
    const int64_t bytes = pk_tensor_bytes(t, NULL);
    if (bytes < 0 || (uint64_t)bytes > room - t->offset)
        FAIL(i, "tensor %d ends outside its %s of %llu bytes", i, where, (unsigned long long)room);
    return PK_OK;
}

static int same_loop(pk_loop_tag a, pk_loop_tag b) {
    return a.kind == PK_LOOP_NONE || b.kind == PK_LOOP_NONE || (a.kind == b.kind && a.value == b.value);
}

/* A tensor inside another: the other comes before it, so there are no cycles. */
static pk_status check_alias(pk_plan *plan, int32_t i, pk_error *error) {
    const pk_plan_tensor *t = &plan->tensors[i], *to = &plan->tensors[t->place];
    if (t->dtype != to->dtype) FAIL(i, "tensor %d has another type than the tensor it is a view of", i);
    if (t->offset > (uint64_t)PK_MAX_BYTES) FAIL(i, "tensor %d starts behind its tensor", i);
    if (!same_loop(plan->tags[i], plan->tags[t->place])) FAIL(i, "tensor %d has rows of two loops", i);
    if (plan->tags[i].kind == PK_LOOP_NONE) plan->tags[i] = plan->tags[t->place];
    if (pk_is_static(to)) return check_room(t, i, (uint64_t)pk_tensor_bytes(to, NULL), "tensor", error);
    return PK_OK;
}

/* STEP, PREVIOUS and PREFIX.  With rows of a step as first dimension they belong to a scan, else to a decode, whose
 * repetition t has rows t*R to (t+1)*R of a tensor with limit*R rows. */
static pk_status check_step(pk_plan *plan, int32_t i, pk_error *error) {
    const pk_plan_tensor *t = &plan->tensors[i], *to = &plan->tensors[t->place];
    pk_loop_tag *tag = &plan->tags[i];
    if (t->offset != 0 || t->ndim < 1 || to->ndim < 1 || t->dtype != to->dtype || plan->tags[t->place].kind)
        FAIL(i, "tensor %d is not a step of tensor %d", i, t->place);
    if (t->storage == PK_AT_PREVIOUS) {
        const pk_plan_tensor *first = &plan->tensors[t->part];
        if (first->dtype != t->dtype || plan->tags[t->part].kind) FAIL(i, "tensor %d has a bad first value", i);
    }
    for (int32_t d = 1; d < t->ndim; d++)
        if (t->dim[d].symbol >= 0 && plan->symbols[t->dim[d].symbol].kind == PK_SYM_STEP_ROWS)
            FAIL(i, "tensor %d has rows of a step within a row", i);
    const int scan = t->dim[0].symbol >= 0 && plan->symbols[t->dim[0].symbol].kind == PK_SYM_STEP_ROWS;
    if (scan) {
        const int32_t axis = plan->symbols[t->dim[0].symbol].a;
        if (t->storage != PK_AT_PREFIX && to->dim[0].symbol != plan->axis_info[axis].total)
            FAIL(i, "tensor %d has steps of tensor %d, which is not packed along the axis", i, t->place);
        return PK_OK;
    }
    const int64_t own = t->dim[0].coefficient, all = to->dim[0].coefficient;
    if (t->storage == PK_AT_PREFIX || to->dim[0].symbol != t->dim[0].symbol || own < 1 || all % own || all < own)
        FAIL(i, "tensor %d is not a repetition's rows of tensor %d", i, t->place);
    tag->kind = PK_LOOP_DECODE;
    tag->value = all / own;
    return PK_OK;
}

static pk_status check_storage(pk_plan *plan, int32_t i, pk_error *error) {
    const pk_plan_tensor *t = &plan->tensors[i];
    const int64_t places[] = {PK_COUNT(plan, SLOTS), PK_COUNT(plan, INPUTS), PK_COUNT(plan, ARGUMENTS),
                              PK_COUNT(plan, RANGES), INT32_MAX, PK_COUNT(plan, AXES), i, i, i, i};
    if (t->storage > PK_AT_PREFIX || (t->storage != PK_AT_CONSTANT && !within(t->place, places[t->storage])))
        FAIL(i, "tensor %d has no such place", i);
    if (t->offset % pk_dtype_bytes[t->dtype]) FAIL(i, "tensor %d is not aligned to its type", i);
    switch (t->storage) {
    case PK_AT_SLOT: return check_room(t, i, (uint64_t)PK_MAX_BYTES, "slot", error);
    case PK_AT_INPUT:
        if (plan->inputs[t->place].tensor != i || t->offset || t->ndim < 1 || plan->tags[i].kind)
            FAIL(i, "tensor %d is not the one of its input", i);
        return PK_OK;
    case PK_AT_ARGUMENT:
        if (plan->arguments[t->place].tensor != i || t->offset || !pk_is_static(t) || pk_tensor_count(t, NULL) != 1 ||
            (t->dtype != PK_F32 && t->dtype != PK_F64 && t->dtype != PK_I64 && t->dtype != PK_I32))
            FAIL(i, "tensor %d is not the one of its argument", i);
        return PK_OK;
    case PK_AT_RANGE: return check_room(t, i, plan->ranges[t->place].bytes, "range", error);
    case PK_AT_CONSTANT: return check_room(t, i, (uint64_t)PK_COUNT(plan, CONSTANTS), "constants", error);
    case PK_AT_AXIS:
        if (!within(t->part, 6) || t->dtype != PK_I64 || t->offset) FAIL(i, "tensor %d is no part of an axis", i);
        if (((PK_AXIS_SORTED >> t->part) & 1u) && !(plan->axes[t->place].flags & PK_AXIS_ORDERED))
            FAIL(i, "tensor %d wants the order of an axis that has none", i);
        return PK_OK;
    case PK_AT_ALIAS: return check_alias(plan, i, error);
    default:
        if (t->storage == PK_AT_PREVIOUS && !within(t->part, i)) FAIL(i, "tensor %d has no first value", i);
        return check_step(plan, i, error);
    }
}

static pk_status check_places(const pk_plan *plan, pk_error *error) {
    const int32_t tensors = PK_COUNT(plan, TENSORS);
    for (int32_t i = 0; i < PK_COUNT(plan, INPUTS); i++)
        if (!within(plan->inputs[i].tensor, tensors) || plan->tensors[plan->inputs[i].tensor].storage != PK_AT_INPUT ||
            plan->tensors[plan->inputs[i].tensor].place != i)
            FAIL(-1, "input %d has no tensor", i);
    for (int32_t i = 0; i < PK_COUNT(plan, ARGUMENTS); i++)
        if (!within(plan->arguments[i].tensor, tensors) ||
            plan->tensors[plan->arguments[i].tensor].storage != PK_AT_ARGUMENT ||
            plan->tensors[plan->arguments[i].tensor].place != i)
            FAIL(-1, "argument %d has no tensor", i);
    for (int32_t i = 0; i < PK_COUNT(plan, RANGES); i++)
        if (plan->ranges[i].bytes > (uint64_t)PK_MAX_BYTES || plan->ranges[i].dtype > PK_BOOL ||
            plan->ranges[i].klass > PK_RANGE_METRIC)
            FAIL(-1, "range %d is not one", i);
    for (int32_t i = 0; i < PK_COUNT(plan, SLOTS); i++)
        if (plan->slots[i].first > plan->slots[i].last) FAIL(-1, "slot %d ends before it begins", i);
    return PK_OK;
}

pk_status pk_plan_check(pk_plan *plan, pk_error *error) {
    pk_status status = check_places(plan, error);
    if (status == PK_OK) status = check_symbols(plan, error);
    if (status == PK_OK) status = check_axis_inputs(plan, error);
    if (status != PK_OK) return status;
    plan->tags = pk_host_zeros((uint64_t)PK_COUNT(plan, TENSORS), sizeof *plan->tags);
    if (!plan->tags) return pk_error_at(error, PK_NO_MEMORY, -1, -1, "no memory for a plan");
    for (int32_t i = 0; i < PK_COUNT(plan, TENSORS) && status == PK_OK; i++) {
        status = check_dims(plan, i, error);
        if (status == PK_OK) status = check_storage(plan, i, error);
    }
    return status;
}
