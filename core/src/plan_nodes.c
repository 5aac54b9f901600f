/* Checks of nodes and entries against the kernels' signatures, and what each entry touches. */
#include <string.h>

#include "core.h"

#define MOST_USES (1 << 20)
#define FAIL(node, tensor, ...) return pk_error_at(error, PK_BAD_PLAN, node, tensor, __VA_ARGS__)

static int within(int64_t index, int64_t count) { return index >= 0 && index < count; }

/* ---- kernels ---- */
static const pk_kernel_row *find_kernel(const char *signature, const char **similar) {
    const size_t name = strcspn(signature, "(");
    const pk_kernel_row *row;
    for (int32_t i = 0; (row = pk_backend_table.kernel(i)) != NULL; i++) {
        if (strncmp(row->signature, signature, name + 1) != 0) continue;
        if (strcmp(row->signature, signature) == 0) return row;
        *similar = row->signature;
    }
    return NULL;
}

static pk_status check_attrs(pk_plan *plan, int32_t i, const pk_signature *s, pk_error *error) {
    const pk_plan_node *node = &plan->nodes[i];
    if (node->attr_count != (uint32_t)s->attrs || (uint64_t)node->attrs + node->attr_count > (uint64_t)PK_COUNT(plan, ATTRS))
        FAIL(i, -1, "%u attributes given, the kernel takes %d", node->attr_count, s->attrs);
    for (int32_t k = 0; k < s->attrs; k++) {
        const pk_plan_attr *attr = &plan->attrs[node->attrs + (uint32_t)k];
        pk_attr *value = &plan->attr_values[node->attrs + (uint32_t)k];
        if (attr->kind != s->attr_kind[k]) FAIL(i, -1, "attribute %d has another type than the kernel takes", k);
        if (attr->kind != PK_ATTR_LIST) {
            value->i = attr->value.i; /* the same 8 bytes, whole number or float */
            continue;
        }
        const int64_t at = attr->value.i, lists = PK_COUNT(plan, LISTS);
        if (!within(at, lists) || plan->lists[at] < 0 || plan->lists[at] > lists - at - 1)
            FAIL(i, -1, "attribute %d is a list outside the lists", k);
        value->list = plan->lists + at;
    }
    return PK_OK;
}

static pk_status check_port(const pk_plan *plan, int32_t i, int32_t tensor, int type, const char *side, int32_t port,
                            pk_error *error) {
    if (!within(tensor, PK_COUNT(plan, TENSORS))) FAIL(i, -1, "%s %d is not a tensor", side, port);
    const uint8_t dtype = plan->tensors[tensor].dtype;
    if (type != PK_ANY && type != dtype)
        FAIL(i, tensor, "%s %d is %s, the kernel takes %s", side, port, pk_dtype_names[dtype], pk_dtype_names[type]);
    return PK_OK;
}

/* Everything a write may reach must be a slot or a range; a parameter only in a node that says it updates. */
static pk_status check_written(const pk_plan *plan, int32_t i, int32_t tensor, pk_error *error) {
    int32_t t = tensor;
    while (plan->tensors[t].storage >= PK_AT_ALIAS) {
        if (plan->tensors[t].storage == PK_AT_PREVIOUS) {
            pk_status status = check_written(plan, i, plan->tensors[t].part, error);
            if (status != PK_OK) return status;
        }
        t = plan->tensors[t].place;
    }
    const uint8_t storage = plan->tensors[t].storage;
    if (storage != PK_AT_SLOT && storage != PK_AT_RANGE)
        FAIL(i, tensor, "the node writes to an input, an argument, a constant or an axis");
    if (storage == PK_AT_RANGE && plan->ranges[plan->tensors[t].place].klass == PK_RANGE_PARAM &&
        !(plan->nodes[i].flags & PK_NODE_UPDATES))
        FAIL(i, tensor, "the node writes to a parameter without saying that it updates");
    return PK_OK;
}

static pk_status check_refs(const pk_plan *plan, int32_t i, const pk_signature *s, pk_error *error) {
    const pk_plan_node *node = &plan->nodes[i];
    const int32_t ins = node->inputs, outs = node->outputs;
    if ((uint64_t)node->refs + (uint64_t)ins + (uint64_t)outs > (uint64_t)PK_COUNT(plan, REFS))
        FAIL(i, -1, "the node's tensors lie outside the references");
    if (ins < s->inputs || (ins > s->inputs && !s->many_inputs) || outs < s->outputs ||
        (outs > s->outputs && !s->many_outputs))
        FAIL(i, -1, "%d inputs and %d outputs, the kernel takes %d and %d", ins, outs, s->inputs, s->outputs);
    if (outs < 32 ? node->accumulate >> outs : 0) FAIL(i, -1, "the node adds to an output it does not have");
    const int32_t *ref = plan->refs + node->refs;
    for (int32_t k = 0; k < ins; k++) {
        const int32_t port = k < s->inputs ? k : s->inputs - 1;
        if (ref[k] == -1 && (s->optional >> port) & 1u) continue;
        pk_status status = check_port(plan, i, ref[k], s->in_type[port], "input", k, error);
        if (status != PK_OK) return status;
    }
    for (int32_t k = 0; k < outs; k++) {
        const int32_t port = k < s->outputs ? k : s->outputs - 1;
        if (ref[ins + k] == -1 && (s->optional_out >> port) & 1u && !((node->accumulate >> (k & 31)) & 1u)) continue;
        pk_status status = check_port(plan, i, ref[ins + k], s->out_type[port], "output", k, error);
        if (status == PK_OK) status = check_written(plan, i, ref[ins + k], error);
        if (status != PK_OK) return status;
    }
    return PK_OK;
}

/* The rows of the first output say where a node's random numbers begin. */
static void find_random_base(const pk_plan *plan, int32_t i) {
    pk_node_info *info = &plan->node_info[i];
    const pk_plan_node *node = &plan->nodes[i];
    const int32_t first = node->outputs ? plan->refs[node->refs + node->inputs] : -1;
    const pk_plan_tensor *t = first >= 0 ? &plan->tensors[first] : NULL;
    info->random_base = PK_BASE_NONE;
    if (!t || t->ndim < 1 || t->dim[0].symbol < 0) return;
    const pk_plan_symbol *s = &plan->symbols[t->dim[0].symbol];
    info->random_rows = t->dim[0].coefficient;
    info->random_axis = s->a;
    if (s->kind == PK_SYM_TOTAL) info->random_base = PK_BASE_AXIS;
    if (s->kind == PK_SYM_STEP_ROWS) info->random_base = PK_BASE_STEP;
    if (s->kind == PK_SYM_BATCH) info->random_base = PK_BASE_SAMPLE;
    if (s->kind == PK_SYM_SEQUENCES) {
        info->random_axis = plan->axes[s->a].parent;
        info->random_base = info->random_axis < 0 ? PK_BASE_SAMPLE : PK_BASE_AXIS;
    }
}

static pk_status check_kernel(pk_plan *plan, int32_t i, pk_error *error) {
    const char *text = pk_text(plan, plan->nodes[i].signature), *similar = NULL;
    const pk_kernel_row *row = find_kernel(text, &similar);
    pk_signature signature;
    if (!row && similar)
        return pk_error_at(error, PK_NO_KERNEL, i, -1, "the plan wants %.180s, this core has %.180s", text, similar);
    if (!row) return pk_error_at(error, PK_NO_KERNEL, i, -1, "this core has no kernel %.200s", text);
    if (!pk_signature_parse(row->signature, &signature))
        return pk_error_at(error, PK_NO_KERNEL, i, -1, "not a kernel signature: %.200s", row->signature);
    plan->node_info[i].fn = row->fn;
    plan->node_info[i].work = signature.work;
    pk_status status = check_attrs(plan, i, &signature, error);
    if (status == PK_OK) status = check_refs(plan, i, &signature, error);
    if (status == PK_OK) find_random_base(plan, i);
    return status;
}

/* One int32 (guards, flags, halt) or one number (fetches), outside any loop or inside the same one. */
static pk_status check_scalar(const pk_plan *plan, int32_t node, int32_t t, int whole, pk_error *error) {
    if (!within(t, PK_COUNT(plan, TENSORS)) || !pk_is_static(&plan->tensors[t]) ||
        pk_tensor_count(&plan->tensors[t], NULL) != 1 || (whole && plan->tensors[t].dtype != PK_I32))
        FAIL(node, -1, "%s must be a tensor of one %s", whole ? "a guard or flag" : "a result", whole ? "i32" : "number");
    return PK_OK;
}

static pk_status check_node(pk_plan *plan, int32_t i, pk_error *error) {
    const pk_plan_node *node = &plan->nodes[i];
    if (node->origin && node->origin >= (uint32_t)PK_COUNT(plan, ORIGINS)) FAIL(i, -1, "the node's origin is none");
    if (node->guard != -1) {
        pk_status status = check_scalar(plan, i, node->guard, 1, error);
        if (status != PK_OK) return status;
    }
    switch (node->kind) {
    case PK_NODE_KERNEL:
        if (node->body) FAIL(i, -1, "a kernel has no body");
        return check_kernel(plan, i, error);
    case PK_NODE_SCAN:
        if (!within(node->axis, PK_COUNT(plan, AXES)) || !(plan->axes[node->axis].flags & PK_AXIS_ORDERED))
            FAIL(i, -1, "a scan needs an ordered axis");
        break;
    case PK_NODE_DECODE:
        if (node->limit < 1 || node->limit > INT32_MAX) FAIL(i, -1, "a decode runs 1 to 2^31 times");
        if (check_scalar(plan, i, node->flag, 1, error) != PK_OK) return PK_BAD_PLAN;
        if (plan->tags[node->flag].kind) FAIL(i, node->flag, "a decode's flag lies outside its steps");
        break;
    default: FAIL(i, -1, "nodes of kind %u are not run by this core", node->kind);
    }
    if (node->inputs || node->outputs || node->attr_count) FAIL(i, -1, "a loop has no tensors of its own");
    return PK_OK;
}

/* ---- entries ---- */
typedef struct walk {
    pk_plan *plan;
    pk_entry_info *info;
    const pk_plan_entry *entry;
    int32_t index;
    uint8_t *seen;    /* by tensor */
    uint8_t *symbol;  /* by symbol: needed */
    pk_error *error;
} walk;

/* Marks what a tensor needs: symbols, axes, inputs, and the tensors it lies in. */
static void mark(walk *w, int32_t t) {
    while (!w->seen[t]) {
        const pk_plan_tensor *tensor = &w->plan->tensors[t];
        w->seen[t] = 1;
        for (int32_t d = 0; d < tensor->ndim; d++)
            if (tensor->dim[d].symbol >= 0) w->symbol[tensor->dim[d].symbol] = 1;
        if (tensor->axis >= 0) w->info->axis_parts[tensor->axis] |= PK_AXIS_NEEDED | 1u << PK_PART_OFFSETS;
        if (tensor->storage == PK_AT_AXIS)
            w->info->axis_parts[tensor->place] |= (uint8_t)(PK_AXIS_NEEDED | 1u << tensor->part);
        if (tensor->storage == PK_AT_INPUT) w->info->input_state[tensor->place] |= 2;
        if (tensor->storage == PK_AT_PREVIOUS) mark(w, tensor->part);
        if (tensor->storage < PK_AT_ALIAS) return;
        t = tensor->place;
    }
}

static void use(walk *w, int32_t t) {
    w->info->use[w->info->uses++] = t;
    if (t >= 0) mark(w, t);
}

/* Adds the uses of one node; `loop` is the loop around it. */
static pk_status use_node(walk *w, int32_t i, pk_loop_tag loop) {
    const pk_plan *plan = w->plan;
    const pk_plan_node *node = &plan->nodes[i];
    pk_entry_info *info = w->info;
    pk_error *error = w->error;
    const int32_t at = i - (int32_t)w->entry->first_node, first = info->uses;
    info->node_use[at] = first;
    for (int32_t k = 0; k < node->inputs + node->outputs; k++) use(w, plan->refs[node->refs + (uint32_t)k]);
    info->guard_use[at] = node->guard < 0 ? -1 : info->uses;
    if (node->guard >= 0) use(w, node->guard);
    info->flag_use[at] = node->kind == PK_NODE_DECODE ? info->uses : -1;
    if (node->kind == PK_NODE_DECODE) use(w, node->flag);
    if (node->kind == PK_NODE_SCAN)
        info->axis_parts[node->axis] |= (uint8_t)(PK_AXIS_NEEDED | 1u << PK_PART_ORDER | 1u << PK_PART_STARTS);
    for (int32_t u = first; u < info->uses; u++) {
        if (info->use[u] < 0 || plan->tags[info->use[u]].kind == PK_LOOP_NONE) continue;
        const pk_loop_tag tag = plan->tags[info->use[u]];
        if (tag.kind != loop.kind || tag.value != loop.value)
            FAIL(i, info->use[u], "the node uses a step of a loop that it is not in");
        info->stepped[info->stepped_first[at + 1]++] = u;
    }
    return PK_OK;
}

/* Loops do not nest, and no entry cuts one in two. */
static pk_status use_nodes(walk *w) {
    const pk_plan *plan = w->plan;
    pk_error *error = w->error;
    const int32_t end = (int32_t)(w->entry->first_node + w->entry->nodes);
    pk_loop_tag loop = {PK_LOOP_NONE, 0};
    int32_t loop_end = 0;
    for (int32_t i = (int32_t)w->entry->first_node; i < end; i++) {
        const pk_plan_node *node = &plan->nodes[i];
        const int32_t at = i - (int32_t)w->entry->first_node;
        if (i >= loop_end) loop.kind = PK_LOOP_NONE;
        w->info->stepped_first[at + 1] = w->info->stepped_first[at];
        if (node->kind != PK_NODE_KERNEL && loop.kind) FAIL(i, -1, "a loop inside a loop");
        pk_status status = use_node(w, i, loop);
        if (status != PK_OK) return status;
        if (node->kind == PK_NODE_KERNEL) continue;
        if (node->body > (uint32_t)(end - i - 1)) FAIL(i, -1, "a loop's body ends outside its entry");
        loop.kind = node->kind == PK_NODE_SCAN ? PK_LOOP_SCAN : PK_LOOP_DECODE;
        loop.value = node->kind == PK_NODE_SCAN ? node->axis : node->limit;
        loop_end = i + 1 + (int32_t)node->body;
    }
    return PK_OK;
}

static pk_status use_results(walk *w) {
    const pk_plan *plan = w->plan;
    const pk_plan_entry *e = w->entry;
    pk_error *error = w->error;
    pk_status status;
    w->info->fetch_use = w->info->uses;
    for (uint32_t k = 0; k < e->fetches; k++) {
        const int32_t t = plan->refs[e->first_fetch + k];
        if ((status = check_scalar(plan, -1, t, 0, error)) != PK_OK) return status;
        use(w, t);
    }
    w->info->output_use = w->info->uses;
    for (uint32_t k = 0; k < e->outputs; k++) {
        const int32_t t = plan->refs[e->first_output + k];
        if (!within(t, PK_COUNT(plan, TENSORS))) FAIL(-1, -1, "output %u of entry %d is no tensor", k, w->index);
        use(w, t);
    }
    w->info->halt_use = e->halt < 0 ? -1 : w->info->uses;
    if (e->halt >= 0) {
        if ((status = check_scalar(plan, -1, e->halt, 1, error)) != PK_OK) return status;
        use(w, e->halt);
    }
    for (int32_t u = w->info->fetch_use; u < w->info->uses; u++)
        if (plan->tags[w->info->use[u]].kind) FAIL(-1, w->info->use[u], "a result is a step of a loop");
    return PK_OK;
}

/* From needed symbols to needed axes, their parents and the inputs that define them. */
static pk_status need_axes(walk *w) {
    const pk_plan *plan = w->plan;
    pk_error *error = w->error;
    uint8_t *parts = w->info->axis_parts;
    for (int32_t i = PK_COUNT(plan, SYMBOLS) - 1; i >= 0; i--) {
        const pk_plan_symbol *s = &plan->symbols[i];
        if (!w->symbol[i] || s->kind == PK_SYM_BATCH) continue;
        if (s->kind == PK_SYM_SUM || s->kind == PK_SYM_PRODUCT) {
            w->symbol[s->a] = 1;
            if (s->b >= 0) w->symbol[s->b] = 1;
            continue;
        }
        parts[s->a] |= PK_AXIS_NEEDED;
        if (s->kind == PK_SYM_PAIRS) parts[s->b] |= PK_AXIS_NEEDED;
    }
    for (int32_t i = PK_COUNT(plan, AXES) - 1; i >= 0; i--) {
        if (!(parts[i] & PK_AXIS_NEEDED)) continue;
        if (plan->axes[i].parent >= 0) parts[plan->axes[i].parent] |= PK_AXIS_NEEDED;
        if (!(w->info->input_state[plan->axes[i].input] & 1))
            FAIL(-1, -1, "entry %s does not bind the input that defines axis %s", pk_text(plan, w->entry->name),
                 pk_text(plan, plan->axes[i].name));
    }
    for (int32_t i = 0; i < PK_COUNT(plan, INPUTS); i++)
        if (w->info->input_state[i] == 2)
            FAIL(-1, -1, "entry %s reads input %s, which it does not bind", pk_text(plan, w->entry->name),
                 pk_text(plan, plan->inputs[i].name));
    return PK_OK;
}

static pk_status bind_inputs(walk *w) {
    const pk_plan *plan = w->plan;
    pk_error *error = w->error;
    for (uint32_t k = 0; k < w->entry->inputs; k++) {
        const int32_t input = plan->refs[w->entry->first_input + k];
        if (!within(input, PK_COUNT(plan, INPUTS))) FAIL(-1, -1, "entry %d binds an input that is none", w->index);
        if (w->info->input_state[input]) FAIL(-1, -1, "entry %d binds an input twice", w->index);
        w->info->input_state[input] = 1;
        const pk_plan_tensor *t = &plan->tensors[plan->inputs[input].tensor];
        if (t->axis >= 0) w->info->axis_parts[t->axis] |= PK_AXIS_NEEDED;
        if (t->dim[0].symbol >= 0) w->symbol[t->dim[0].symbol] = 1;
        if (t->axis < 0 && t->dim[0].symbol >= 0 && t->dim[0].symbol != plan->batch)
            FAIL(-1, plan->inputs[input].tensor, "an input has the batch, an axis or a number as first dimension");
        for (int32_t d = 1; d < t->ndim; d++)
            if (t->dim[d].symbol >= 0) FAIL(-1, plan->inputs[input].tensor, "the rows of an input have a fixed size");
    }
    return PK_OK;
}

static pk_status reserve_uses(walk *w, int64_t *left) {
    const pk_plan *plan = w->plan;
    const pk_plan_entry *e = w->entry;
    pk_error *error = w->error;
    const uint64_t refs = (uint64_t)PK_COUNT(plan, REFS);
    if ((uint64_t)e->first_node + e->nodes > (uint64_t)PK_COUNT(plan, NODES) ||
        (uint64_t)e->first_input + e->inputs > refs || (uint64_t)e->first_fetch + e->fetches > refs ||
        (uint64_t)e->first_output + e->outputs > refs || e->halt < -1)
        FAIL(-1, -1, "entry %d lies outside the plan", w->index);
    int64_t uses = (int64_t)e->fetches + e->outputs + 1;
    for (uint32_t i = 0; i < e->nodes; i++)
        uses += plan->nodes[e->first_node + i].inputs + plan->nodes[e->first_node + i].outputs + 2;
    if ((*left -= uses) < 0) FAIL(-1, -1, "the entries use more than %d tensors", MOST_USES);
    pk_entry_info *info = w->info;
    const uint64_t nodes = (uint64_t)e->nodes + 1;
    info->use = pk_host_zeros((uint64_t)uses, sizeof(int32_t));
    info->stepped = pk_host_zeros((uint64_t)uses, sizeof(int32_t));
    info->node_use = pk_host_zeros(nodes, sizeof(int32_t));
    info->guard_use = pk_host_zeros(nodes, sizeof(int32_t));
    info->flag_use = pk_host_zeros(nodes, sizeof(int32_t));
    info->stepped_first = pk_host_zeros(nodes, sizeof(int32_t));
    info->axis_parts = pk_host_zeros((uint64_t)PK_COUNT(plan, AXES), 1);
    info->input_state = pk_host_zeros((uint64_t)PK_COUNT(plan, INPUTS), 1);
    if (!info->use || !info->stepped || !info->node_use || !info->guard_use || !info->flag_use || !info->stepped_first ||
        !info->axis_parts || !info->input_state)
        return pk_error_at(error, PK_NO_MEMORY, -1, -1, "no memory for a plan");
    return PK_OK;
}

static pk_status check_entries(pk_plan *plan, uint8_t *seen, uint8_t *symbol, pk_error *error) {
    int64_t left = MOST_USES;
    for (int32_t i = 0; i < PK_COUNT(plan, ENTRIES); i++) {
        walk w = {plan, &plan->entry_info[i], &plan->entries[i], i, seen, symbol, error};
        memset(seen, 0, (size_t)PK_COUNT(plan, TENSORS));
        memset(symbol, 0, (size_t)PK_COUNT(plan, SYMBOLS));
        pk_status status = reserve_uses(&w, &left);
        if (status == PK_OK) status = bind_inputs(&w);
        if (status == PK_OK) status = use_nodes(&w);
        if (status == PK_OK) status = use_results(&w);
        if (status == PK_OK) status = need_axes(&w);
        if (status != PK_OK) return status;
    }
    return PK_OK;
}

pk_status pk_plan_check_nodes(pk_plan *plan, pk_error *error) {
    plan->node_info = pk_host_zeros((uint64_t)PK_COUNT(plan, NODES), sizeof *plan->node_info);
    plan->attr_values = pk_host_zeros((uint64_t)PK_COUNT(plan, ATTRS), sizeof *plan->attr_values);
    plan->entry_info = pk_host_zeros((uint64_t)PK_COUNT(plan, ENTRIES), sizeof *plan->entry_info);
    if (!plan->node_info || !plan->attr_values || !plan->entry_info)
        return pk_error_at(error, PK_NO_MEMORY, -1, -1, "no memory for a plan");
    for (int32_t i = 0; i < PK_COUNT(plan, NODES); i++) {
        pk_status status = check_node(plan, i, error);
        if (status != PK_OK) return status;
    }
    uint8_t *seen = pk_host_zeros((uint64_t)PK_COUNT(plan, TENSORS), 1);
    uint8_t *symbol = pk_host_zeros((uint64_t)PK_COUNT(plan, SYMBOLS), 1);
    pk_status status = seen && symbol ? check_entries(plan, seen, symbol, error)
                                      : pk_error_at(error, PK_NO_MEMORY, -1, -1, "no memory for a plan");
    pk_release(seen);
    pk_release(symbol);
    return status;
}

void pk_plan_free(pk_plan *plan) {
    if (!plan) return;
    for (int32_t i = 0; plan->entry_info && i < PK_COUNT(plan, ENTRIES); i++) {
        pk_entry_info *info = &plan->entry_info[i];
        pk_release(info->use);
        pk_release(info->stepped);
        pk_release(info->node_use);
        pk_release(info->guard_use);
        pk_release(info->flag_use);
        pk_release(info->stepped_first);
        pk_release(info->axis_parts);
        pk_release(info->input_state);
    }
    if (plan->device_constants != plan->constants) pk_backend_table.give((void *)(uintptr_t)plan->device_constants);
    pk_release(plan->entry_info);
    pk_release(plan->attr_values);
    pk_release(plan->node_info);
    pk_release(plan->tags);
    pk_release(plan->axis_info);
    pk_release(plan->bytes);
    pk_release(plan);
}
