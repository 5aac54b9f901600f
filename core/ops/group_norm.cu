/* group_norm: each group of channels of a sample normalised by its own mean and variance.
 *
 * A group of a sample is a row of floats that lie together; it has a block.  So has a channel where
 * sums go over the samples. */
#include "packed.cuh"
#include "reductions.cuh"

namespace {
const int THREADS = 256;

/* x, y, dy, dx [rows, channels, inner]; w, b, dw, db [channels] or NULL; mean, rstd [rows, groups] */
struct norm {
    const float *x, *w, *b, *dy, *mean, *rstd;
    float *y, *mean_out, *rstd_out, *dw, *db;
    int64_t rows, channels, inner, groups, each;
    double epsilon;
    int add[3];
    PK_DEVICE int64_t width() const { return each * inner; }
    PK_DEVICE int64_t channel(int64_t e) const { return blockIdx.x % groups * each + e / inner; }
    PK_DEVICE float scale(int64_t e) const { return w ? w[channel(e)] : 1.0f; }
};

struct normalise {
    norm n;
    PK_DEVICE void operator()() const {
        const int64_t r = blockIdx.x, width = n.width();
        const float *x = n.x + r * width;
        double sum = 0.0, squares = 0.0;
        for (int64_t e = threadIdx.x; e < width; e += THREADS) sum += x[e];
        const double mean = pk_block_sum(sum) / (double)width;
        for (int64_t e = threadIdx.x; e < width; e += THREADS) squares += (x[e] - mean) * (x[e] - mean);
        const double rstd = 1.0 / sqrt(pk_block_sum(squares) / (double)width + n.epsilon);
        for (int64_t e = threadIdx.x; e < width; e += THREADS) {
            const float v = (float)((x[e] - mean) * rstd);
            pk_put(n.y + r * width + e, v * n.scale(e) + (n.b ? n.b[n.channel(e)] : 0.0f), n.add[0]);
        }
        if (threadIdx.x != 0) return;
        pk_put(n.mean_out + r, (float)mean, n.add[1]);
        pk_put(n.rstd_out + r, (float)rstd, n.add[2]);
    }
};

/* dx = rstd (g - mean(g) - v mean(g v)) with g = dy w and v the normalised x */
struct back {
    norm n;
    PK_DEVICE void operator()() const {
        const int64_t r = blockIdx.x, width = n.width(), at = r * width;
        const float mean = n.mean[r], rstd = n.rstd[r];
        double sum = 0.0, with = 0.0;
        for (int64_t e = threadIdx.x; e < width; e += THREADS) {
            const double g = (double)n.dy[at + e] * n.scale(e);
            sum += g, with += g * ((n.x[at + e] - mean) * rstd);
        }
        const float middle = (float)(pk_block_sum(sum) / (double)width);
        const float slope = (float)(pk_block_sum(with) / (double)width);
        for (int64_t e = threadIdx.x; e < width; e += THREADS) {
            const float v = (n.x[at + e] - mean) * rstd, g = n.dy[at + e] * n.scale(e);
            pk_put(n.y + at + e, rstd * (g - middle - v * slope), n.add[0]);
        }
    }
};

struct weight {
    norm n;
    PK_DEVICE void operator()() const {
        const int64_t c = blockIdx.x, count = n.rows * n.inner;
        double dw = 0.0, db = 0.0;
        for (int64_t e = threadIdx.x; e < count; e += THREADS) {
            const int64_t r = e / n.inner, at = (r * n.channels + c) * n.inner + e % n.inner;
            const int64_t group = r * n.groups + c / n.each;
            dw += (double)n.dy[at] * ((n.x[at] - n.mean[group]) * n.rstd[group]);
            db += n.dy[at];
        }
        dw = pk_block_sum(dw), db = pk_block_sum(db);
        if (threadIdx.x != 0) return;
        if (n.dw) pk_put(n.dw + c, (float)dw, n.add[0]);
        if (n.db) pk_put(n.db + c, (float)db, n.add[1]);
    }
};

pk_status find(const pk_call *call, const pk_view *x, norm *n) {
    const int64_t groups = call->attr[0].i, channels = x->ndim < 2 ? 0 : x->dim[1];
    if (groups < 1 || channels == 0 || channels % groups)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld channels do not divide into %lld groups",
                       (long long)channels, (long long)groups);
    n->x = pk_f32(x), n->rows = x->dim[0], n->channels = channels, n->inner = pk_inner(x, 2);
    n->groups = groups, n->each = channels / groups;
    for (int32_t i = 0; i < 3; i++) n->add[i] = pk_adds(call, i);
    return n->inner > 0 ? PK_OK : pk_fail(call, PK_BAD_SHAPE, -1, "channels without elements");
}

pk_status group_norm_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *out = call->out;
    norm n = {};
    n.w = pk_f32(&call->in[1]), n.b = pk_f32(&call->in[2]);
    n.y = pk_f32(&out[0]), n.mean_out = pk_f32(&out[1]), n.rstd_out = pk_f32(&out[2]);
    n.epsilon = call->attr[1].f;
    PK_TRY(find(call, x, &n));
    PK_TRY(pk_check_size(call, "w", &call->in[1], n.channels));
    PK_TRY(pk_check_size(call, "b", &call->in[2], n.channels));
    PK_TRY(pk_check_size(call, "y", &out[0], pk_count(x)));
    PK_TRY(pk_check_size(call, "mean", &out[1], n.rows * n.groups));
    PK_TRY(pk_check_size(call, "rstd", &out[2], n.rows * n.groups));
    return PK_LAUNCH(call, pk_dim((unsigned)(n.rows * n.groups)), pk_dim(THREADS), normalise{n});
}
/* Attributes and sizes of both backward kernels. */
pk_status find_back(const pk_call *call, const pk_view *mean, norm *n) {
    const pk_view *dy = &call->in[0], *x = &call->in[1];
    n->dy = pk_f32(dy), n->mean = pk_f32(mean), n->rstd = pk_f32(mean + 1);
    PK_TRY(find(call, x, n));
    PK_TRY(pk_check_size(call, "dy", dy, pk_count(x)));
    PK_TRY(pk_check_size(call, "mean", mean, n->rows * n->groups));
    return pk_check_size(call, "rstd", mean + 1, n->rows * n->groups);
}
pk_status group_norm_backward_x(const pk_call *call) {
    norm n = {};
    n.w = pk_f32(&call->in[2]), n.y = pk_f32(&call->out[0]);
    PK_TRY(find_back(call, &call->in[3], &n));
    PK_TRY(pk_check_size(call, "w", &call->in[2], n.channels));
    PK_TRY(pk_check_size(call, "dx", &call->out[0], pk_count(&call->in[1])));
    return PK_LAUNCH(call, pk_dim((unsigned)(n.rows * n.groups)), pk_dim(THREADS), back{n});
}
pk_status group_norm_backward_w(const pk_call *call) {
    norm n = {};
    n.dw = pk_f32(&call->out[0]), n.db = pk_f32(&call->out[1]);
    PK_TRY(find_back(call, &call->in[2], &n));
    PK_TRY(pk_check_size(call, "dw", &call->out[0], n.channels));
    PK_TRY(pk_check_size(call, "db", &call->out[1], n.channels));
    return PK_LAUNCH(call, pk_dim((unsigned)n.channels), pk_dim(THREADS), weight{n});
}
} /* namespace */

PK_OP(group_norm,
      {"group_norm.forward(x: f32, w?: f32, b?: f32; groups: int, epsilon: float)"
       " -> (y: f32, mean: f32, rstd: f32)",
       group_norm_forward},
      {"group_norm.backward_x(dy: f32, x: f32, w?: f32, mean: f32, rstd: f32; groups: int)"
       " -> (dx: f32)",
       group_norm_backward_x},
      {"group_norm.backward_w(dy: f32, x: f32, mean: f32, rstd: f32; groups: int)"
       " -> (dw?: f32, db?: f32)",
       group_norm_backward_w});
