/* updates.h: what the optimizer kernels share.
 *
 * An optimizer is a rule over single elements; the walks below apply it to the segments of a flat range, or to the rows of a
 * table whose gradient is row-sparse.  Per element the order is clip, regularise, rule, so weight decay is never clipped.
 * Every step is an IEEE +, -, *, / or square root of its own (no fma), so all instruction-set levels agree bit for bit and
 * the compiler may vectorise the loops as it likes. */
#ifndef PK_UPDATES_H
#define PK_UPDATES_H
#include <math.h>

#include "pk_kernel.h"

#ifndef PK_BOTH
#define PK_BOTH
#endif

/* Elements between cuts.  Norms are summed in chunks of this size, so it is part of the numbers: do not tune it. */
#define PK_UPDATE_CHUNK 4096
#define PK_UPDATE_MAX_SLOTS 3

/* The common parts of the signatures; paddlecli/ops/_optimizer.py writes the same ones. */
#define PK_FLAT_PORTS                                                                                   \
    "lr: f32, scale?: f32, bounds: i64, rates: f32, l2: f32, l1: f32, clips: i32; clip_value: float"
#define PK_ROWS_PORTS "lr: f32, scale?: f32; rate: float, l2: float, l1: float, clip_value: float"

/* How many common attributes come before a rule's own ones. */
#define PK_FLAT_ATTRS 1
#define PK_ROWS_ATTRS 4

/* What a rule knows of the parameter that its elements belong to. */
typedef struct pk_update {
    float rate;    /* learning rate times the parameter's own multiplier */
    float scale;   /* factor from clipping by norm, 1 without */
    float limit;   /* clipping by value, INFINITY without */
    float l2, l1;  /* regulariser coefficients */
    float trust;   /* rules with norms: what `trust` gave for this parameter */
} pk_update;

/* settings: the rule's own numbers.  p [n], g [n] or NULL for a zero gradient, slots: the rule's state tensors, [n] each. */
typedef void (*pk_update_piece)(const void *settings, const pk_update *update, float *p, const float *g,
                                float *const *slots, int64_t n);
/* The first pass of a rule with norms: adds two sums of squares; it may move the slots, but not p. */
typedef void (*pk_update_norms)(const void *settings, const pk_update *update, const float *p, const float *g,
                                float *const *slots, int64_t n, double sums[2]);

typedef struct pk_rule {
    int32_t slots;          /* state tensors of p's size */
    int32_t counted;        /* the signature has the input `count` */
    pk_update_piece piece;
    pk_update_norms norms;  /* NULL: one pass over memory is enough */
    float (*trust)(const void *settings, const pk_update *update, double first, double second);
} pk_rule;

#define pk_update_flat PK_LEVEL_NAME(pk_update_flat)
#define pk_update_rows PK_LEVEL_NAME(pk_update_rows)
#define pk_check_segments PK_LEVEL_NAME(pk_check_segments)
#define pk_first_segment PK_LEVEL_NAME(pk_first_segment)
#define pk_square_sum PK_LEVEL_NAME(pk_square_sum)

/* p, g, slots, count if counted, then PK_FLAT_PORTS -> p, slots, and for a rule with norms
 * work f64 [2 * chunks + 3 * segments], chunks = ceil(n / PK_UPDATE_CHUNK). */
pk_status pk_update_flat(const pk_call *call, const pk_rule *rule, const void *settings);

/* p, ids, values, rows, slots, count if counted, then PK_ROWS_PORTS -> p, slots, and for a rule with norms
 * work f64 [2 * rows of p + 1].  moves: rows without a gradient move too (a zero gradient is not "nothing to do"). */
pk_status pk_update_rows(const pk_call *call, const pk_rule *rule, const void *settings, int moves);

/* Checks that bounds [segments, 2] = (offset, length) ascend without overlap inside 0..n. */
pk_status pk_check_segments(const pk_call *call, const pk_view *bounds, int64_t n);
/* Index of the first segment that ends after element x. */
int64_t pk_first_segment(const int64_t *bounds, int64_t segments, int64_t x);
/* Sum of squares of x [n] in double precision: 16 lanes, then a tree, so the order depends on n alone. */
double pk_square_sum(const float *x, int64_t n);

/* Number of this update, 1 for the first one.  An input of another size is refused by the walk that follows. */
static inline double pk_update_number(const pk_call *call, const pk_rule *rule, int is_rows) {
    const pk_view *count = &call->in[(is_rows ? 4 : 2) + rule->slots];
    return pk_count(count) == 1 ? (double)pk_i64(count)[0] + 1.0 : 1.0;
}

/* Clip, then regularise.  The comparisons are written so that a NaN stays a NaN. */
PK_BOTH static inline float pk_update_gradient(const pk_update u, float g, float p) {
    g *= u.scale;
    g = g > u.limit ? u.limit : g;
    g = g < -u.limit ? -u.limit : g;
    float sign = p > 0.0f ? 1.0f : p < 0.0f ? -1.0f : 0.0f;
    return g + (u.l2 * p + u.l1 * sign);
}

/* The loop of a rule: d is the clipped and regularised gradient of element i.  Written twice, so that rows without a
 * gradient read none. */
#define PK_UPDATE_EACH(u, p, g, n, i, d, ...)                                  \
    do {                                                                       \
        if (g) {                                                               \
            for (int64_t i = 0; i < (n); i++) {                                \
                const float d = pk_update_gradient(u, (g)[i], (p)[i]);         \
                __VA_ARGS__                                                    \
            }                                                                  \
        } else {                                                               \
            for (int64_t i = 0; i < (n); i++) {                                \
                const float d = pk_update_gradient(u, 0.0f, (p)[i]);           \
                __VA_ARGS__                                                    \
            }                                                                  \
        }                                                                      \
    } while (0)

#endif
