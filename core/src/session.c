/* Session: memory for batches of a plan, and the loop over the steps of a request. */
#include <string.h>

#include "core.h"

/* ---- create and free ---- */
static int same_ranges(const pk_plan *a, const pk_plan *b) {
    if (PK_COUNT(a, RANGES) != PK_COUNT(b, RANGES)) return 0;
    for (int32_t i = 0; i < PK_COUNT(a, RANGES); i++) {
        const pk_plan_range *x = &a->ranges[i], *y = &b->ranges[i];
        if (x->bytes != y->bytes || x->klass != y->klass || x->dtype != y->dtype ||
            strcmp(pk_text(a, x->name), pk_text(b, y->name)) != 0)
            return 0;
    }
    return 1;
}

static int take_tables(pk_session *s) {
    const pk_plan *plan = s->plan;
    const uint64_t symbols = (uint64_t)PK_COUNT(plan, SYMBOLS), inputs = (uint64_t)PK_COUNT(plan, INPUTS);
    const uint64_t slots = (uint64_t)PK_COUNT(plan, SLOTS), nodes = (uint64_t)PK_COUNT(plan, NODES);
    s->capacity = pk_host_zeros(symbols, sizeof *s->capacity);
    s->symbols = pk_host_zeros(symbols, sizeof *s->symbols);
    s->needed = pk_host_zeros(symbols, sizeof *s->needed);
    s->slot = pk_host_zeros(slots, sizeof *s->slot);
    s->slot_bytes = pk_host_zeros(slots, sizeof *s->slot_bytes);
    s->slot_at = pk_host_zeros(slots, sizeof *s->slot_at);
    s->slot_room = pk_slot_room_create(plan);
    s->axes = pk_host_zeros((uint64_t)PK_COUNT(plan, AXES), sizeof *s->axes);
    s->input_buffer = pk_host_zeros(inputs, sizeof *s->input_buffer);
    s->input_bytes = pk_host_zeros(inputs, sizeof *s->input_bytes);
    s->input = pk_host_zeros(inputs, sizeof *s->input);
    s->repeats = pk_host_zeros(nodes, sizeof *s->repeats);
    s->binding_count = PK_COUNT(plan, ENTRIES) * PK_BINDINGS;
    s->bindings = pk_host_zeros((uint64_t)s->binding_count, sizeof *s->bindings);
    if (s->flags & PK_FLAG_PROFILE) s->profile = pk_host_zeros(nodes, sizeof *s->profile);
    if (!s->capacity || !s->symbols || !s->needed || !s->slot || !s->slot_bytes || !s->slot_at ||
        !s->slot_room || !s->axes || !s->input_buffer || !s->input_bytes || !s->input || !s->repeats ||
        !s->bindings || (!s->profile && (s->flags & PK_FLAG_PROFILE)))
        return 0;
    for (int32_t i = 0; i < PK_COUNT(plan, ENTRIES) * PK_BINDINGS; i++) {
        pk_binding *b = &s->bindings[i];
        b->symbols = pk_host_zeros(symbols, sizeof *b->symbols);
        b->input = pk_host_zeros(inputs, sizeof *b->input);
        b->views = pk_host_zeros((uint64_t)plan->entry_info[i / PK_BINDINGS].uses, sizeof *b->views);
        b->calls = pk_host_zeros(plan->entries[i / PK_BINDINGS].nodes, sizeof *b->calls);
        if (!b->symbols || !b->input || !b->views || !b->calls) return 0;
    }
    return 1;
}

pk_status pk_session_create(const pk_plan *plan, pk_params *params, int32_t threads, int32_t flags,
                            pk_session **session, pk_error *error) {
    pk_error_clear(error);
    if (!plan || !session || threads < 0) return pk_error_at(error, PK_BAD_CALL, -1, -1, "no plan given");
    *session = NULL;
    if (params ? !same_ranges(plan, params->plan) : PK_COUNT(plan, RANGES) > 0)
        return pk_error_at(error, PK_BAD_CALL, -1, -1, "the params are of a plan with other ranges");
    pk_session *s = pk_host_zeros(1, sizeof *s);
    if (!s) return pk_error_at(error, PK_NO_MEMORY, -1, -1, "no memory for a session");
    s->plan = plan;
    s->params = params;
    s->flags = flags;
    atomic_init(&s->stop, 0);
    const int taken = take_tables(s) && (!(flags & PK_FLAG_POISON) || pk_poison_create(s));
    pk_status status =
        taken ? pk_backend_table.open(threads, flags, &s->device, &s->proto) : PK_NO_MEMORY;
    if (status != PK_OK) {
        pk_session_free(s);
        return pk_error_at(error, status, -1, -1, "no memory or threads for a session");
    }
    *session = s;
    return PK_OK;
}

static void give_memory(pk_session *s) {
    if (s->mirror && s->mirror != s->host) pk_backend_table.give(s->mirror);
    if (s->host && pk_backend_table.unified) pk_backend_table.give(s->host);
    if (s->host && !pk_backend_table.unified) pk_release(s->host);
    if (s->arena) pk_backend_table.give(s->arena);
    s->host = s->mirror = s->arena = NULL;
    s->host_bytes = s->arena_bytes = 0;
}

void pk_session_free(pk_session *s) {
    if (!s) return;
    give_memory(s);
    pk_poison_free(s);
    if (s->device) pk_backend_table.close(s->device);
    for (int32_t i = 0; s->bindings && i < s->binding_count; i++) {
        pk_release(s->bindings[i].symbols);
        pk_release(s->bindings[i].input);
        pk_release(s->bindings[i].views);
        pk_release(s->bindings[i].calls);
    }
    pk_release(s->bindings);
    pk_release(s->capacity);
    pk_release(s->symbols);
    pk_release(s->needed);
    pk_release(s->slot);
    pk_release(s->slot_bytes);
    pk_release(s->slot_at);
    pk_slot_room_free(s->slot_room);
    pk_release(s->axes);
    pk_release(s->input_buffer);
    pk_release(s->input_bytes);
    pk_release(s->input);
    pk_release(s->repeats);
    pk_release(s->profile);
    pk_release(s);
}

/* ---- reserve ---- */
/* Adds a piece at a 64-byte boundary; 0 when the sum is too large. */
static int add_piece(int64_t *sum, int64_t bytes, int64_t *place) {
    if (bytes < 0 || bytes > PK_MAX_BYTES) return 0;
    *place = *sum;
    *sum += pk_aligned(bytes);
    return *sum <= PK_MAX_BYTES;
}

/* Sizes of the slots: the largest tensor in each, at the capacities. */
static int size_slots(pk_session *s) {
    const pk_plan *plan = s->plan;
    memset(s->slot_bytes, 0, (size_t)PK_COUNT(plan, SLOTS) * sizeof *s->slot_bytes);
    for (int32_t i = 0; i < PK_COUNT(plan, TENSORS); i++) {
        const pk_plan_tensor *t = &plan->tensors[i];
        if (t->storage != PK_AT_SLOT) continue;
        const int64_t bytes = pk_tensor_bytes(t, s->capacity);
        if (bytes < 0) return 0;
        if (bytes + (int64_t)t->offset > s->slot_bytes[t->place]) s->slot_bytes[t->place] = bytes + (int64_t)t->offset;
    }
    return 1;
}

/* Places everything; with `base` NULL only the sums are made. */
static int place_host(pk_session *s, uint8_t *host, uint8_t *mirror, int64_t *sum) {
    const pk_plan *plan = s->plan;
    int64_t at;
    *sum = 0;
    for (int32_t i = 0; i < PK_COUNT(plan, AXES); i++) {
        const pk_axis_info *info = &plan->axis_info[i];
        const int64_t sequences = s->capacity[info->sequences], total = s->capacity[info->total];
        const int64_t counts[6] = {sequences + 1, sequences, s->capacity[info->longest] + 1, total, total, total};
        for (int32_t part = 0; part < 6; part++) {
            if (!add_piece(sum, 8 * counts[part], &at)) return 0;
            s->axes[i].part[part] = host ? (int64_t *)(host + at) : NULL;
            s->axes[i].seen[part] = host ? (int64_t *)(mirror + at) : NULL;
        }
    }
    if (!add_piece(sum, 8 * (int64_t)PK_COUNT(plan, ARGUMENTS), &at)) return 0;
    s->argument = host ? host + at : NULL;
    for (int32_t i = 0; i < PK_COUNT(plan, INPUTS); i++) {
        s->input_bytes[i] = pk_tensor_bytes(&plan->tensors[plan->inputs[i].tensor], s->capacity);
        if (!add_piece(sum, s->input_bytes[i], &at)) return 0;
        s->input_buffer[i] = host ? host + at : NULL;
    }
    return 1;
}

static int take_memory(pk_session *s) {
    const int unified = pk_backend_table.unified;
    int64_t host, arena;
    if (!place_host(s, NULL, NULL, &host) || !size_slots(s)) return 0;
    if (!pk_place_slots(s->slot_room, s->plan->slots, s->slot_bytes, s->slot_at, &arena)) return 0;
    s->host = unified ? pk_backend_table.take((uint64_t)host) : pk_host_zeros((uint64_t)host, 1);
    s->mirror = unified ? s->host : pk_backend_table.take((uint64_t)host);
    s->arena = pk_backend_table.take((uint64_t)arena);
    if (!s->host || !s->mirror || !s->arena) return 0;
    s->host_bytes = host;
    s->arena_bytes = arena;
    for (int32_t i = 0; i < PK_COUNT(s->plan, SLOTS); i++) s->slot[i] = s->arena + s->slot_at[i];
    return place_host(s, s->host, s->mirror, &host);
}

static int is_given(uint32_t kind) {
    return kind == PK_SYM_BATCH || kind == PK_SYM_TOTAL || kind == PK_SYM_LONGEST || kind == PK_SYM_PAIRS;
}

pk_status pk_session_reserve(pk_session *s, const int64_t *values, int32_t count, pk_error *error) {
    pk_error_clear(error);
    if (!s || count != PK_COUNT(s->plan, SYMBOLS) || !values)
        return pk_error_at(error, PK_BAD_CALL, -1, -1, "one capacity for each symbol is wanted");
    const pk_plan *plan = s->plan;
    for (int32_t i = 0; i < count; i++) {
        if (!is_given(plan->symbols[i].kind)) continue;
        if (values[i] < 0 || values[i] > PK_MAX_SIZE)
            return pk_error_at(error, PK_BAD_CALL, -1, -1, "capacity %lld for %s", (long long)values[i],
                               pk_text(plan, plan->symbols[i].name));
        if (values[i] > s->capacity[i]) s->capacity[i] = values[i];
    }
    give_memory(s);
    for (int32_t i = 0; i < PK_COUNT(plan, ENTRIES) * PK_BINDINGS; i++) s->bindings[i].valid = 0;
    if (pk_derive_symbols(plan, s->capacity, 0) && take_memory(s)) return PK_OK;
    give_memory(s);
    memset(s->capacity, 0, (size_t)count * sizeof *s->capacity);
    return pk_error_at(error, PK_NO_MEMORY, -1, -1, "no memory for batches of this size");
}

pk_status pk_session_needed(const pk_session *s, int64_t *values, int32_t count, pk_error *error) {
    pk_error_clear(error);
    if (!s || !values || count != PK_COUNT(s->plan, SYMBOLS))
        return pk_error_at(error, PK_BAD_CALL, -1, -1, "one number for each symbol is wanted");
    memcpy(values, s->needed, (size_t)count * sizeof *values);
    return PK_OK;
}

/* ---- run ---- */
/* Says how large each output will be, and refuses places that are too small before anything runs. */
static pk_status check_outputs(const pk_session *s, const pk_step *step, const pk_binding *b, pk_error *error) {
    const pk_plan_entry *e = &s->plan->entries[step->entry];
    const pk_entry_info *info = &s->plan->entry_info[step->entry];
    int32_t small = -1;
    if (!step->outputs) return PK_OK;
    if (step->n_outputs != (int32_t)e->outputs)
        return pk_error_at(error, PK_BAD_CALL, -1, -1, "entry %s has %u outputs, %d places given",
                           pk_text(s->plan, e->name), e->outputs, step->n_outputs);
    for (int32_t k = 0; k < step->n_outputs; k++) {
        const pk_view *v = &b->views[info->output_use + k];
        pk_buffer *to = &step->outputs[k];
        to->written = pk_count(v) * pk_dtype_bytes[v->dtype];
        to->rows = v->ndim ? v->dim[0] : 1;
        if (to->data && to->written > to->bytes) small = k;
    }
    if (small < 0) return PK_OK;
    memcpy(s->needed, s->symbols, (size_t)PK_COUNT(s->plan, SYMBOLS) * sizeof *s->needed);
    return pk_error_at(error, PK_TOO_SMALL, -1, info->use[info->output_use + small],
                       "output %d has %lld bytes, its place %lld", small, (long long)step->outputs[small].written,
                       (long long)step->outputs[small].bytes);
}

static pk_status deliver(const pk_session *s, const pk_step *step, const pk_binding *b, pk_error *error) {
    const pk_plan_entry *e = &s->plan->entries[step->entry];
    const pk_entry_info *info = &s->plan->entry_info[step->entry];
    pk_status status = PK_OK;
    for (uint32_t k = 0; step->results && k < e->fetches; k++) {
        const pk_view *v = &b->views[info->fetch_use + (int32_t)k];
        double value[1];
        if (!pk_backend_table.unified)
            status = pk_backend_table.copy(s->device, value, v->data, 0, pk_dtype_bytes[v->dtype]);
        step->results[k] = pk_value(pk_backend_table.unified ? v->data : value, v->dtype);
    }
    for (int32_t k = 0; step->outputs && k < step->n_outputs && status == PK_OK; k++) {
        const pk_view *v = &b->views[info->output_use + k];
        const pk_buffer *to = &step->outputs[k];
        if (to->data && to->written)
            status = pk_backend_table.copy(s->device, to->data, v->data, 0, (uint64_t)to->written);
    }
    if (status != PK_OK) return pk_error_at(error, status, -1, -1, "results could not be copied from the device");
    int32_t halt = 0;
    if (info->halt_use >= 0)
        status = pk_backend_table.copy(s->device, &halt, b->views[info->halt_use].data, 0, sizeof halt);
    if (status == PK_OK && halt)
        return pk_error_at(error, PK_HALTED, -1, e->halt, "entry %s halted", pk_text(s->plan, e->name));
    return status;
}

static pk_status run_step(pk_session *s, const pk_step *step, pk_error *error) {
    pk_binding *binding;
    int updated = 0;
    pk_status status = pk_bind(s, step, error);
    if (status == PK_OK) status = pk_views(s, step->entry, &binding, error);
    if (status == PK_OK) status = check_outputs(s, step, binding, error);
    if (status != PK_OK) return status;
    status = pk_exec(s, step, binding, &updated, error);
    if (updated) atomic_fetch_add(&s->params->version, 1);
    return status == PK_OK ? deliver(s, step, binding, error) : status;
}

pk_status pk_session_run(pk_session *s, const pk_step *steps, int32_t count, int32_t *done, pk_error *error) {
    int32_t ended = 0;
    pk_status status = PK_OK;
    pk_error_clear(error);
    if (done) *done = 0;
    if (!s || count < 0 || (count && !steps)) return pk_error_at(error, PK_BAD_CALL, -1, -1, "no steps given");
    atomic_store(&s->stop, 0);
    pk_step_begins();
    for (int32_t i = 0; i < count && status == PK_OK; i++) {
        if (atomic_load_explicit(&s->stop, memory_order_relaxed)) {
            status = pk_error_at(error, PK_INTERRUPTED, -1, -1, "interrupted between steps");
        } else {
            status = run_step(s, &steps[i], error);
            if (status == PK_OK || status == PK_HALTED) ended++;
        }
        if (status != PK_OK && error) error->step = i;
    }
    pk_step_ends(ended);
    if (done) *done = ended;
    return status;
}

/* ---- the rest ---- */
void pk_interrupt(pk_session *s, int32_t urgent) {
    if (s) atomic_store(&s->stop, urgent ? 2 : 1);
}

int32_t pk_session_profile(const pk_session *s, pk_profile_row *rows, int32_t count) {
    if (!s || !s->profile) return 0;
    const int32_t nodes = PK_COUNT(s->plan, NODES);
    for (int32_t i = 0; rows && i < nodes && i < count; i++) {
        rows[i] = s->profile[i];
        rows[i].node = i;
    }
    return nodes;
}

int64_t pk_session_bytes(const pk_session *s) { return s ? s->host_bytes + s->arena_bytes : 0; }

int64_t pk_session_repeats(const pk_session *s, int32_t node) {
    return s && node >= 0 && node < PK_COUNT(s->plan, NODES) ? s->repeats[node] : -1;
}
