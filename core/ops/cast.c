/* cast: another element type, with a scale and a shift on the way. */
#include <math.h>
#include <string.h>

#include "elementwise.h"
#include "pk_half.h"
#include "rows.h"

#define BLOCK 512   /* elements that pass through a buffer at a time */

/* ---- blocks: into float, double or int64, and out of them ---- */
#define COPY(type, to) for (int64_t i = 0; i < n; i++) out[i] = (to)((const type *)in)[i]
static void floats_of(float *out, const void *in, int64_t n, int32_t dtype) {
    switch (dtype) {
    case PK_F32: COPY(float, float); break;
    case PK_F16:
        for (int64_t i = 0; i < n; i++) out[i] = pk_from_f16(((const uint16_t *)in)[i]);
        break;
    case PK_BF16:
        for (int64_t i = 0; i < n; i++) out[i] = pk_from_bf16(((const uint16_t *)in)[i]);
        break;
    case PK_I16: COPY(int16_t, float); break;
    case PK_I8: COPY(int8_t, float); break;
    default: COPY(uint8_t, float);
    }
}
static void integers_of(int64_t *out, const void *in, int64_t n, int32_t dtype) {
    switch (dtype) {
    case PK_I64: COPY(int64_t, int64_t); break;
    case PK_I32: COPY(int32_t, int64_t); break;
    case PK_I16: COPY(int16_t, int64_t); break;
    case PK_I8: COPY(int8_t, int64_t); break;
    default: COPY(uint8_t, int64_t);
    }
}

/* Smallest and largest of the integer types. */
static void range_of(int32_t dtype, int64_t *low, int64_t *high) {
    const int64_t bits = 8 * pk_element_bytes(dtype);
    *low = dtype == PK_U8 ? 0 : bits == 64 ? INT64_MIN : -((int64_t)1 << (bits - 1));
    *high = dtype == PK_U8 ? 255 : bits == 64 ? INT64_MAX : ((int64_t)1 << (bits - 1)) - 1;
}
#define KEEP(type) for (int64_t i = 0; i < n; i++) ((type *)out)[i] = (type)in[i]
static void put_integers(void *out, int64_t *in, int64_t n, int32_t dtype) {
    int64_t low, high;
    range_of(dtype, &low, &high);
    for (int64_t i = 0; i < n; i++) in[i] = in[i] < low ? low : in[i] > high ? high : in[i];
    switch (dtype) {
    case PK_I64: KEEP(int64_t); break;
    case PK_I32: KEEP(int32_t); break;
    case PK_I16: KEEP(int16_t); break;
    case PK_I8: KEEP(int8_t); break;
    default: KEEP(uint8_t);
    }
}
/* Cut towards 0; what does not fit becomes the nearest, NaN becomes 0 (the conversion itself would
 * be undefined). */
static int64_t whole(double x) {
    if (x >= 9223372036854775807.0) return INT64_MAX;
    if (x <= -9223372036854775808.0) return INT64_MIN;
    return x == x ? (int64_t)x : 0;
}

typedef struct cast {
    const char *in;
    char *out;
    int32_t from, to;
    double scale, shift;
    int plain, add;
} cast;

static int is_float(int32_t dtype) { return dtype <= PK_BF16; }

static void put_doubles(const cast *c, char *out, const double *v, int64_t n) {
    int64_t w[BLOCK];
    switch (c->to) {
    case PK_F64: memcpy(out, v, (size_t)n * 8); return;
    case PK_F32:
        for (int64_t i = 0; i < n; i++)
            ((float *)out)[i] = c->add ? ((float *)out)[i] + (float)v[i] : (float)v[i];
        return;
    case PK_F16: for (int64_t i = 0; i < n; i++) ((uint16_t *)out)[i] = pk_to_f16((float)v[i]); return;
    case PK_BF16:
        for (int64_t i = 0; i < n; i++) ((uint16_t *)out)[i] = pk_to_bf16((float)v[i]);
        return;
    case PK_BOOL: for (int64_t i = 0; i < n; i++) out[i] = v[i] != 0.0; return;
    default:
        for (int64_t i = 0; i < n; i++) w[i] = whole(v[i]);
        put_integers(out, w, n, c->to);
    }
}

/* n <= BLOCK elements */
static void block(const cast *c, const char *in, char *out, int64_t n) {
    const float scale = (float)c->scale, shift = (float)c->shift;
    if (c->plain && !is_float(c->from) && !is_float(c->to)) {
        int64_t w[BLOCK];
        integers_of(w, in, n, c->from);
        if (c->to == PK_BOOL)
            for (int64_t i = 0; i < n; i++) w[i] = w[i] != 0;
        put_integers(out, w, n, c->to);
        return;
    }
    double v[BLOCK];
    if (c->from == PK_F64) {
        for (int64_t i = 0; i < n; i++) v[i] = ((const double *)in)[i] * c->scale + c->shift;
    } else if (c->from == PK_I64 || c->from == PK_I32) {
        int64_t w[BLOCK];
        integers_of(w, in, n, c->from);
        for (int64_t i = 0; i < n; i++) v[i] = (double)w[i] * c->scale + c->shift;
    } else {
        float f[BLOCK];
        floats_of(f, in, n, c->from);
        for (int64_t i = 0; i < n; i++) f[i] = f[i] * scale + shift;
        if (c->to == PK_F32) {
            float *o = (float *)out;
            for (int64_t i = 0; i < n; i++) o[i] = c->add ? o[i] + f[i] : f[i];
            return;
        }
        for (int64_t i = 0; i < n; i++) v[i] = f[i];
    }
    put_doubles(c, out, v, n);
}

static void cast_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const cast *c = context;
    const int64_t from = pk_element_bytes(c->from), to = pk_element_bytes(c->to);
    (void)thread, (void)scratch;
    for (int64_t i = begin; i < end; i += BLOCK)
        block(c, c->in + i * from, c->out + i * to, pk_min_i64(BLOCK, end - i));
}

/* attr: scale, shift, dtype */
static pk_status cast_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *y = &call->out[0];
    if (pk_count(x) != pk_count(y) || y->dtype != call->attr[2].i)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "x has %lld elements, y %lld, of type %d instead of %lld",
                       (long long)pk_count(x), (long long)pk_count(y), (int)y->dtype,
                       (long long)call->attr[2].i);
    const pk_status bad = pk_check_add(call, 0);
    if (bad) return bad;
    cast c = {.in = x->data, .out = y->data, .from = x->dtype, .to = y->dtype};
    c.scale = call->attr[0].f, c.shift = call->attr[1].f, c.add = pk_adds(call, 0);
    c.plain = c.scale == 1.0 && c.shift == 0.0;
    pk_parallel(call, pk_count(x), PK_MAP_GRAIN, cast_task, &c);
    return PK_OK;
}

PK_OP(cast,
      {"cast.forward(x: any; scale: float, shift: float, dtype: int) -> (y: any)", cast_forward});
