/* prelu: y = x above 0, alpha*x elsewhere.  A row of x is cut into as many spans as there are
 * slopes: one for all, one a channel or one an element, the same code. */
#include "elementwise.h"
#include "packed.h"

#define CHUNK 16384      /* floats of a partial sum of the one slope */
#define ROW_CHUNK 256    /* rows of a partial sum of the slopes of elements */

/* x, dy, out [rows, slopes, span]; alpha, dalpha [slopes] */
typedef struct prelu {
    const float *x, *alpha, *dy;
    float *out;
    double *partials;
    int64_t rows, slopes, span;
    int add;
} prelu;

static pk_status find(const pk_call *call, const pk_view *alpha, prelu *p) {
    const pk_view *x = &call->in[0];
    const int64_t row = pk_inner(x, 1), slopes = pk_count(alpha);
    if (x->ndim < 2 || (slopes != 1 && slopes != x->dim[1] && slopes != row))
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld slopes, a row of x has %lld elements",
                       (long long)slopes, (long long)row);
    if (row == 0) return pk_fail(call, PK_BAD_SHAPE, -1, "rows without elements");
    p->x = pk_f32(x), p->rows = x->dim[0], p->slopes = slopes, p->span = row / slopes;
    p->out = pk_f32(&call->out[0]), p->add = pk_adds(call, 0);
    return PK_OK;
}

/* y, or dx where dy is given, of n floats from `at`; slopes one for all or one each */
PK_INLINE void bend(const prelu *p, int64_t at, int64_t n, const float *alpha, int each) {
    PK_FOR16(i, c, n) {
        const pk_vec x = pk_load_n(p->x + at + i, c);
        const pk_vec a = each ? pk_load_n(alpha + i, c) : pk_set1(*alpha);
        const pk_vec v = p->dy ? pk_load_n(p->dy + at + i, c) : x;
        pk_put(p->out + at + i, pk_select(pk_gt(x, pk_zero()), v, pk_mul(v, a)), c, p->add);
    }
}

static void span_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const prelu *p = context;
    (void)thread, (void)scratch;
    for (int64_t s = begin; s < end; s++)
        bend(p, s * p->span, p->span, p->alpha + s % p->slopes, 0);
}
static void row_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const prelu *p = context;
    (void)thread, (void)scratch;
    for (int64_t r = begin; r < end; r++) bend(p, r * p->slopes, p->slopes, p->alpha, 1);
}

static void run(const pk_call *call, prelu *p) {
    if (p->span == 1)
        pk_parallel(call, p->rows, pk_max_i64(1, PK_MAP_GRAIN / p->slopes), row_task, p);
    else
        pk_parallel(call, p->rows * p->slopes, pk_max_i64(1, PK_MAP_GRAIN / p->span), span_task, p);
}

/* x, alpha -> y */
static pk_status forward(const pk_call *call) {
    prelu p = {.alpha = pk_f32(&call->in[1])};
    pk_status bad = find(call, &call->in[1], &p);
    if (!bad) bad = pk_check_size(call, "y", &call->out[0], pk_count(&call->in[0]));
    if (!bad) run(call, &p);
    return bad;
}

/* x, alpha, dy -> dx */
static pk_status backward_x(const pk_call *call) {
    prelu p = {.alpha = pk_f32(&call->in[1]), .dy = pk_f32(&call->in[2])};
    pk_status bad = find(call, &call->in[1], &p);
    if (!bad) bad = pk_check_size(call, "dy", &call->in[2], pk_count(&call->in[0]));
    if (!bad) bad = pk_check_size(call, "dx", &call->out[0], pk_count(&call->in[0]));
    if (!bad) run(call, &p);
    return bad;
}

/* ---- dalpha = sum of dy*x where x is not above 0 ---- */
PK_INLINE pk_vec below(const prelu *p, int64_t at, int64_t n) {
    const pk_vec x = pk_load_n(p->x + at, n), v = pk_mul(x, pk_load_n(p->dy + at, n));
    return pk_select(pk_gt(x, pk_zero()), pk_zero(), v);
}
static double sum_below(const prelu *p, int64_t at, int64_t n) {
    pk_vec s = pk_zero();
    PK_FOR16(i, c, n) s = pk_add(s, below(p, at + i, c));
    return (double)pk_sum16(s);
}
static void keep(const prelu *p, int64_t a, double sum) {
    p->out[a] = p->add ? p->out[a] + (float)sum : (float)sum;
}

static void chunk_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const prelu *p = context;
    (void)thread, (void)scratch;
    for (int64_t i = begin; i < end; i++)
        p->partials[i] = sum_below(p, i * CHUNK, pk_min_i64(CHUNK, p->span - i * CHUNK));
}

/* One slope: chunks of the flat tensor, as many at a time as the scratch holds sums. */
static void sum_flat(const pk_call *call, const prelu *p) {
    const int64_t n = p->rows * p->span, room = PK_SCRATCH_BYTES / (int64_t)sizeof(double) * CHUNK;
    double total = 0;
    for (int64_t at = 0; at < n; at += room) {
        prelu part = *p;
        part.x += at, part.dy += at, part.span = pk_min_i64(room, n - at), part.partials = pk_scratch(call);
        const int64_t chunks = pk_ceil_div(part.span, CHUNK);
        pk_parallel(call, chunks, 4, chunk_task, &part);
        for (int64_t i = 0; i < chunks; i++) total += part.partials[i];
    }
    keep(p, 0, total);
}

/* A slope a channel: the sum of each row's span, rows in order. */
static void channel_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const prelu *p = context;
    (void)thread, (void)scratch;
    for (int64_t a = begin; a < end; a++) {
        double sum = 0;
        for (int64_t r = 0; r < p->rows; r++) sum += sum_below(p, (r * p->slopes + a) * p->span, p->span);
        keep(p, a, sum);
    }
}

/* A slope an element: sixteen columns, chunks of ROW_CHUNK rows. */
static void column_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const prelu *p = context;
    (void)thread, (void)scratch;
    for (int64_t v = begin; v < end; v++) {
        const int64_t i = 16 * v, c = pk_min_i64(16, p->slopes - i);
        pk_vec sum = pk_zero();
        for (int64_t first = 0; first < p->rows; first += ROW_CHUNK) {
            const int64_t last = pk_min_i64(first + ROW_CHUNK, p->rows);
            pk_vec part = pk_zero();
            for (int64_t r = first; r < last; r++) part = pk_add(part, below(p, r * p->slopes + i, c));
            sum = pk_add(sum, part);
        }
        pk_put(p->out + i, sum, c, p->add);
    }
}

/* x, dy -> dalpha */
static pk_status backward_alpha(const pk_call *call) {
    prelu p = {.dy = pk_f32(&call->in[1])};
    pk_status bad = find(call, &call->out[0], &p);
    if (!bad) bad = pk_check_size(call, "dy", &call->in[1], pk_count(&call->in[0]));
    if (bad) return bad;
    const int64_t size = pk_max_i64(1, p.rows * p.span);
    if (p.slopes == 1) sum_flat(call, &p);
    else if (p.span == 1) pk_parallel(call, pk_ceil_div(p.slopes, 16), 1, column_task, &p);
    else pk_parallel(call, p.slopes, pk_max_i64(1, PK_MAP_GRAIN / size), channel_task, &p);
    return PK_OK;
}

PK_OP(prelu, {"prelu.forward(x: f32, alpha: f32) -> (y: f32)", forward},
      {"prelu.backward_x(x: f32, alpha: f32, dy: f32) -> (dx: f32)", backward_x},
      {"prelu.backward_alpha(x: f32, dy: f32) -> (dalpha: f32)", backward_alpha});
