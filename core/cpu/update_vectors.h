/* update_vectors.h: the loop of the rules that have a square root, two vectors at once: where
 * nothing clips or regularises, the root and the division are most of an update. */
#ifndef PK_UPDATE_VECTORS_H
#define PK_UPDATE_VECTORS_H
#include "pk_simd.h"
#include "updates.h"

/* 1 where clipping and regularising leave every gradient as it is, but for turning -0 into 0. */
static inline int pk_update_is_plain(pk_update u) {
    return u.scale == 1.0f && u.limit == INFINITY && u.l2 == 0.0f && u.l1 == 0.0f;
}

/* The loop of a rule that moves by a / (sqrt(square) + epsilon), for plain gradients.  `before` gives
 * `a` and `square` of elements i to i + c, at most sixteen and maybe none, and moves the slots;
 * `after` moves p by `step`. */
#define PK_UPDATE_ROOTS(n, i, c, a, square, before, epsilon, step, after)                          \
    for (int64_t first_ = 0; first_ < (n); first_ += 32) {                                         \
        pk_vec a_[2], root_[2];                                                                    \
        for (int j_ = 0; j_ < 2; j_++) {                                                           \
            const int64_t i = first_ + 16 * j_, c = pk_max_i64(0, (n) - i);                        \
            pk_vec a, square;                                                                      \
            before;                                                                                \
            a_[j_] = a, root_[j_] = square;                                                        \
        }                                                                                          \
        pk_sqrt2(&root_[0], &root_[1]);                                                            \
        for (int j_ = 0; j_ < 2; j_++) {                                                           \
            const int64_t i = first_ + 16 * j_, c = pk_max_i64(0, (n) - i);                        \
            const pk_vec step = pk_div(a_[j_], pk_add(root_[j_], pk_set1(epsilon)));               \
            after;                                                                                 \
        }                                                                                          \
    }
#endif
