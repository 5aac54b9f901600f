/* Sizes from symbols.  Everything is checked for overflow; -1 says "too large". */
#include "core.h"

const uint8_t pk_dtype_bytes[10] = {4, 8, 2, 2, 8, 4, 2, 1, 1, 1};
const char *const pk_dtype_names[10] = {"f32", "f64", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "bool"};

static int64_t times(int64_t a, int64_t b, int64_t most) {
    int64_t product;
    return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product) || product > most ? -1 : product;
}

int64_t pk_dim_value(const pk_plan_dim *dim, const int64_t *symbols) {
    return dim->symbol < 0 ? dim->coefficient : times(dim->coefficient, symbols[dim->symbol], PK_MAX_SIZE);
}

/* A zero anywhere makes the product zero, also where the rest would be too large. */
static int64_t count_from(const pk_plan_tensor *t, int32_t first, const int64_t *symbols) {
    int64_t n = 1;
    for (int32_t i = first; i < t->ndim; i++)
        if (pk_dim_value(&t->dim[i], symbols) == 0) return 0;
    for (int32_t i = first; i < t->ndim; i++) n = times(n, pk_dim_value(&t->dim[i], symbols), PK_MAX_BYTES);
    return n;
}

int64_t pk_tensor_count(const pk_plan_tensor *t, const int64_t *symbols) { return count_from(t, 0, symbols); }

int64_t pk_tensor_bytes(const pk_plan_tensor *t, const int64_t *symbols) {
    return times(count_from(t, 0, symbols), pk_dtype_bytes[t->dtype], PK_MAX_BYTES);
}

int64_t pk_row_bytes(const pk_plan_tensor *t, const int64_t *symbols) {
    if (t->ndim == 0) return -1;
    int64_t row = times(count_from(t, 1, symbols), t->dim[0].coefficient, PK_MAX_BYTES);
    return times(row, pk_dtype_bytes[t->dtype], PK_MAX_BYTES);
}

int pk_is_static(const pk_plan_tensor *t) {
    for (int32_t i = 0; i < t->ndim; i++)
        if (t->dim[i].symbol >= 0) return 0;
    return 1;
}

static int64_t sum(const pk_plan_symbol *s, const int64_t *symbols) {
    int64_t a = times(s->ca, symbols[s->a], PK_MAX_SIZE);
    int64_t b = s->b < 0 ? s->cb : times(s->cb, symbols[s->b], PK_MAX_SIZE);
    return a < 0 || b < 0 || a + b > PK_MAX_SIZE ? -1 : a + b;
}

static int64_t pairs_bound(const pk_plan *plan, const pk_plan_symbol *s, const int64_t *symbols) {
    const pk_axis_info *a = &plan->axis_info[s->a], *b = &plan->axis_info[s->b];
    int64_t x = times(symbols[a->total], symbols[b->longest], PK_MAX_SIZE);
    int64_t y = times(symbols[b->total], symbols[a->longest], PK_MAX_SIZE);
    return x < 0 ? y : y < 0 ? x : x < y ? x : y;
}

int pk_derive_symbols(const pk_plan *plan, int64_t *symbols, int bound) {
    for (int32_t i = 0; i < PK_COUNT(plan, SYMBOLS); i++) {
        const pk_plan_symbol *s = &plan->symbols[i];
        int32_t parent;
        switch (s->kind) {
        case PK_SYM_SEQUENCES:
        case PK_SYM_STEP_ROWS:
            parent = plan->axes[s->a].parent;
            symbols[i] = parent < 0 ? symbols[plan->batch] : symbols[plan->axis_info[parent].total];
            break;
        case PK_SYM_SUM: symbols[i] = sum(s, symbols); break;
        case PK_SYM_PRODUCT: symbols[i] = times(s->ca, times(symbols[s->a], symbols[s->b], PK_MAX_SIZE), PK_MAX_SIZE); break;
        case PK_SYM_PAIRS:
            if (bound) symbols[i] = pairs_bound(plan, s, symbols);
            break;
        default: break;
        }
        if (symbols[i] < 0 || symbols[i] > PK_MAX_SIZE) return 0;
    }
    return 1;
}
