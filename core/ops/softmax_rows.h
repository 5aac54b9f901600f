/* softmax_rows.h: what softmax, log_softmax and softmax_with_cross_entropy share.
 *
 * A tensor is seen as [outer, classes, inner]; the classes of one (outer, inner) place are one distribution.  With inner
 * = 1 the sixteen lanes go along the classes, otherwise along `inner`, each lane with its own distribution; either way a
 * distribution's result depends on its own scores alone. */
#ifndef PK_SOFTMAX_ROWS_H
#define PK_SOFTMAX_ROWS_H
#include "elementwise.h"

typedef struct rows_shape {
    int64_t outer, classes, inner;
} rows_shape;

/* Index of the first class of `place` (of sixteen lanes when inner > 1) and the lanes that exist. */
typedef struct rows_place {
    int64_t first, stride, lanes;
} rows_place;

static inline pk_status rows_of(const pk_call *call, const pk_view *x, int64_t axis, rows_shape *s) {
    if (axis < 0) axis += x->ndim;
    if (axis < 0 || axis >= x->ndim)
        return pk_fail(call, PK_BAD_SHAPE, -1, "no axis %lld in %d dimensions", (long long)axis, (int)x->ndim);
    *s = (rows_shape){1, x->dim[axis], pk_inner(x, (int32_t)axis + 1)};
    for (int32_t i = 0; i < axis; i++) s->outer *= x->dim[i];
    return PK_OK;
}
/* Places that can be worked on independently: rows, or blocks of sixteen columns. */
static inline int64_t rows_places(rows_shape s) {
    return s.classes == 0 ? 0 : s.outer * (s.inner == 1 ? 1 : pk_ceil_div(s.inner, 16));
}
/* About 8192 scores a piece. */
static inline int64_t rows_grain(rows_shape s) {
    return pk_max_i64(1, 8192 / pk_max_i64(1, s.classes * (s.inner == 1 ? 1 : 16)));
}
static inline rows_place rows_at(rows_shape s, int64_t place) {
    if (s.inner == 1) return (rows_place){place * s.classes, 1, 1};
    const int64_t blocks = pk_ceil_div(s.inner, 16), o = place / blocks, j = place % blocks * 16;
    return (rows_place){o * s.classes * s.inner + j, s.inner, pk_min_i64(16, s.inner - j)};
}

/* One row: the sum of exp(x - most).  Lanes beyond the row add nothing. */
PK_INLINE float row_exp_sum(const float *x, int64_t classes, float most) {
    const pk_vec m = pk_set1(most);
    pk_vec s = pk_zero();
    PK_FOR16(i, c, classes) {
        const pk_vec e = pk_exp(pk_sub(pk_load_n(x + i, c), m));
        s = pk_add(s, c == 16 ? e : pk_select(pk_first_lanes(c), e, pk_zero()));
    }
    return pk_sum16(s);
}

/* The same without class `skip` (none where it is negative).  out: gets all the exponentials, unless
 * it is NULL; it may be x. */
PK_INLINE float row_exp_rest(float *out, const float *x, int64_t classes, float most, int64_t skip) {
    const pk_vec m = pk_set1(most);
    pk_vec s = pk_zero();
    PK_FOR16(i, c, classes) {
        pk_vec e = pk_exp(pk_sub(pk_load_n(x + i, c), m));
        if (out != NULL) pk_store_n(out + i, e, c);
        if (c < 16) e = pk_keep(pk_first_lanes(c), e);
        if (skip >= i && skip < i + c)
            e = pk_keep(pk_mask_not(pk_lanes_between(skip - i, skip - i + 1)), e);
        s = pk_add(s, e);
    }
    return pk_sum16(s);
}

/* Largest score and that sum for sixteen columns; x points at the first class of the first lane. */
PK_INLINE pk_vec columns_max(const float *x, int64_t classes, rows_place at) {
    pk_vec m = pk_set1(-__builtin_inff());
    for (int64_t c = 0; c < classes; c++) m = pk_max(m, pk_load_n(x + c * at.stride, at.lanes));
    return m;
}
PK_INLINE pk_vec columns_exp_sum(const float *x, int64_t classes, rows_place at, pk_vec most) {
    pk_vec s = pk_zero();
    for (int64_t c = 0; c < classes; c++) s = pk_add(s, pk_exp(pk_sub(pk_load_n(x + c * at.stride, at.lanes), most)));
    return s;
}
#endif
