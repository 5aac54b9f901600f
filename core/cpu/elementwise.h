/* elementwise.h: kernels that treat every element alone.
 *
 * A kernel file writes its function on vectors and names it:
 *     PK_INLINE pk_vec leaky(pk_vec x, const pk_vec *a) { ... a[0] is the first attribute ... }
 *     PK_MAP1(leaky_relu_forward, leaky)
 * PK_MAP1 and PK_MAP2 take tensors of equal size; PK_BROADCAST2 two that are spread over the output
 * as numpy does it, PK_BROADCAST3 the same with a third one of the output's size.  Attributes reach
 * the function as vectors (int, float and bool alike).  Lanes never meet, so the bits do not depend
 * on how the elements are cut into pieces. */
#ifndef PK_ELEMENTWISE_H
#define PK_ELEMENTWISE_H
#include "pk_kernel.h"
#include "pk_simd.h"
#include "spread.h"

#define PK_MAP_GRAIN 32768   /* elements: 128 KB of each tensor, some microseconds */
#define PK_MAP_ATTRS 4
#define PK_MAYBE_UNUSED __attribute__((unused))

typedef struct pk_map {
    float *out;
    const float *a, *b;
    float attr[PK_MAP_ATTRS];
    int add;
} pk_map;

/* kinds: a letter for each attribute, 'f' for a float and 'i' for an int or bool. */
PK_INLINE void pk_map_attrs(const pk_call *call, const char *kinds, float *attr) {
    for (int32_t i = 0; kinds[i]; i++)
        attr[i] = kinds[i] == 'f' ? (float)call->attr[i].f : (float)call->attr[i].i;
}

/* Every tensor of the call must have the output's number of elements. */
PK_MAYBE_UNUSED static pk_status pk_map_check(const pk_call *call) {
    const int64_t n = pk_count(&call->out[0]);
    for (int32_t i = 0; i < call->n_in; i++)
        if (pk_count(&call->in[i]) != n)
            return pk_fail(call, PK_BAD_SHAPE, -1, "input %d has %lld elements, the output %lld",
                           (int)i, (long long)pk_count(&call->in[i]), (long long)n);
    return PK_OK;
}

/* value, or value added to what is there */
PK_INLINE void pk_put(float *out, pk_vec value, int64_t c, int add) {
    pk_store_n(out, add ? pk_add(pk_load_n(out, c), value) : value, c);
}

/* exp(x) - 1 for x <= 0.  Near 0 the difference would lose its digits; there a short series is
 * exact enough. */
PK_INLINE pk_vec pk_expm1_below(pk_vec x) {
    const pk_vec q =
        PK_POLY(x, 0.5f, 1.6666667e-01f, 4.1666668e-02f, 8.3333338e-03f, 1.3888889e-03f);
    const pk_vec near = pk_fma(pk_mul(x, x), q, x);
    return pk_select(pk_gt(x, pk_set1(-0.25f)), near, pk_sub(pk_exp(x), pk_set1(1.0f)));
}

#define PK_MAP_(kernel, kinds, function, ...)                                                      \
    static void kernel##_task(void *context, int64_t begin, int64_t end, int32_t thread,           \
                              void *scratch) {                                                     \
        const pk_map *m = context;                                                                 \
        (void)thread, (void)scratch;                                                               \
        pk_vec attr[PK_MAP_ATTRS];                                                                 \
        for (int i = 0; i < PK_MAP_ATTRS; i++) attr[i] = pk_set1(m->attr[i]);                      \
        PK_FOR16(i, c, end - begin) {                                                              \
            const int64_t at = begin + i;                                                          \
            pk_put(m->out + at, function(__VA_ARGS__, attr), c, m->add);                           \
        }                                                                                          \
    }                                                                                              \
    static pk_status kernel(const pk_call *call) {                                                 \
        const pk_status bad = pk_map_check(call);                                                  \
        if (bad) return bad;                                                                       \
        pk_map m = {pk_f32(&call->out[0]), pk_f32(&call->in[0]),                                   \
                    call->n_in > 1 ? pk_f32(&call->in[1]) : NULL, {0}, pk_adds(call, 0)};          \
        pk_map_attrs(call, kinds, m.attr);                                                         \
        pk_parallel(call, pk_count(&call->out[0]), PK_MAP_GRAIN, kernel##_task, &m);               \
        return PK_OK;                                                                              \
    }
/* out = f(a, attrs);  out = f(a, b, attrs) */
#define PK_MAP1(kernel, kinds, function) PK_MAP_(kernel, kinds, function, pk_load_n(m->a + at, c))
#define PK_MAP2(kernel, kinds, function) \
    PK_MAP_(kernel, kinds, function, pk_load_n(m->a + at, c), pk_load_n(m->b + at, c))

/* ---- broadcasting ---- */
typedef struct pk_spread_map {
    float *out;
    const float *x, *y, *d;   /* d has the output's shape */
    pk_spread s;
    int64_t blocks;           /* pieces of a row */
    float attr[PK_MAP_ATTRS];
    int add;
} pk_spread_map;
#define PK_SPREAD_BLOCK 4096

PK_INLINE pk_vec pk_spread_load(const float *p, int64_t step, int64_t i, int64_t c) {
    return step ? pk_load_n(p + i, c) : pk_set1(*p);
}

#define PK_BROADCAST_(kernel, kinds, function, with_d, ...)                                        \
    static void kernel##_task(void *context, int64_t begin, int64_t end, int32_t thread,           \
                              void *scratch) {                                                     \
        const pk_spread_map *m = context;                                                          \
        (void)thread, (void)scratch;                                                               \
        const int64_t row_size = m->s.dim[m->s.n - 1];                                             \
        const int64_t step_x = m->s.x[m->s.n - 1], step_y = m->s.y[m->s.n - 1];                    \
        pk_vec attr[PK_MAP_ATTRS];                                                                 \
        for (int i = 0; i < PK_MAP_ATTRS; i++) attr[i] = pk_set1(m->attr[i]);                      \
        for (int64_t unit = begin; unit < end; unit++) {                                           \
            const int64_t row = unit / m->blocks, first = unit % m->blocks * PK_SPREAD_BLOCK;      \
            const int64_t n = pk_min_i64(PK_SPREAD_BLOCK, row_size - first);                       \
            int64_t at_x, at_y;                                                                    \
            pk_spread_row(&m->s, row, &at_x, &at_y);                                               \
            const float *x = m->x + at_x + first * step_x, *y = m->y + at_y + first * step_y;      \
            const int64_t at = row * row_size + first;                                             \
            PK_FOR16(i, c, n) {                                                                    \
                const pk_vec vx = pk_spread_load(x, step_x, i, c);                                 \
                const pk_vec vy = pk_spread_load(y, step_y, i, c);                                 \
                pk_put(m->out + at + i, function(__VA_ARGS__, attr), c, m->add);                   \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static pk_status kernel(const pk_call *call) {                                                 \
        const pk_view *out = &call->out[0];                                                        \
        pk_spread_map m = {.out = pk_f32(out), .x = pk_f32(&call->in[0]),                          \
                           .y = pk_f32(&call->in[1]),                                              \
                           .d = with_d ? pk_f32(&call->in[2]) : NULL, .add = pk_adds(call, 0)};    \
        /* the first attribute is the axis */                                                      \
        const pk_status bad =                                                                      \
            pk_spread_over(call, &call->in[0], &call->in[1], out, call->attr[0].i, &m.s);          \
        if (bad) return bad;                                                                       \
        const int64_t n = pk_count(out);                                                           \
        if (with_d && pk_count(&call->in[2]) != n)                                                 \
            return pk_fail(call, PK_BAD_SHAPE, -1, "input 2 has %lld elements, the output %lld",   \
                           (long long)pk_count(&call->in[2]), (long long)n);                       \
        if (n == 0) return PK_OK;                                                                  \
        const int64_t row_size = m.s.dim[m.s.n - 1];                                               \
        m.blocks = pk_ceil_div(row_size, PK_SPREAD_BLOCK);                                         \
        pk_map_attrs(call, kinds, m.attr);                                                         \
        pk_parallel(call, n / row_size * m.blocks,                                                 \
                    pk_max_i64(1, PK_MAP_GRAIN / pk_min_i64(row_size, PK_SPREAD_BLOCK)),           \
                    kernel##_task,                                                                 \
                    &m);                                                                           \
        return PK_OK;                                                                              \
    }
/* out = f(x, y, attrs);  out = f(x, y, d, attrs) */
#define PK_BROADCAST2(kernel, kinds, function) PK_BROADCAST_(kernel, kinds, function, 0, vx, vy)
#define PK_BROADCAST3(kernel, kinds, function) \
    PK_BROADCAST_(kernel, kinds, function, 1, vx, vy, pk_load_n(m->d + at + i, c))

#endif
