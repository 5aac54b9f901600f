/* row_norm.h: what the kernels of layer_norm and group_norm are given, on the host and on CUDA.
 * pk_check_size comes from packed.h or packed.cuh, whichever was included first. */
#ifndef PK_ROW_NORM_H
#define PK_ROW_NORM_H
#include "pk_kernel.h"

typedef struct pk_row_norm {
    const float *x, *w, *b, *dy, *mean, *rstd; /* w, b may be NULL */
    float *y, *mean_out, *rstd_out;            /* y: dx where the gradient is computed */
    float *dw, *db;                            /* each may be NULL */
    int64_t means, weights;                    /* elements of mean and rstd, of w and b */
    double epsilon;
    int add[3];
} pk_row_norm;

/* Each takes the tensors of its kernel; `means` and `weights` are known already. */
static inline pk_status pk_row_norm_forward(const pk_call *call, pk_row_norm *n) {
    const pk_view *in = call->in, *out = call->out;
    n->x = pk_f32(&in[0]), n->w = pk_f32(&in[1]), n->b = pk_f32(&in[2]);
    n->y = pk_f32(&out[0]), n->mean_out = pk_f32(&out[1]), n->rstd_out = pk_f32(&out[2]);
    n->epsilon = call->attr[1].f;
    for (int32_t i = 0; i < 3; i++) n->add[i] = pk_adds(call, i);
    pk_status bad = pk_check_size(call, "w", &in[1], n->weights);
    if (!bad) bad = pk_check_size(call, "b", &in[2], n->weights);
    if (!bad) bad = pk_check_size(call, "y", &out[0], pk_count(&in[0]));
    if (!bad) bad = pk_check_size(call, "mean", &out[1], n->means);
    if (!bad) bad = pk_check_size(call, "rstd", &out[2], n->means);
    return bad;
}

/* dy and x come first in both backward kernels; `mean` is where mean and rstd stand. */
static inline pk_status pk_row_norm_back(const pk_call *call, const pk_view *mean, pk_row_norm *n) {
    const pk_view *dy = &call->in[0], *x = &call->in[1];
    n->dy = pk_f32(dy), n->x = pk_f32(x), n->mean = pk_f32(mean), n->rstd = pk_f32(mean + 1);
    for (int32_t i = 0; i < 2; i++) n->add[i] = pk_adds(call, i);
    pk_status bad = pk_check_size(call, "dy", dy, pk_count(x));
    if (!bad) bad = pk_check_size(call, "mean", mean, n->means);
    if (!bad) bad = pk_check_size(call, "rstd", mean + 1, n->means);
    return bad;
}

static inline pk_status pk_row_norm_backward_x(const pk_call *call, pk_row_norm *n) {
    n->w = pk_f32(&call->in[2]), n->y = pk_f32(&call->out[0]);
    pk_status bad = pk_row_norm_back(call, &call->in[3], n);
    if (!bad) bad = pk_check_size(call, "w", &call->in[2], n->weights);
    if (!bad) bad = pk_check_size(call, "dx", &call->out[0], pk_count(&call->in[1]));
    return bad;
}

static inline pk_status pk_row_norm_backward_w(const pk_call *call, pk_row_norm *n) {
    n->dw = pk_f32(&call->out[0]), n->db = pk_f32(&call->out[1]);
    pk_status bad = pk_row_norm_back(call, &call->in[2], n);
    if (!bad) bad = pk_check_size(call, "dw", &call->out[0], n->weights);
    if (!bad) bad = pk_check_size(call, "db", &call->out[1], n->weights);
    return bad;
}

/* The rows of the table; `cut` is the attribute that says what a row is. */
#define PK_ROW_NORM_OP(op, cut)                                                                   \
    PK_OP(op,                                                                                     \
          {#op ".forward(x: f32, w?: f32, b?: f32; " cut ": int, epsilon: float)"                 \
               " -> (y: f32, mean: f32, rstd: f32)", op##_forward},                               \
          {#op ".backward_x(dy: f32, x: f32, w?: f32, mean: f32, rstd: f32; " cut ": int)"        \
               " -> (dx: f32)", op##_backward_x},                                                 \
          {#op ".backward_w(dy: f32, x: f32, mean: f32, rstd: f32; " cut ": int)"                 \
               " -> (dw?: f32, db?: f32)", op##_backward_w})

#endif
