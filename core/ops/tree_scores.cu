/* tree_scores: log-probabilities of all classes from the turns of a complete binary tree. */
#include "elementwise.cuh"
#include "packed.cuh"

namespace {
/* z [n, nodes]; y [n, nodes + 1]. A class adds up the turns on its way from the root. */
struct class_each {
    float *y;
    const float *z;
    int64_t nodes;
    int add;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t r = e / (nodes + 1), leaf = e % (nodes + 1) + nodes + 1;
        int level = 0;
        while ((leaf >> (level + 1)) > 1) level++;
        float sum = 0.0f;
        for (; level >= 0; level--) {
            const float z_node = z[r * nodes + (leaf >> (level + 1)) - 1];
            sum -= pk_softplus((leaf >> level) & 1 ? -z_node : z_node);
        }
        pk_put(y + e, sum, add);
    }
};

pk_status tree_scores_forward(const pk_call *call) {
    const pk_view *z = &call->in[0], *y = &call->out[0];
    const int64_t nodes = pk_inner(z, 1);
    if (nodes < 1) return pk_fail(call, PK_BAD_SHAPE, -1, "a tree without inner nodes");
    PK_TRY(pk_check_size(call, "y", y, z->dim[0] * (nodes + 1)));
    return pk_each(call, pk_count(y), class_each{pk_f32(y), pk_f32(z), nodes, pk_adds(call, 0)});
}
} /* namespace */

PK_OP(tree_scores, {"tree_scores.forward(z: f32) -> (y: f32, work: f32)", tree_scores_forward});
