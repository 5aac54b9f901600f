/* tree_path: the inner nodes of a complete binary tree on the way to a class. */
#include "packed.cuh"

namespace {
const float MISSING = -100.0f; /* as in paddlecli/ops/tree_path.py */

struct path_each {
    int64_t *ids; /* [n, depth], as bits */
    float *bits;
    const int64_t *label;
    int64_t classes, depth;
    int add;
    PK_DEVICE void operator()(int64_t i) const {
        const int64_t v = label[i / depth] + classes, level = i % depth, node = v >> (level + 1);
        ids[i] = node - 1;
        pk_put(bits + i, node > 0 ? (float)((v >> level) & 1) : MISSING, add);
    }
};

pk_status tree_path_forward(const pk_call *call) {
    const pk_view *label = &call->in[0], *ids = &call->out[0], *bits = &call->out[1];
    const int64_t classes = call->attr[0].i, n = pk_count(label), depth = pk_inner(ids, 1);
    if (classes < 2 || classes > INT32_MAX || pk_adds(call, 0))
        return pk_fail(call, PK_BAD_CALL, -1, "%lld classes", (long long)classes);
    if (depth > 32 || (2 * classes - 1) >> depth != 1)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld levels for %lld classes", (long long)depth,
                       (long long)classes);
    PK_TRY(pk_check_size(call, "ids", ids, n * depth));
    PK_TRY(pk_check_size(call, "bits", bits, n * depth));
    PK_TRY(pk_check_index(call, pk_i64(label), n, classes, INT64_MIN, 1,
                          "label is %lld, must be below %lld"));
    return pk_each(call, n * depth,
                   path_each{pk_i64(ids), pk_f32(bits), pk_i64(label), classes, depth,
                             pk_adds(call, 1)});
}
} /* namespace */

PK_OP(tree_path,
      {"tree_path.forward(label: i64; classes: int) -> (ids: i64, bits: f32)", tree_path_forward});
