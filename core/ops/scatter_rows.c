/* scatter_rows: rows put into another order. */
#include <string.h>

#include "pk_simd.h"
#include "rows.h"

typedef struct scatter {
    float *y;
    const float *x;
    const int64_t *index;
    int64_t width;
    int add;
} scatter;

static void scatter_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const scatter *s = context;
    (void)thread, (void)scratch;
    for (int64_t r = begin; r < end; r++) {
        float *y = s->y + s->index[r] * s->width;
        const float *x = s->x + r * s->width;
        PK_FOR16(i, c, s->width) {
            const pk_vec v = pk_load_n(x + i, c);
            pk_store_n(y + i, s->add ? pk_add(pk_load_n(y + i, c), v) : v, c);
        }
    }
}

/* x [n, ...], index [n] -> y [n, ...], work [n]: rows that have been taken */
static pk_status scatter_rows_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *index = &call->in[1], *y = &call->out[0];
    const int64_t n = pk_count(index), width = pk_inner(x, 1);
    const int64_t *to = pk_i64(index);
    uint8_t *taken = call->out[1].data;
    if (x->dim[0] != n || pk_count(y) != n * width || y->dim[0] != n || pk_count(&call->out[1]) < n)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld indices, x has %lld rows, y %lld",
                       (long long)n, (long long)x->dim[0], (long long)y->dim[0]);
    const pk_status bad = pk_check_index(call, to, n, n, INT64_MIN, "index");
    if (bad) return bad;
    memset(taken, 0, (size_t)n);
    for (int64_t i = 0; i < n; i++) {
        if (taken[to[i]])
            return pk_fail(call, PK_BAD_DATA, i, "index %lld in row %lld was there before",
                           (long long)to[i], (long long)i);
        taken[to[i]] = 1;
    }
    scatter s = {pk_f32(y), pk_f32(x), to, width, pk_adds(call, 0)};
    pk_parallel(call, n, pk_max_i64(1, 16384 / pk_max_i64(1, width)), scatter_task, &s);
    return PK_OK;
}

PK_OP(scatter_rows,
      {"scatter_rows.forward(x: f32, index: i64) -> (y: f32, work: u8)", scatter_rows_forward});
