/* sequence_window.h: what the ops that multiply windows over sequences read of their views. */
#ifndef PK_SEQUENCE_WINDOW_H
#define PK_SEQUENCE_WINDOW_H
#include "products.h"
#include "windows.h"

/* x [T, d], w [size*d, m], y [T, m]; offsets[sequences] is T */
typedef struct pk_conv_windows {
    const pk_call *call;
    pk_windows windows;
    int64_t tokens, d, m, size;
} pk_conv_windows;

static inline pk_status pk_find_conv(const pk_call *call, const pk_view *x, const pk_view *w, const pk_view *y,
                      pk_conv_windows *c) {
    const int64_t size = call->attr[0].i, start = call->attr[1].i;
    if (!x->offsets) return pk_fail(call, PK_BAD_SHAPE, -1, "the tokens come without offsets");
    *c = (pk_conv_windows){.call = call, .tokens = x->dim[0], .d = pk_inner(x, 1), .m = pk_inner(y, 1)};
    c->windows = (pk_windows){.offsets = x->offsets, .sequences = x->sequences, .first = start};
    c->size = size;
    if (size < 1 || size > INT32_MAX || start < -INT32_MAX || start > INT32_MAX)
        return pk_fail(call, PK_BAD_CALL, -1, "size %lld, start %lld", (long long)size,
                       (long long)start);
    if (w->ndim != 2 || w->dim[0] != size * c->d || w->dim[1] != c->m)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "w is [%lld, %lld], %lld tokens of width %lld give width %lld",
                       (long long)w->dim[0], (long long)pk_inner(w, 1), (long long)size,
                       (long long)c->d, (long long)c->m);
    if (c->tokens != y->dim[0] || x->offsets[x->sequences] != c->tokens)
        return pk_fail(call, PK_BAD_SHAPE, -1, "x has %lld tokens, y %lld, the sequences %lld",
                       (long long)c->tokens, (long long)y->dim[0],
                       (long long)x->offsets[x->sequences]);
    return PK_OK;
}

#endif
