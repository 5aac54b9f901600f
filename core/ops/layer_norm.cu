/* layer_norm: each row normalised by its own mean and variance. */
#include "packed.cuh"
#include "row_norm.h"

namespace {
/* x, y, dy, dx [rows, width]; w, b, dw, db [width] or NULL; mean, rstd [rows] */
struct norm : pk_row_norm {
    int64_t rows, width;
};

struct find_row {
    norm n;
    PK_DEVICE void operator()(int64_t r) const {
        const float *x = n.x + r * n.width;
        double sum = 0.0, squares = 0.0;
        for (int64_t i = 0; i < n.width; i++) sum += x[i];
        const double mean = sum / (double)n.width;
        for (int64_t i = 0; i < n.width; i++) squares += (x[i] - mean) * (x[i] - mean);
        const double rstd = 1.0 / sqrt(squares / (double)n.width + n.epsilon);
        for (int64_t i = 0; i < n.width; i++) {
            const float v = (float)((x[i] - mean) * rstd);
            pk_put(n.y + r * n.width + i, (n.w ? v * n.w[i] : v) + (n.b ? n.b[i] : 0.0f),
                   n.add[0]);
        }
        pk_put(n.mean_out + r, (float)mean, n.add[1]);
        pk_put(n.rstd_out + r, (float)rstd, n.add[2]);
    }
};
/* dx = rstd (g - mean(g) - v mean(g v)) with g = dy w and v the normalised x */
struct back_row {
    norm n;
    PK_DEVICE float g(int64_t at, int64_t i) const { return n.w ? n.dy[at] * n.w[i] : n.dy[at]; }
    PK_DEVICE void operator()(int64_t r) const {
        const int64_t at = r * n.width;
        double sum = 0.0, with = 0.0;
        for (int64_t i = 0; i < n.width; i++) {
            sum += g(at + i, i);
            with += (double)g(at + i, i) * ((n.x[at + i] - n.mean[r]) * n.rstd[r]);
        }
        const float middle = (float)(sum / (double)n.width);
        const float slope = (float)(with / (double)n.width);
        for (int64_t i = 0; i < n.width; i++) {
            const float v = (n.x[at + i] - n.mean[r]) * n.rstd[r];
            pk_put(n.y + at + i, n.rstd[r] * (g(at + i, i) - middle - v * slope), n.add[0]);
        }
    }
};
struct weight_column {
    norm n;
    PK_DEVICE void operator()(int64_t i) const {
        double dw = 0.0, db = 0.0;
        for (int64_t r = 0; r < n.rows; r++) {
            const float dy = n.dy[r * n.width + i];
            dw += (double)dy * ((n.x[r * n.width + i] - n.mean[r]) * n.rstd[r]);
            db += dy;
        }
        if (n.dw) pk_put(n.dw + i, (float)dw, n.add[0]);
        if (n.db) pk_put(n.db + i, (float)db, n.add[1]);
    }
};

pk_status find(const pk_call *call, const pk_view *x, norm *n) {
    const int64_t begin = call->attr[0].i;
    if (begin < 1 || begin >= x->ndim)
        return pk_fail(call, PK_BAD_SHAPE, -1, "begin %lld of %d dimensions", (long long)begin,
                       (int)x->ndim);
    n->width = pk_inner(x, (int32_t)begin), n->rows = 1;
    for (int64_t d = 0; d < begin; d++) n->rows *= x->dim[d];
    n->means = n->rows, n->weights = n->width;
    return n->width > 0 ? PK_OK : pk_fail(call, PK_BAD_SHAPE, -1, "rows without elements");
}

pk_status layer_norm_forward(const pk_call *call) {
    norm n = {};
    PK_TRY(find(call, &call->in[0], &n));
    PK_TRY(pk_row_norm_forward(call, &n));
    return pk_each(call, n.rows, find_row{n});
}
pk_status layer_norm_backward_x(const pk_call *call) {
    norm n = {};
    PK_TRY(find(call, &call->in[1], &n));
    PK_TRY(pk_row_norm_backward_x(call, &n));
    return pk_each(call, n.rows, back_row{n});
}
pk_status layer_norm_backward_w(const pk_call *call) {
    norm n = {};
    PK_TRY(find(call, &call->in[1], &n));
    PK_TRY(pk_row_norm_backward_w(call, &n));
    return pk_each(call, n.width, weight_column{n});
}
} /* namespace */

PK_ROW_NORM_OP(layer_norm, "begin");
