/* spread.h: two tensors spread over an output as numpy does it; what the host finds out before a kernel runs. */
#ifndef PK_SPREAD_H
#define PK_SPREAD_H
#include "pk_kernel.h"

#ifndef PK_BOTH
#define PK_BOTH
#endif

/* The output's dimensions with neighbours merged where both operands go along or both stay:
 * dim[0..n-1], and the step of each operand in elements (0: the same value again).  The last one is
 * the row that a kernel runs through. */
typedef struct pk_spread {
    int32_t n;
    int64_t dim[PK_MAX_DIM], x[PK_MAX_DIM], y[PK_MAX_DIM];
} pk_spread;

/* First dimension of the output that an operand's dimension 0 stands for: `axis`, or the trailing
 * ones when it is -1. */
static inline int32_t pk_spread_first(const pk_view *v, const pk_view *out, int64_t axis) {
    return v->ndim == out->ndim || axis < 0 ? out->ndim - v->ndim : (int32_t)axis;
}

static inline int64_t pk_spread_dim(const pk_view *v, int32_t first, int32_t d) {
    return d < first || d >= first + v->ndim ? 1 : v->dim[d - first];
}

static inline pk_status pk_spread_over(const pk_call *call, const pk_view *x, const pk_view *y,
                                       const pk_view *out, int64_t axis, pk_spread *s) {
    const int32_t fx = pk_spread_first(x, out, axis), fy = pk_spread_first(y, out, axis);
    if (fx < 0 || fy < 0 || fx + x->ndim > out->ndim || fy + y->ndim > out->ndim)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "operands of %d and %d dimensions do not fit %d from axis %lld on",
                       (int)x->ndim, (int)y->ndim, (int)out->ndim, (long long)axis);
    int8_t along[PK_MAX_DIM][2];
    s->n = 0;
    for (int32_t d = 0; d < out->ndim; d++) {
        const int64_t n = out->dim[d], nx = pk_spread_dim(x, fx, d), ny = pk_spread_dim(y, fy, d);
        if ((nx != n && nx != 1) || (ny != n && ny != 1))
            return pk_fail(call, PK_BAD_SHAPE, -1,
                           "sizes %lld and %lld do not spread over %lld in dimension %d",
                           (long long)nx, (long long)ny, (long long)n, (int)d);
        if (n == 1) continue;
        const int8_t ax = nx == n, ay = ny == n;
        if (s->n > 0 && along[s->n - 1][0] == ax && along[s->n - 1][1] == ay) {
            s->dim[s->n - 1] *= n;
        } else {
            along[s->n][0] = ax, along[s->n][1] = ay;
            s->dim[s->n++] = n;
        }
    }
    if (s->n == 0) s->dim[0] = 1, along[0][0] = along[0][1] = 1, s->n = 1;
    int64_t stepx = 1, stepy = 1;
    for (int32_t i = s->n - 1; i >= 0; i--) {
        s->x[i] = along[i][0] ? stepx : 0, s->y[i] = along[i][1] ? stepy : 0;
        if (along[i][0]) stepx *= s->dim[i];
        if (along[i][1]) stepy *= s->dim[i];
    }
    return PK_OK;
}

/* Where row `row` begins in x and in y. */
PK_BOTH static inline void pk_spread_row(const pk_spread *s, int64_t row, int64_t *x, int64_t *y) {
    *x = *y = 0;
    for (int32_t i = s->n - 2; i >= 0; i--) {
        const int64_t at = row % s->dim[i];
        row /= s->dim[i];
        *x += at * s->x[i];
        *y += at * s->y[i];
    }
}
#endif
