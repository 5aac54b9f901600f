/* group_norm: each group of channels of a sample normalised by its own mean and variance.
 *
 * A group of a sample is a row of floats that lie together; it has a block.  So has a channel where
 * sums go over the samples. */
#include "packed.cuh"
#include "row_norm.h"
#include "reductions.cuh"

namespace {
const int THREADS = 256;

/* x, y, dy, dx [rows, channels, inner]; w, b, dw, db [channels] or NULL; mean, rstd [rows, groups] */
struct norm : pk_row_norm {
    int64_t rows, channels, inner, groups, each;
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
    n->rows = x->dim[0], n->channels = channels, n->inner = pk_inner(x, 2);
    n->groups = groups, n->each = channels / groups;
    n->means = n->rows * groups, n->weights = channels;
    return n->inner > 0 ? PK_OK : pk_fail(call, PK_BAD_SHAPE, -1, "channels without elements");
}

pk_status group_norm_forward(const pk_call *call) {
    norm n = {};
    PK_TRY(find(call, &call->in[0], &n));
    PK_TRY(pk_row_norm_forward(call, &n));
    return PK_LAUNCH(call, pk_dim((unsigned)n.means), pk_dim(THREADS), normalise{n});
}
pk_status group_norm_backward_x(const pk_call *call) {
    norm n = {};
    PK_TRY(find(call, &call->in[1], &n));
    PK_TRY(pk_row_norm_backward_x(call, &n));
    return PK_LAUNCH(call, pk_dim((unsigned)n.means), pk_dim(THREADS), back{n});
}
pk_status group_norm_backward_w(const pk_call *call) {
    norm n = {};
    PK_TRY(find(call, &call->in[1], &n));
    PK_TRY(pk_row_norm_backward_w(call, &n));
    return PK_LAUNCH(call, pk_dim((unsigned)n.channels), pk_dim(THREADS), weight{n});
}
} /* namespace */

PK_ROW_NORM_OP(group_norm, "groups");
