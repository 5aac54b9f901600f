/* segment_norms: the norm of each parameter's gradient in a flat range, 0 where it is not to be
 * clipped. */
#include "updates.cuh"

namespace {
/* A block for each segment. */
struct segment_norm {
    float *norm;
    const float *g;
    const int64_t *bounds; /* [segments, 2] */
    const int32_t *clips;
    int add;
    PK_DEVICE void operator()() const {
        const int64_t s = blockIdx.x, from = bounds[2 * s], n = clips[s] ? bounds[2 * s + 1] : 0;
        double sum = 0.0;
        for (int64_t i = from + threadIdx.x; i < from + n; i += PK_NORM_BLOCK)
            sum += (double)g[i] * (double)g[i];
        sum = pk_block_sum(sum);
        if (threadIdx.x == 0) pk_put(norm + s, (float)sqrt(sum), add);
    }
};

/* g [n], bounds [segments, 2], clips [segments] -> norm [segments] */
pk_status forward(const pk_call *call) {
    const pk_view *in = call->in;
    const int64_t segments = in[1].dim[0];
    PK_TRY(pk_update_size(call, "clips", &in[2], segments));
    PK_TRY(pk_update_size(call, "norm", &call->out[0], segments));
    return PK_LAUNCH(call, pk_dim((unsigned)segments), pk_dim(PK_NORM_BLOCK),
                     segment_norm{pk_f32(&call->out[0]), pk_f32(&in[0]), pk_i64(&in[1]),
                                  pk_i32(&in[2]), pk_adds(call, 0)});
}
} /* namespace */

PK_OP(segment_norms,
      {"segment_norms.forward(g: f32, bounds: i64, clips: i32) -> (norm: f32, work: f64)",
       forward});
