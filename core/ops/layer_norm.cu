/* layer_norm: each row normalised by its own mean and variance. */
#include "packed.cuh"

namespace {
/* x, y, dy, dx [rows, width]; w, b [width] or NULL; mean, rstd [rows] */
struct norm {
    const float *x, *w, *b, *dy, *mean, *rstd;
    float *y, *mean_out, *rstd_out, *dw, *db;
    int64_t rows, width;
    double epsilon;
    int add[3];
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
    n->x = pk_f32(x);
    for (int32_t i = 0; i < 3; i++) n->add[i] = pk_adds(call, i);
    return n->width > 0 ? PK_OK : pk_fail(call, PK_BAD_SHAPE, -1, "rows without elements");
}

pk_status layer_norm_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *out = call->out;
    norm n = {};
    n.w = pk_f32(&call->in[1]), n.b = pk_f32(&call->in[2]);
    n.y = pk_f32(&out[0]), n.mean_out = pk_f32(&out[1]), n.rstd_out = pk_f32(&out[2]);
    n.epsilon = call->attr[1].f;
    PK_TRY(find(call, x, &n));
    PK_TRY(pk_check_size(call, "w", &call->in[1], n.width));
    PK_TRY(pk_check_size(call, "b", &call->in[2], n.width));
    PK_TRY(pk_check_size(call, "y", &out[0], pk_count(x)));
    PK_TRY(pk_check_size(call, "mean", &out[1], n.rows));
    PK_TRY(pk_check_size(call, "rstd", &out[2], n.rows));
    return pk_each(call, n.rows, find_row{n});
}
/* Attributes and sizes of both backward kernels. */
pk_status find_back(const pk_call *call, const pk_view *mean, norm *n) {
    const pk_view *dy = &call->in[0], *x = &call->in[1];
    n->dy = pk_f32(dy), n->mean = pk_f32(mean), n->rstd = pk_f32(mean + 1);
    PK_TRY(find(call, x, n));
    PK_TRY(pk_check_size(call, "dy", dy, pk_count(x)));
    PK_TRY(pk_check_size(call, "mean", mean, n->rows));
    return pk_check_size(call, "rstd", mean + 1, n->rows);
}
pk_status layer_norm_backward_x(const pk_call *call) {
    norm n = {};
    n.w = pk_f32(&call->in[2]), n.y = pk_f32(&call->out[0]);
    PK_TRY(find_back(call, &call->in[3], &n));
    PK_TRY(pk_check_size(call, "w", &call->in[2], n.width));
    PK_TRY(pk_check_size(call, "dx", &call->out[0], n.rows * n.width));
    return pk_each(call, n.rows, back_row{n});
}
pk_status layer_norm_backward_w(const pk_call *call) {
    norm n = {};
    n.dw = pk_f32(&call->out[0]), n.db = pk_f32(&call->out[1]);
    PK_TRY(find_back(call, &call->in[2], &n));
    PK_TRY(pk_check_size(call, "dw", &call->out[0], n.width));
    PK_TRY(pk_check_size(call, "db", &call->out[1], n.width));
    return pk_each(call, n.width, weight_column{n});
}
} /* namespace */

PK_OP(layer_norm,
      {"layer_norm.forward(x: f32, w?: f32, b?: f32; begin: int, epsilon: float)"
       " -> (y: f32, mean: f32, rstd: f32)",
       layer_norm_forward},
      {"layer_norm.backward_x(dy: f32, x: f32, w?: f32, mean: f32, rstd: f32; begin: int)"
       " -> (dx: f32)",
       layer_norm_backward_x},
      {"layer_norm.backward_w(dy: f32, x: f32, mean: f32, rstd: f32; begin: int)"
       " -> (dw?: f32, db?: f32)",
       layer_norm_backward_w});
