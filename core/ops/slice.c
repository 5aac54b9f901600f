/* slice: a stretch of one dimension. */
#include "rows.h"

/* large [outer, size, inner], small [outer, length, inner] from `start` on; counted in bytes. */
typedef struct stretch {
    int64_t outer, row, bytes, first;
} stretch;

static pk_status find(const pk_call *call, const pk_view *large, const pk_view *small, stretch *s) {
    const int64_t axis = call->attr[0].i < 0 ? call->attr[0].i + large->ndim : call->attr[0].i;
    if (axis < 0 || axis >= large->ndim || small->ndim != large->ndim)
        return pk_fail(call, PK_BAD_SHAPE, -1, "axis %lld of %d dimensions",
                       (long long)call->attr[0].i, (int)large->ndim);
    const int64_t size = large->dim[axis], length = small->dim[axis];
    const int64_t start = call->attr[1].i < 0 ? call->attr[1].i + size : call->attr[1].i;
    const int64_t inner = pk_inner(large, (int32_t)axis + 1) * pk_element_bytes(large->dtype);
    *s = (stretch){1, size * inner, length * inner, start * inner};
    for (int64_t d = 0; d < axis; d++) s->outer *= large->dim[d];
    if (start < 0 || start + length > size ||
        pk_count(small) * pk_element_bytes(small->dtype) != s->outer * s->bytes)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld from %lld on of %lld along axis %lld",
                       (long long)length, (long long)start, (long long)size, (long long)axis);
    return PK_OK;
}

static pk_status slice_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *y = &call->out[0];
    stretch s = {0};
    pk_status bad = find(call, x, y, &s);
    if (!bad) bad = pk_check_add(call, 0);
    if (bad) return bad;
    pk_move_rows(call, y->data, s.bytes, (const char *)x->data + s.first, s.row, s.outer, s.bytes,
                 pk_adds(call, 0));
    return PK_OK;
}

typedef struct zeros {
    char *out;
    int64_t row;
} zeros;
static void zero_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const zeros *z = context;
    (void)thread, (void)scratch;
    float *out = (float *)(z->out + begin * z->row);
    for (int64_t i = 0; i < (end - begin) * z->row / 4; i++) out[i] = 0.0f;
}

/* dx = dy in its place, 0 elsewhere */
static pk_status slice_backward(const pk_call *call) {
    const pk_view *dy = &call->in[0], *dx = &call->out[0];
    stretch s = {0};
    const pk_status bad = find(call, dx, dy, &s);
    if (bad) return bad;
    zeros z = {dx->data, s.row};
    if (!pk_adds(call, 0))
        pk_parallel(call, s.outer, pk_max_i64(1, 65536 / pk_max_i64(1, s.row)), zero_task, &z);
    pk_move_rows(call, (char *)dx->data + s.first, s.row, dy->data, s.bytes, s.outer, s.bytes,
                 pk_adds(call, 0));
    return PK_OK;
}

PK_OP(slice, {"slice.forward(x: any; axis: int, start: int, end: int) -> (y: any)", slice_forward},
      {"slice.backward(dy: f32; axis: int, start: int) -> (dx: f32)", slice_backward});
