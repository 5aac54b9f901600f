/* Binds a batch: finds its sizes, compares them with the session's room, then places offsets, data and arguments.  Nothing
 * is written before every size is known to fit. */
#include <math.h>
#include <string.h>

#include "core.h"

#define FAIL(tensor, ...) return pk_error_at(error, PK_BAD_CALL, -1, tensor, __VA_ARGS__)

typedef struct binding_of {
    pk_session *session;
    const pk_plan *plan;
    const pk_plan_entry *entry;
    const pk_entry_info *info;
    const pk_step *step;
    pk_error *error;
} binder;

static const char *input_name(const pk_plan *plan, int32_t input) { return pk_text(plan, plan->inputs[input].name); }
static int32_t input_at(const binder *b, int32_t k) { return b->plan->refs[b->entry->first_input + (uint32_t)k]; }

/* The place of an input among the step's columns. */
static const pk_column *column_of(const binder *b, int32_t input) {
    if (b->step->table) return &b->step->table->columns[input];
    for (int32_t k = 0; k < b->step->n_columns; k++)
        if (input_at(b, k) == input) return &b->step->columns[k];
    return NULL;
}

/* ---- sizes of a batch given as columns ---- */
static pk_status size_axis(const binder *b, int32_t axis) {
    const pk_plan *plan = b->plan;
    pk_axis_data *data = &b->session->axes[axis];
    pk_error *error = b->error;
    const int32_t input = plan->axes[axis].input, tensor = plan->inputs[input].tensor;
    const pk_column *c = column_of(b, input);
    const char *name = input_name(plan, input);
    const int32_t parent = plan->axes[axis].parent;
    const int64_t sequences = parent < 0 ? b->step->n : b->session->axes[parent].total;
    if (!c->offsets || c->sequences != sequences)
        FAIL(tensor, "input %s has %lld sequences, the batch %lld", name, (long long)(c->offsets ? c->sequences : 0),
             (long long)sequences);
    if (c->offsets[0] != 0) FAIL(tensor, "offsets of input %s start at %lld", name, (long long)c->offsets[0]);
    int64_t longest = 0;
    for (int64_t i = 0; i < sequences; i++) {
        const int64_t from = c->offsets[i], to = c->offsets[i + 1];
        if (to < from || to > c->rows) {
            if (error) error->row = i;
            FAIL(tensor, "offsets of input %s fall or leave its %lld rows at sequence %lld", name, (long long)c->rows,
                 (long long)i);
        }
        if (to - from > longest) longest = to - from;
    }
    if (c->offsets[sequences] != c->rows)
        FAIL(tensor, "offsets of input %s end at %lld, it has %lld rows", name, (long long)c->offsets[sequences],
             (long long)c->rows);
    data->sequences = sequences;
    data->total = c->rows;
    data->longest = longest;
    return PK_OK;
}

static pk_status check_column(const binder *b, int32_t input) {
    const pk_plan *plan = b->plan;
    pk_error *error = b->error;
    const int32_t tensor = plan->inputs[input].tensor;
    const pk_plan_tensor *t = &plan->tensors[tensor];
    const pk_column *c = column_of(b, input);
    const char *name = input_name(plan, input);
    if (c->rows < 0 || c->rows > PK_MAX_SIZE) FAIL(tensor, "input %s has %lld rows", name, (long long)c->rows);
    if (!c->data && c->rows && (b->info->input_state[input] & 2)) FAIL(tensor, "input %s has no data", name);
    if ((uintptr_t)c->data % pk_dtype_bytes[t->dtype]) FAIL(tensor, "input %s is not aligned to its type", name);
    if (t->axis >= 0) {
        const pk_column *first = column_of(b, plan->axes[t->axis].input);
        if (first == c) return PK_OK;
        if (!c->offsets || c->sequences != first->sequences || c->rows != first->rows ||
            memcmp(c->offsets, first->offsets, (size_t)(c->sequences + 1) * sizeof(int64_t)) != 0)
            FAIL(tensor, "input %s has other offsets than input %s of the same axis", name,
                 input_name(plan, plan->axes[t->axis].input));
        return PK_OK;
    }
    const int64_t rows = t->dim[0].coefficient * (t->dim[0].symbol < 0 ? 1 : b->step->n);
    if (c->rows != rows) FAIL(tensor, "input %s has %lld rows, %lld wanted", name, (long long)c->rows, (long long)rows);
    return PK_OK;
}

static pk_status size_columns(const binder *b) {
    pk_error *error = b->error;
    if (b->step->n_columns != (int32_t)b->entry->inputs || (b->entry->inputs && !b->step->columns))
        FAIL(-1, "entry %s takes %u columns, %d given", pk_text(b->plan, b->entry->name), b->entry->inputs,
             b->step->n_columns);
    for (int32_t k = 0; k < b->step->n_columns; k++)
        if (b->step->columns[k].rows < 0 || b->step->columns[k].rows > PK_MAX_SIZE)
            FAIL(-1, "column %d has %lld rows", k, (long long)b->step->columns[k].rows);
    pk_status status;
    for (int32_t axis = 0; axis < PK_COUNT(b->plan, AXES); axis++)
        if ((b->info->axis_parts[axis] & PK_AXIS_NEEDED) && (status = size_axis(b, axis)) != PK_OK) return status;
    for (int32_t k = 0; k < b->step->n_columns; k++)
        if ((status = check_column(b, input_at(b, k))) != PK_OK) return status;
    return PK_OK;
}

/* ---- sizes of a batch given as row numbers of a table ---- */
/* Rows of the axis' data that sample `row` has: one run, since nested data lie in the order of their parents. */
static void span(const binder *b, int32_t axis, int64_t row, int64_t *from, int64_t *to) {
    const int64_t *offsets = b->step->table->columns[b->plan->axes[axis].input].offsets;
    if (b->plan->axes[axis].parent < 0) {
        *from = row;
        *to = row + 1;
    } else {
        span(b, b->plan->axes[axis].parent, row, from, to);
    }
    *from = offsets[*from];
    *to = offsets[*to];
}

/* The sequences of the axis that sample `row` has. */
static void sequences_of(const binder *b, int32_t axis, int64_t row, int64_t *from, int64_t *to) {
    *from = row;
    *to = row + 1;
    if (b->plan->axes[axis].parent >= 0) span(b, b->plan->axes[axis].parent, row, from, to);
}

static void size_table_axis(const binder *b, int32_t axis) {
    pk_axis_data *data = &b->session->axes[axis];
    const int64_t *offsets = b->step->table->columns[b->plan->axes[axis].input].offsets;
    data->sequences = data->total = data->longest = 0;
    for (int64_t i = 0; i < b->step->n; i++) {
        int64_t from, to;
        sequences_of(b, axis, b->step->rows[i], &from, &to);
        data->sequences += to - from;
        data->total += offsets[to] - offsets[from];
        for (int64_t s = from; s < to; s++)
            if (offsets[s + 1] - offsets[s] > data->longest) data->longest = offsets[s + 1] - offsets[s];
    }
}

static pk_status size_table(const binder *b) {
    const pk_table *table = b->step->table;
    pk_error *error = b->error;
    if (table->plan != b->plan) FAIL(-1, "the table belongs to another plan");
    if (!b->step->rows && b->step->n) FAIL(-1, "a table without row numbers");
    for (int64_t i = 0; i < b->step->n; i++)
        if (b->step->rows[i] < 0 || b->step->rows[i] >= table->rows) {
            if (error) error->row = i;
            FAIL(-1, "row number %lld of a table of %lld rows", (long long)b->step->rows[i], (long long)table->rows);
        }
    for (int32_t k = 0; k < (int32_t)b->entry->inputs; k++) {
        const int32_t input = input_at(b, k);
        const pk_column *c = &table->columns[input];
        if (c->rows < 0) FAIL(b->plan->inputs[input].tensor, "the table has no column %s", input_name(b->plan, input));
        if (!c->data && c->rows && (b->info->input_state[input] & 2))
            FAIL(b->plan->inputs[input].tensor, "column %s has no data", input_name(b->plan, input));
    }
    for (int32_t axis = 0; axis < PK_COUNT(b->plan, AXES); axis++)
        if (b->info->axis_parts[axis] & PK_AXIS_NEEDED) size_table_axis(b, axis);
    return PK_OK;
}

/* ---- symbols ---- */
static void set_symbols(const binder *b) {
    pk_session *s = b->session;
    memset(s->symbols, 0, (size_t)PK_COUNT(b->plan, SYMBOLS) * sizeof *s->symbols);
    s->symbols[b->plan->batch] = b->step->n;
    for (int32_t axis = 0; axis < PK_COUNT(b->plan, AXES); axis++) {
        if (!(b->info->axis_parts[axis] & PK_AXIS_NEEDED)) continue;
        s->symbols[b->plan->axis_info[axis].total] = s->axes[axis].total;
        s->symbols[b->plan->axis_info[axis].longest] = s->axes[axis].longest;
    }
}

static pk_status check_capacity(const binder *b) {
    pk_session *s = b->session;
    pk_error *error = b->error;
    const int32_t count = PK_COUNT(b->plan, SYMBOLS);
    if (!pk_derive_symbols(b->plan, s->symbols, 0)) FAIL(-1, "the batch is too large for any session");
    int32_t small = s->host ? -1 : b->plan->batch;
    for (int32_t i = 0; i < count && small < 0; i++)
        if (s->symbols[i] > s->capacity[i]) small = i;
    if (small < 0) return PK_OK;
    memcpy(s->needed, s->symbols, (size_t)count * sizeof *s->needed);
    for (int32_t i = 0; i < count; i++) {
        /* The exact number of pairs may not be known yet: its bound is asked for. */
        const pk_plan_symbol *p = &b->plan->symbols[i];
        if (p->kind == PK_SYM_PAIRS && s->needed[i] == 0) pk_derive_symbols(b->plan, s->needed, 1);
    }
    return pk_error_at(error, PK_TOO_SMALL, -1, -1, "the batch has %s = %lld, the session has room for %lld",
                       pk_text(b->plan, b->plan->symbols[small].name), (long long)s->symbols[small],
                       (long long)s->capacity[small]);
}

static int count_pairs(const binder *b) {
    int found = 0;
    for (int32_t i = 0; i < PK_COUNT(b->plan, SYMBOLS); i++) {
        const pk_plan_symbol *p = &b->plan->symbols[i];
        if (p->kind != PK_SYM_PAIRS) continue;
        found = 1;
        if (!(b->info->axis_parts[p->a] & b->info->axis_parts[p->b] & PK_AXIS_NEEDED)) continue;
        const pk_axis_data *x = &b->session->axes[p->a], *y = &b->session->axes[p->b];
        const int64_t *ox = x->part[PK_PART_OFFSETS], *oy = y->part[PK_PART_OFFSETS];
        int64_t sum = 0;
        for (int64_t k = 0; k < x->sequences && sum <= PK_MAX_SIZE; k++) {
            int64_t product;
            if (__builtin_mul_overflow(ox[k + 1] - ox[k], oy[k + 1] - oy[k], &product) || product > PK_MAX_SIZE)
                product = PK_MAX_SIZE + 1;
            sum += product;
        }
        b->session->symbols[i] = sum;
    }
    return found;
}

/* ---- placing ---- */
/* Lets kernels see what was written to the host block. */
static pk_status publish(const pk_session *s, const void *data, int64_t bytes) {
    if (s->mirror == s->host || bytes == 0) return PK_OK;
    return pk_backend_table.copy(s->device, s->mirror + ((const uint8_t *)data - s->host), data, 0, (uint64_t)bytes);
}

static void place_offsets(const binder *b, int32_t axis) {
    pk_axis_data *data = &b->session->axes[axis];
    const int64_t *offsets = column_of(b, b->plan->axes[axis].input)->offsets;
    int64_t *out = data->part[PK_PART_OFFSETS];
    if (!b->step->table) {
        memcpy(out, offsets, (size_t)(data->sequences + 1) * sizeof *out);
        return;
    }
    int64_t row = 0, count = 0;
    out[0] = 0;
    for (int64_t i = 0; i < b->step->n; i++) {
        int64_t from, to;
        sequences_of(b, axis, b->step->rows[i], &from, &to);
        for (int64_t s = from; s < to; s++) out[++count] = row += offsets[s + 1] - offsets[s];
    }
}

static pk_status place_axes(const binder *b) {
    pk_session *s = b->session;
    for (int32_t axis = 0; axis < PK_COUNT(b->plan, AXES); axis++) {
        const uint8_t parts = b->info->axis_parts[axis];
        pk_axis_data *data = &s->axes[axis];
        if (!(parts & PK_AXIS_NEEDED)) continue;
        pk_axis_fill(data, parts);
        const int64_t counts[6] = {data->sequences + 1, data->sequences, data->longest + 1,
                                   data->total, data->total, data->total};
        for (int32_t part = 0; part < 6; part++)
            if ((parts >> part) & 1u) {
                pk_status status = publish(s, data->part[part], counts[part] * (int64_t)sizeof(int64_t));
                if (status != PK_OK) return status;
            }
    }
    return PK_OK;
}

static int64_t gather(const binder *b, int32_t input) {
    const pk_plan_tensor *t = &b->plan->tensors[b->plan->inputs[input].tensor];
    const uint8_t *from = b->step->table->columns[input].data;
    uint8_t *to = b->session->input_buffer[input];
    const int64_t row = pk_row_bytes(t, b->session->symbols);
    if (t->axis < 0) {
        for (int64_t i = 0; i < b->step->n; i++)
            memcpy(to + i * row, from + b->step->rows[i] * row, (size_t)row);
        return b->step->n * row;
    }
    int64_t bytes = 0;
    for (int64_t i = 0; i < b->step->n; i++) {
        int64_t first, last;
        span(b, t->axis, b->step->rows[i], &first, &last);
        if (last > first) memcpy(to + bytes, from + first * row, (size_t)((last - first) * row));
        bytes += (last - first) * row;
    }
    return bytes;
}

/* Columns are read where they are when kernels can; rows of a table are gathered. */
static pk_status place_input(const binder *b, int32_t input) {
    pk_session *s = b->session;
    const pk_plan_tensor *t = &b->plan->tensors[b->plan->inputs[input].tensor];
    const pk_column *c = column_of(b, input);
    const int fixed = t->axis < 0 && t->dim[0].symbol < 0;
    const int aligned = (uintptr_t)c->data % pk_dtype_bytes[t->dtype] == 0;
    s->input[input] = s->mirror + (s->input_buffer[input] - s->host);
    if (!c->data || c->rows == 0) return PK_OK;
    if (b->step->table && !fixed) return publish(s, s->input_buffer[input], gather(b, input));
    if (pk_backend_table.unified && aligned) {
        s->input[input] = c->data;
        return PK_OK;
    }
    const int64_t bytes = pk_tensor_bytes(t, s->symbols);
    memcpy(s->input_buffer[input], c->data, (size_t)bytes);
    return publish(s, s->input_buffer[input], bytes);
}

static pk_status place_arguments(const binder *b) {
    pk_error *error = b->error;
    const int32_t count = PK_COUNT(b->plan, ARGUMENTS);
    if (count && !b->step->args) FAIL(-1, "the plan has %d arguments, none given", count);
    for (int32_t i = 0; i < count; i++) {
        const double value = b->step->args[i];
        const int32_t tensor = b->plan->arguments[i].tensor;
        const uint8_t dtype = b->plan->tensors[tensor].dtype;
        uint8_t *to = b->session->argument + 8 * i;
        const double limit = dtype == PK_I64 ? 9007199254740992.0 : 2147483647.0;
        if ((dtype == PK_I64 || dtype == PK_I32) && !(fabs(value) <= limit && value == floor(value)))
            FAIL(tensor, "argument %s = %g is not a whole number of its type",
                 pk_text(b->plan, b->plan->arguments[i].name), value);
        const float f32 = (float)value;
        const int64_t i64 = dtype == PK_I64 ? (int64_t)value : 0;
        const int32_t i32 = dtype == PK_I32 ? (int32_t)value : 0;
        const void *from = dtype == PK_F32 ? (const void *)&f32 : dtype == PK_F64 ? (const void *)&value
                         : dtype == PK_I64 ? (const void *)&i64 : (const void *)&i32;
        memcpy(to, from, pk_dtype_bytes[dtype]);
    }
    return publish(b->session, b->session->argument, 8 * (int64_t)count);
}

pk_status pk_bind(pk_session *s, const pk_step *step, pk_error *error) {
    const pk_plan *plan = s->plan;
    if (step->entry < 0 || step->entry >= PK_COUNT(plan, ENTRIES)) FAIL(-1, "there is no entry %d", step->entry);
    const binder b = {s, plan, &plan->entries[step->entry], &plan->entry_info[step->entry], step, error};
    if (step->n < 0 || step->n > PK_MAX_SIZE) FAIL(-1, "a batch of %lld samples", (long long)step->n);
    pk_status status = step->table ? size_table(&b) : size_columns(&b);
    if (status != PK_OK) return status;
    set_symbols(&b);
    if ((status = check_capacity(&b)) != PK_OK) return status;
    for (int32_t axis = 0; axis < PK_COUNT(plan, AXES); axis++)
        if (b.info->axis_parts[axis] & PK_AXIS_NEEDED) place_offsets(&b, axis);
    if (count_pairs(&b) && (status = check_capacity(&b)) != PK_OK) return status;
    if ((status = place_axes(&b)) != PK_OK) return status;
    for (int32_t k = 0; k < (int32_t)b.entry->inputs; k++)
        if ((status = place_input(&b, input_at(&b, k))) != PK_OK) return status;
    return place_arguments(&b);
}
