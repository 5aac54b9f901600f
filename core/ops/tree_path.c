/* tree_path: the inner nodes of a complete binary tree on the way to a class. */
#include "packed.h"
#include "rows.h"

#define MISSING (-100.0f) /* as in paddlecli/ops/tree_path.py */

/* label [n]; ids, bits [n, depth] */
static pk_status tree_path_forward(const pk_call *call) {
    const pk_view *label = &call->in[0], *ids = &call->out[0], *bits = &call->out[1];
    const int64_t classes = call->attr[0].i, n = pk_count(label), depth = pk_inner(ids, 1);
    if (classes < 2 || classes > INT32_MAX || pk_adds(call, 0))
        return pk_fail(call, PK_BAD_CALL, -1, "%lld classes", (long long)classes);
    if (depth > 32 || (2 * classes - 1) >> depth != 1)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld levels for %lld classes", (long long)depth,
                       (long long)classes);
    pk_status bad = pk_check_size(call, "ids", ids, n * depth);
    if (!bad) bad = pk_check_size(call, "bits", bits, n * depth);
    if (!bad) bad = pk_check_index(call, pk_i64(label), n, classes, INT64_MIN, "label");
    if (bad) return bad;
    for (int64_t i = 0; i < n * depth; i++) {
        const int64_t v = pk_i64(label)[i / depth] + classes, level = i % depth,
                      node = v >> (level + 1);
        const float bit = node > 0 ? (float)((v >> level) & 1) : MISSING;
        pk_i64(ids)[i] = node - 1;
        pk_f32(bits)[i] = pk_adds(call, 1) ? pk_f32(bits)[i] + bit : bit;
    }
    return PK_OK;
}

PK_OP(tree_path,
      {"tree_path.forward(label: i64; classes: int) -> (ids: i64, bits: f32)", tree_path_forward});
