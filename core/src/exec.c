/* Runs the nodes of an entry: kernels under their guards, scans, decodes. */
#include <string.h>
#include <time.h>

#include "core.h"

typedef struct run {
    pk_session *session;
    const pk_step *step;
    const pk_plan_entry *entry;
    const pk_entry_info *info;
    pk_binding *binding;
    pk_error *error;
    int updated;
} run;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int64_t base_row(const run *r, int32_t axis) {
    return axis >= 0 && r->step->first_rows ? r->step->first_rows[axis] : 0;
}

/* Index of the output's first row in the whole batch.  Rows of a scan's step count as the packed rows they are, so the
 * kernel draws the same numbers when it is run once on all steps; other rows inside a loop count on by 2^32 a repetition. */
static int64_t random_first(const run *r, const pk_node_info *n, int in_loop) {
    const pk_session *s = r->session;
    int64_t first = 0;
    if (n->random_base == PK_BASE_SAMPLE) first = r->step->first_sample;
    if (n->random_base == PK_BASE_AXIS) first = base_row(r, n->random_axis);
    if (n->random_base == PK_BASE_STEP)
        first = base_row(r, n->random_axis) + s->axes[n->random_axis].part[PK_PART_STARTS][s->loop_step];
    if (in_loop && n->random_base != PK_BASE_STEP) first += s->loop_step << 32;
    return (int64_t)((uint64_t)first * (uint64_t)(n->random_base ? n->random_rows : 1));
}

static int32_t whole(const pk_session *s, const pk_view *view) {
    int32_t value = 0;
    if (pk_backend_table.unified) memcpy(&value, view->data, sizeof value);
    else pk_backend_table.copy(s->device, &value, view->data, 0, sizeof value);
    return value;
}

static void count_profile(const run *r, int32_t node, const pk_call *call, double seconds) {
    pk_profile_row *row = &r->session->profile[node];
    for (int32_t i = 0; i < call->n_in + call->n_out; i++) {
        const pk_view *v = &call->in[i];
        if (v->data) row->bytes += (double)(pk_count(v) * pk_dtype_bytes[v->dtype]);
    }
    row->calls++;
    row->seconds += seconds;
}

static pk_status fail_kernel(const run *r, int32_t node, pk_status status) {
    pk_error *e = r->error;
    if (!e) return status;
    const char *text = pk_text(r->session->plan, r->session->plan->nodes[node].signature);
    size_t length = strcspn(text, "(");
    if (length >= sizeof e->op) length = sizeof e->op - 1;
    memcpy(e->op, text, length);
    e->op[length] = 0;
    e->status = (int32_t)status;
    e->node = node;
    if (!e->message[0]) return pk_error_at(e, status, node, -1, "the kernel failed");
    return status;
}

/* The end of the device's work so far; the error names the node whose kernel found bad data. */
static pk_status wait_for(const run *r) {
    const pk_call *at = NULL;
    if (!pk_backend_table.finish) return PK_OK;
    const pk_status status = pk_backend_table.finish(r->session->device, &at, r->error);
    const pk_call *calls = r->binding->calls;
    if (status == PK_OK || !at || at < calls || at >= calls + r->entry->nodes) return status;
    return fail_kernel(r, (int32_t)r->entry->first_node + (int32_t)(at - calls), status);
}

static pk_status run_kernel(run *r, int32_t node, int in_loop) {
    pk_session *s = r->session;
    const int32_t at = node - (int32_t)r->entry->first_node;
    const pk_plan_node *n = &s->plan->nodes[node];
    const pk_node_info *info = &s->plan->node_info[node];
    pk_call *call = &r->binding->calls[at];
    if (atomic_load_explicit(&s->stop, memory_order_relaxed) > 1)
        return pk_error_at(r->error, PK_INTERRUPTED, node, -1, "interrupted inside a step");
    if (in_loop) pk_views_step(s, r->info, r->binding, at);
    if (n->guard >= 0) {
        const pk_view *guard = &r->binding->views[r->info->guard_use[at]];
        if (!pk_backend_table.unified) call->guard = guard->data;
        else if (whole(s, guard) == 0) return PK_OK;
    }
    call->error = r->error;
    if (n->stream) {
        call->random.step = (uint64_t)r->step->step;
        call->random.first = random_first(r, info, in_loop);
    }
    const double start = s->profile ? now() : 0;
    pk_status status = info->fn(call);
    if (s->profile && status == PK_OK) status = wait_for(r);
    if (s->profile) count_profile(r, node, call, now() - start);
    if (status != PK_OK) return fail_kernel(r, node, status);
    if (n->flags & PK_NODE_UPDATES) r->updated = 1;
    if (s->flags & PK_FLAG_POISON) {
        status = pk_poison_check(s, node, call, r->error);
        if (status != PK_OK) return fail_kernel(r, node, status);
    }
    return PK_OK;
}

static pk_status run_body(run *r, int32_t loop) {
    const int32_t body = (int32_t)r->session->plan->nodes[loop].body;
    for (int32_t i = loop + 1; i <= loop + body; i++) {
        pk_status status = run_kernel(r, i, 1);
        if (status != PK_OK) return status;
    }
    r->session->repeats[loop]++;
    return PK_OK;
}

static pk_status run_scan(run *r, int32_t node) {
    pk_session *s = r->session;
    const pk_plan_node *n = &s->plan->nodes[node];
    const pk_axis_data *axis = &s->axes[n->axis];
    const int32_t rows = s->plan->axis_info[n->axis].step_rows;
    const int64_t *starts = axis->part[PK_PART_STARTS];
    const int64_t saved = rows >= 0 ? s->symbols[rows] : 0;
    pk_status status = PK_OK;
    for (int64_t k = 0; k < axis->longest && status == PK_OK; k++) {
        const int64_t t = n->flags & PK_NODE_REVERSED ? axis->longest - 1 - k : k;
        s->loop_step = t;
        if (rows >= 0) s->symbols[rows] = starts[t + 1] - starts[t];
        status = run_body(r, node);
    }
    if (rows >= 0) s->symbols[rows] = saved;
    return status;
}

static pk_status run_decode(run *r, int32_t node) {
    pk_session *s = r->session;
    const pk_plan_node *n = &s->plan->nodes[node];
    const pk_view *flag = &r->binding->views[r->info->flag_use[node - (int32_t)r->entry->first_node]];
    for (int64_t t = 0; t < n->limit; t++) {
        s->loop_step = t;
        pk_status status = run_body(r, node);
        if (status != PK_OK) return status;
        if (whole(s, flag) != 0) break;
    }
    return PK_OK;
}

static pk_status run_loop(run *r, int32_t node) {
    pk_session *s = r->session;
    const int32_t guard = r->info->guard_use[node - (int32_t)r->entry->first_node];
    s->repeats[node] = 0;
    if (guard >= 0 && whole(s, &r->binding->views[guard]) == 0) return PK_OK;
    return s->plan->nodes[node].kind == PK_NODE_SCAN ? run_scan(r, node) : run_decode(r, node);
}

pk_status pk_exec(pk_session *s, const pk_step *step, pk_binding *binding, int *updated, pk_error *error) {
    const pk_plan *plan = s->plan;
    run r = {s, step, &plan->entries[step->entry], &plan->entry_info[step->entry], binding, error, 0};
    const int32_t end = (int32_t)(r.entry->first_node + r.entry->nodes);
    pk_status status = s->flags & PK_FLAG_POISON ? pk_poison_start(s, error) : PK_OK;
    for (int32_t i = (int32_t)r.entry->first_node; i < end && status == PK_OK; i++) {
        const pk_plan_node *n = &plan->nodes[i];
        status = n->kind == PK_NODE_KERNEL ? run_kernel(&r, i, 0) : run_loop(&r, i);
        i += (int32_t)n->body;
        if (status == PK_OK && s->flags & PK_FLAG_POISON) status = pk_poison_dead(s, step->entry, i, error);
    }
    *updated = r.updated;
    const pk_status end_status = wait_for(&r);
    return status == PK_OK ? end_status : status;
}
