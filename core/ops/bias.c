/* bias: a vector added along one dimension, and the sum that is its gradient. */
#include "dims.h"
#include "elementwise.h"

/* x [outer, n, inner], b [n]; a row is `inner` long, or `n` long where inner is 1. */
typedef struct bias {
    float *y;
    const float *x, *b;
    int64_t n, inner;
    int add;
} bias;

static void last_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const bias *t = context;
    (void)thread, (void)scratch;
    for (int64_t r = begin; r < end; r++)
        PK_FOR16(i, c, t->n)
            pk_put(t->y + r * t->n + i,
                   pk_add(pk_load_n(t->x + r * t->n + i, c), pk_load_n(t->b + i, c)), c, t->add);
}

static void channel_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const bias *t = context;
    (void)thread, (void)scratch;
    for (int64_t r = begin; r < end; r++) {
        const pk_vec b = pk_set1(t->b[r % t->n]);
        PK_FOR16(i, c, t->inner)
            pk_put(t->y + r * t->inner + i, pk_add(pk_load_n(t->x + r * t->inner + i, c), b), c,
                   t->add);
    }
}

static pk_status check(const pk_call *call, const pk_view *x, const pk_view *b, int32_t *axis) {
    const int64_t a = call->attr[0].i < 0 ? call->attr[0].i + x->ndim : call->attr[0].i;
    if (a < 1 || a >= x->ndim || pk_count(b) != x->dim[a])
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "b has %lld elements, dimension %lld of %d does not fit it",
                       (long long)pk_count(b), (long long)call->attr[0].i, (int)x->ndim);
    *axis = (int32_t)a;
    return PK_OK;
}

static pk_status bias_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *b = &call->in[1];
    int32_t axis = 0;
    pk_status bad = check(call, x, b, &axis);
    if (!bad && pk_count(x) != pk_count(&call->out[0]))
        bad = pk_fail(call, PK_BAD_SHAPE, -1, "x has %lld elements, y %lld", (long long)pk_count(x),
                      (long long)pk_count(&call->out[0]));
    if (bad) return bad;
    bias t = {.n = x->dim[axis], .inner = pk_inner(x, axis + 1), .add = pk_adds(call, 0)};
    t.y = pk_f32(&call->out[0]), t.x = pk_f32(x), t.b = pk_f32(b);
    const int64_t row = t.inner == 1 ? t.n : t.inner;
    if (row > 0)
        pk_parallel(call, pk_count(x) / row, pk_max_i64(1, PK_MAP_GRAIN / row),
                    t.inner == 1 ? last_task : channel_task, &t);
    return PK_OK;
}

/* db = sum of dy over all dimensions but one */
static pk_status bias_backward(const pk_call *call) {
    const pk_view *dy = &call->in[0], *db = &call->out[0];
    int32_t axis = 0;
    const pk_status bad = check(call, dy, db, &axis);
    if (bad) return bad;
    const uint32_t others = ((1u << dy->ndim) - 1u) & ~(1u << axis);
    pk_sum_dims(call, pk_f32(db), pk_f32(dy), dy->ndim, dy->dim, others, 1.0f, pk_adds(call, 0));
    return PK_OK;
}

PK_OP(bias, {"bias.forward(x: f32, b: f32; axis: int) -> (y: f32)", bias_forward},
      {"bias.backward(dy: f32; axis: int) -> (db: f32)", bias_backward});
