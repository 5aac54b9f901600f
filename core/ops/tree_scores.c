/* tree_scores: log-probabilities of all classes from the turns of a complete binary tree. */
#include "packed.h"

/* z [n, nodes]; y [n, nodes + 1]; inner [n, nodes + 1]: log-probabilities of nodes 1 .. nodes */
typedef struct tree {
    const float *z;
    float *y, *inner;
    int64_t nodes;
    int add;
} tree;

static void tree_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const tree *k = context;
    (void)thread, (void)scratch;
    for (int64_t r = begin; r < end; r++) {
        const float *z = k->z + r * k->nodes;
        float *inner = k->inner + r * (k->nodes + 1), *y = k->y + r * (k->nodes + 1);
        inner[1] = 0.0f;
        for (int64_t node = 1; node <= k->nodes; node++) {
            const float turns[2] = {inner[node] - pk_softplus1(z[node - 1]),
                                    inner[node] - pk_softplus1(-z[node - 1])};
            for (int64_t bit = 0; bit < 2; bit++) {
                const int64_t child = 2 * node + bit, leaf = child - k->nodes - 1;
                if (leaf < 0) inner[child] = turns[bit];
                else y[leaf] = (k->add ? y[leaf] : 0.0f) + turns[bit];
            }
        }
    }
}

static pk_status tree_scores_forward(const pk_call *call) {
    const pk_view *z = &call->in[0], *y = &call->out[0], *work = &call->out[1];
    const int64_t n = z->dim[0], nodes = pk_inner(z, 1);
    tree k = {pk_f32(z), pk_f32(y), pk_f32(work), nodes, pk_adds(call, 0)};
    if (nodes < 1) return pk_fail(call, PK_BAD_SHAPE, -1, "a tree without inner nodes");
    pk_status bad = pk_check_size(call, "y", y, n * (nodes + 1));
    if (!bad) bad = pk_check_size(call, "work", work, n * (nodes + 1));
    if (bad) return bad;
    pk_parallel(call, n, pk_max_i64(1, 1024 / nodes), tree_task, &k);
    return PK_OK;
}

PK_OP(tree_scores, {"tree_scores.forward(z: f32) -> (y: f32, work: f32)", tree_scores_forward});
