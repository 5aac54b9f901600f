/* Tables: columns that stay in memory, checked once, so that a step may gather rows without looking again. */
#include <string.h>

#include "core.h"

#define FAIL(...) return pk_error_at(error, PK_BAD_CALL, -1, plan->inputs[input].tensor, __VA_ARGS__)

static pk_status check_offsets(const pk_plan *plan, int32_t input, const pk_column *c, pk_error *error) {
    const char *name = pk_text(plan, plan->inputs[input].name);
    if (!c->offsets || c->sequences < 0 || c->sequences > PK_MAX_SIZE) FAIL("column %s has no offsets", name);
    if (c->offsets[0] != 0) FAIL("offsets of column %s start at %lld, not 0", name, (long long)c->offsets[0]);
    for (int64_t i = 0; i < c->sequences; i++)
        if (c->offsets[i + 1] < c->offsets[i]) {
            if (error) error->row = i;
            FAIL("offsets of column %s fall at sequence %lld", name, (long long)i);
        }
    if (c->offsets[c->sequences] != c->rows)
        FAIL("offsets of column %s end at %lld, it has %lld rows", name, (long long)c->offsets[c->sequences],
             (long long)c->rows);
    return PK_OK;
}

static pk_status check_column(const pk_plan *plan, int32_t input, const pk_column *c, pk_error *error) {
    const pk_plan_tensor *t = &plan->tensors[plan->inputs[input].tensor];
    const char *name = pk_text(plan, plan->inputs[input].name);
    if (c->rows < 0 || c->rows > PK_MAX_SIZE) FAIL("column %s has %lld rows", name, (long long)c->rows);
    if (!c->data && c->rows && !(t->axis >= 0 && c->offsets)) FAIL("column %s has no data", name);
    if (t->axis >= 0) return check_offsets(plan, input, c, error);
    const int64_t each = t->dim[0].coefficient;
    if (t->dim[0].symbol < 0 ? c->rows != each : each == 0 || c->rows % each)
        FAIL("column %s has %lld rows, %lld wanted%s", name, (long long)c->rows, (long long)each,
             t->dim[0].symbol < 0 ? "" : " for each sample");
    return PK_OK;
}

/* Every column must have the same number of samples; a nested column the sequences that its parent has rows. */
static pk_status check_agreement(const pk_plan *plan, pk_table *table, pk_error *error) {
    table->rows = -1;
    for (int32_t input = 0; input < PK_COUNT(plan, INPUTS); input++) {
        const pk_column *c = &table->columns[input];
        const pk_plan_tensor *t = &plan->tensors[plan->inputs[input].tensor];
        const char *name = pk_text(plan, plan->inputs[input].name);
        if (c->rows < 0 || (t->axis < 0 && t->dim[0].symbol < 0)) continue;
        if (t->axis >= 0) {
            const pk_column *defining = &table->columns[plan->axes[t->axis].input];
            if (defining->rows < 0) FAIL("the table lacks the column that defines the axis of %s", name);
            if (defining->sequences != c->sequences ||
                (defining->offsets != c->offsets &&
                 memcmp(defining->offsets, c->offsets, (size_t)(c->sequences + 1) * sizeof(int64_t)) != 0))
                FAIL("column %s has other offsets than the column that defines its axis", name);
        }
        if (t->axis >= 0 && plan->axes[t->axis].parent >= 0) {
            const pk_column *parent = &table->columns[plan->axes[plan->axes[t->axis].parent].input];
            if (parent->rows != c->sequences)
                FAIL("column %s has %lld sequences, its parent axis %lld rows", name, (long long)c->sequences,
                     (long long)parent->rows);
            continue;
        }
        const int64_t rows = t->axis >= 0 ? c->sequences : c->rows / t->dim[0].coefficient;
        if (table->rows >= 0 && rows != table->rows)
            FAIL("column %s has %lld samples, others have %lld", name, (long long)rows, (long long)table->rows);
        table->rows = rows;
    }
    if (table->rows < 0) table->rows = 0;
    return PK_OK;
}

static pk_status fill(const pk_plan *plan, pk_table *table, const pk_column *columns, int32_t count,
                      const int32_t *inputs, pk_error *error) {
    for (int32_t i = 0; i < PK_COUNT(plan, INPUTS); i++) table->columns[i].rows = -1;
    for (int32_t i = 0; i < count; i++) {
        const int32_t input = inputs[i];
        if (input < 0 || input >= PK_COUNT(plan, INPUTS) || table->columns[input].rows >= 0)
            return pk_error_at(error, PK_BAD_CALL, -1, -1, "column %d is for input %d: unknown or given twice", i, input);
        pk_status status = check_column(plan, input, &columns[i], error);
        if (status != PK_OK) return status;
        table->columns[input] = columns[i];
    }
    return check_agreement(plan, table, error);
}

pk_status pk_table_create(const pk_plan *plan, const pk_column *columns, int32_t count, const int32_t *inputs,
                          pk_table **table, pk_error *error) {
    pk_error_clear(error);
    if (!plan || !table || count < 0 || (count && (!columns || !inputs)))
        return pk_error_at(error, PK_BAD_CALL, -1, -1, "no columns given");
    *table = NULL;
    pk_table *t = pk_host_zeros(1, sizeof *t);
    if (t) t->columns = pk_host_zeros((uint64_t)PK_COUNT(plan, INPUTS), sizeof *t->columns);
    if (!t || !t->columns) {
        pk_table_free(t);
        return pk_error_at(error, PK_NO_MEMORY, -1, -1, "no memory for a table");
    }
    t->plan = plan;
    pk_status status = fill(plan, t, columns, count, inputs, error);
    if (status != PK_OK) {
        pk_table_free(t);
        return status;
    }
    *table = t;
    return PK_OK;
}

void pk_table_free(pk_table *table) {
    if (!table) return;
    pk_release(table->columns);
    pk_release(table);
}
