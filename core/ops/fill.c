/* fill: one number everywhere. */
#include <string.h>

#include "elementwise.h"
#include "rows.h"

#define PIECE 65536

typedef struct fill {
    char *out;
    float value;
    int add;
    int64_t size;
    char pattern[8];
} fill;

static void float_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const fill *f = context;
    (void)thread, (void)scratch;
    float *out = (float *)f->out + begin;
    const pk_vec v = pk_set1(f->value);
    PK_FOR16(i, c, end - begin) pk_put(out + i, v, c, f->add);
}

static void pattern_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const fill *f = context;
    (void)thread, (void)scratch;
    for (int64_t i = begin; i < end; i++) memcpy(f->out + i * f->size, f->pattern, (size_t)f->size);
}

static pk_status fill_forward(const pk_call *call) {
    const pk_view *y = &call->out[0];
    const double value = call->attr[0].f;
    const int64_t n = pk_count(y), whole = (int64_t)value;
    const pk_status bad = pk_check_add(call, 0);
    if (bad) return bad;
    fill f = {.out = y->data,
              .value = (float)value,
              .add = pk_adds(call, 0),
              .size = pk_element_bytes(y->dtype)};
    switch (y->dtype) {
    case PK_F32:
        pk_parallel(call, n, PIECE / 4, float_task, &f);
        return PK_OK;
    case PK_F64: memcpy(f.pattern, &value, 8); break;
    case PK_F16: case PK_BF16:
        if (value != 0.0)
            return pk_fail(call, PK_BAD_CALL, -1, "half precision can be filled with 0 only");
        break;
    case PK_BOOL: f.pattern[0] = value != 0.0; break;
    default:
        if ((double)whole != value)
            return pk_fail(call, PK_BAD_CALL, -1, "%g is no whole number, y holds integers", value);
        memcpy(f.pattern, &whole, 8);   /* little-endian: the low bytes come first */
    }
    pk_parallel(call, n, PIECE / f.size, pattern_task, &f);
    return PK_OK;
}

PK_OP(fill, {"fill.forward(; value: float) -> (y: any)", fill_forward});
