/* Views: where each tensor of an entry is and how large, for the sizes of the present batch.  They are kept for the last
 * few sets of sizes, so that an epoch's equal batches and its short last one cost nothing. */
#include <string.h>

#include "core.h"

#define FAIL(status, tensor, ...) return pk_error_at(error, status, -1, tensor, __VA_ARGS__)

/* Address of a tensor at the loop's present step. */
static uint8_t *address(const pk_session *s, int32_t tensor) {
    const pk_plan *plan = s->plan;
    int64_t offset = 0;
    for (;;) {
        const pk_plan_tensor *t = &plan->tensors[tensor];
        const int64_t step = s->loop_step;
        switch (t->storage) {
        case PK_AT_SLOT: return s->slot[t->place] + t->offset + offset;
        case PK_AT_INPUT: return (uint8_t *)(uintptr_t)s->input[t->place] + offset;
        case PK_AT_ARGUMENT: return s->mirror + (s->argument - s->host) + 8 * t->place + offset;
        case PK_AT_RANGE: return s->params->range[t->place] + t->offset + offset;
        case PK_AT_CONSTANT: return (uint8_t *)(uintptr_t)plan->device_constants + t->offset + offset;
        case PK_AT_AXIS: return (uint8_t *)s->axes[t->place].seen[t->part] + offset;
        case PK_AT_ALIAS: offset += (int64_t)t->offset; break;
        case PK_AT_PREFIX: break;
        default:
            if (t->storage == PK_AT_PREVIOUS && step == 0) {
                tensor = t->part;
                continue;
            }
            if (plan->tags[tensor].kind == PK_LOOP_SCAN) {
                const int64_t *starts = s->axes[plan->tags[tensor].value].part[PK_PART_STARTS];
                const int64_t at = t->storage == PK_AT_STEP ? step : step - 1;
                offset += starts[at] * pk_row_bytes(&plan->tensors[t->place], s->symbols);
            } else {
                offset += (t->storage == PK_AT_STEP ? step : step - 1) * pk_tensor_bytes(t, s->symbols);
            }
        }
        tensor = t->place;
    }
}

/* A part of another tensor by steps: rows of equal bytes, and room for the longest step. */
static pk_status check_step(const pk_session *s, int32_t i, int64_t bytes, pk_error *error) {
    const pk_plan *plan = s->plan;
    const pk_plan_tensor *t = &plan->tensors[i], *to = &plan->tensors[t->place];
    const int64_t all = pk_tensor_bytes(to, s->symbols), row = pk_row_bytes(t, s->symbols);
    int fits;
    if (t->storage == PK_AT_PREFIX) fits = bytes <= all;
    else if (plan->tags[i].kind == PK_LOOP_SCAN) fits = row >= 0 && row == pk_row_bytes(to, s->symbols);
    else fits = all >= 0 && all / plan->tags[i].value == bytes;
    if (fits && t->storage == PK_AT_PREVIOUS) fits = bytes <= pk_tensor_bytes(&plan->tensors[t->part], s->symbols);
    if (!fits)
        FAIL(PK_BAD_SHAPE, i, "tensor %s does not fit the rows of %s", pk_text(plan, t->name), pk_text(plan, to->name));
    return PK_OK;
}

static int64_t room_of(const pk_session *s, const pk_plan_tensor *t) {
    const pk_axis_data *axis;
    switch (t->storage) {
    case PK_AT_SLOT: return s->slot_bytes[t->place];
    case PK_AT_RANGE: return (int64_t)s->plan->ranges[t->place].bytes;
    case PK_AT_CONSTANT: return PK_COUNT(s->plan, CONSTANTS);
    case PK_AT_ALIAS: return pk_tensor_bytes(&s->plan->tensors[t->place], s->symbols);
    case PK_AT_AXIS:
        axis = &s->axes[t->place];
        if (t->part == PK_PART_OFFSETS) return 8 * (axis->sequences + 1);
        if (t->part == PK_PART_STARTS) return 8 * (axis->longest + 1);
        return 8 * (t->part == PK_PART_ORDER ? axis->sequences : axis->total);
    default: return PK_MAX_BYTES; /* inputs were compared with their columns, arguments have one element */
    }
}

static pk_status check_tensor(const pk_session *s, int32_t i, pk_error *error) {
    const pk_plan_tensor *t = &s->plan->tensors[i];
    const int64_t bytes = pk_tensor_bytes(t, s->symbols);
    if (bytes < 0) FAIL(PK_BAD_SHAPE, i, "tensor %s is too large", pk_text(s->plan, t->name));
    if (t->storage > PK_AT_ALIAS) return check_step(s, i, bytes, error);
    const int64_t room = room_of(s, t);
    if ((int64_t)t->offset > room || bytes > room - (int64_t)t->offset)
        FAIL(PK_BAD_SHAPE, i, "tensor %s has %lld bytes from %lld on, its place %lld", pk_text(s->plan, t->name),
             (long long)bytes, (long long)t->offset, (long long)room);
    return PK_OK;
}

/* What a view lies in is checked with it: an alias of an alias needs every one of them inside the next. */
static pk_status check_chain(const pk_session *s, int32_t i, pk_error *error) {
    for (;;) {
        pk_status status = check_tensor(s, i, error);
        const pk_plan_tensor *t = &s->plan->tensors[i];
        if (status != PK_OK || t->storage < PK_AT_ALIAS) return status;
        if (t->storage == PK_AT_PREVIOUS && (status = check_chain(s, t->part, error)) != PK_OK) return status;
        i = t->place;
    }
}

static void fill_view(const pk_session *s, int32_t tensor, pk_view *view) {
    const pk_plan_tensor *t = &s->plan->tensors[tensor];
    view->data = address(s, tensor);
    for (int32_t d = 0; d < t->ndim; d++) view->dim[d] = pk_dim_value(&t->dim[d], s->symbols);
    view->ndim = t->ndim;
    view->dtype = t->dtype;
    view->layout = t->layout;
    if (t->axis < 0) return;
    view->offsets = s->axes[t->axis].seen[PK_PART_OFFSETS];
    view->sequences = s->axes[t->axis].sequences;
}

static void fill_call(const pk_session *s, const pk_entry_info *info, const pk_binding *b, int32_t node, int32_t at) {
    const pk_plan_node *n = &s->plan->nodes[node];
    pk_call *call = &b->calls[at];
    *call = s->proto;
    call->in = b->views + info->node_use[at];
    call->out = call->in + n->inputs;
    call->attr = s->plan->attr_values + n->attrs;
    call->n_in = n->inputs;
    call->n_out = n->outputs;
    call->n_attr = (int32_t)n->attr_count;
    call->accumulate = n->accumulate;
    call->random.seed = s->plan->header->seed;
    call->random.stream = n->stream;
}

static pk_status fill(pk_session *s, int32_t entry, pk_binding *b, pk_error *error) {
    const pk_plan_entry *e = &s->plan->entries[entry];
    const pk_entry_info *info = &s->plan->entry_info[entry];
    memset(b->views, 0, (size_t)info->uses * sizeof *b->views);
    for (int32_t u = 0; u < info->uses; u++) {
        if (info->use[u] < 0) continue;
        pk_status status = check_chain(s, info->use[u], error);
        if (status != PK_OK) return status;
        fill_view(s, info->use[u], &b->views[u]);
    }
    for (uint32_t at = 0; at < e->nodes; at++) fill_call(s, info, b, (int32_t)(e->first_node + at), (int32_t)at);
    return PK_OK;
}

static int holds(const pk_session *s, const pk_binding *b) {
    return b->valid &&
           memcmp(b->symbols, s->symbols, (size_t)PK_COUNT(s->plan, SYMBOLS) * sizeof *s->symbols) == 0 &&
           memcmp(b->input, s->input, (size_t)PK_COUNT(s->plan, INPUTS) * sizeof *s->input) == 0;
}

pk_status pk_views(pk_session *s, int32_t entry, pk_binding **binding, pk_error *error) {
    pk_binding *set = s->bindings + (int64_t)entry * PK_BINDINGS, *oldest = set;
    s->clock++;
    for (int32_t i = 0; i < PK_BINDINGS; i++) {
        if (holds(s, &set[i])) {
            set[i].used_at = s->clock;
            *binding = &set[i];
            return PK_OK;
        }
        if (set[i].used_at < oldest->used_at) oldest = &set[i];
    }
    oldest->valid = 0;
    s->loop_step = 0;
    pk_status status = fill(s, entry, oldest, error);
    if (status != PK_OK) return status;
    memcpy(oldest->symbols, s->symbols, (size_t)PK_COUNT(s->plan, SYMBOLS) * sizeof *s->symbols);
    memcpy(oldest->input, s->input, (size_t)PK_COUNT(s->plan, INPUTS) * sizeof *s->input);
    oldest->valid = 1;
    oldest->used_at = s->clock;
    *binding = oldest;
    return PK_OK;
}

void pk_views_step(const pk_session *s, const pk_entry_info *info, pk_binding *b, int32_t at) {
    for (int32_t k = info->stepped_first[at]; k < info->stepped_first[at + 1]; k++) {
        const int32_t u = info->stepped[k];
        fill_view(s, info->use[u], &b->views[u]);
    }
}
