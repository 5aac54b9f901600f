/* slice: a stretch of one dimension. */
#include "rows.cuh"

namespace {
/* large [outer, size, inner], small [outer, length, inner] from `start` on; counted in bytes. */
struct stretch {
    int64_t outer, row, bytes, first;
};

pk_status find(const pk_call *call, const pk_view *large, const pk_view *small, stretch *s) {
    const int64_t axis = call->attr[0].i < 0 ? call->attr[0].i + large->ndim : call->attr[0].i;
    if (axis < 0 || axis >= large->ndim || small->ndim != large->ndim)
        return pk_fail(call, PK_BAD_SHAPE, -1, "axis %lld of %d dimensions",
                       (long long)call->attr[0].i, (int)large->ndim);
    const int64_t size = large->dim[axis], length = small->dim[axis];
    const int64_t start = call->attr[1].i < 0 ? call->attr[1].i + size : call->attr[1].i;
    const int64_t inner = pk_inner(large, (int32_t)axis + 1) * pk_element_bytes(large->dtype);
    *s = stretch{1, size * inner, length * inner, start * inner};
    for (int64_t d = 0; d < axis; d++) s->outer *= large->dim[d];
    if (start < 0 || start + length > size ||
        pk_count(small) * pk_element_bytes(small->dtype) != s->outer * s->bytes)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld from %lld on of %lld along axis %lld",
                       (long long)length, (long long)start, (long long)size, (long long)axis);
    return PK_OK;
}

pk_status slice_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *y = &call->out[0];
    stretch s;
    PK_TRY(find(call, x, y, &s));
    PK_TRY(pk_check_add(call, 0));
    return pk_move_rows(call, y->data, s.bytes, (const char *)x->data + s.first, s.row, s.outer,
                        s.bytes, pk_element_bytes(x->dtype), pk_adds(call, 0));
}

struct zeros {
    float *out;
    PK_DEVICE void operator()(int64_t i) const { out[i] = 0.0f; }
};

/* dx = dy in its place, 0 elsewhere */
pk_status slice_backward(const pk_call *call) {
    const pk_view *dy = &call->in[0], *dx = &call->out[0];
    stretch s;
    PK_TRY(find(call, dx, dy, &s));
    if (!pk_adds(call, 0)) PK_TRY(pk_each(call, pk_count(dx), zeros{pk_f32(dx)}));
    return pk_move_rows(call, (char *)dx->data + s.first, s.row, dy->data, s.bytes, s.outer,
                        s.bytes, 4, pk_adds(call, 0));
}
} /* namespace */

PK_OP(slice, {"slice.forward(x: any; axis: int, start: int, end: int) -> (y: any)", slice_forward},
      {"slice.backward(dy: f32; axis: int, start: int) -> (dx: f32)", slice_backward});
