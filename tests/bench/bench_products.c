/* The benchmark's way into the core: products and convolutions of one level, repeated in C and
 * timed. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "convolutions.h"
#include "level.h"
#include "pool.h"
#include "products.h"
#include "test_levels.h"

#undef pk_multiply
#undef pk_conv_forward
#undef pk_conv_input_gradient
#undef pk_conv_filter_gradient
#define F(level)                                                                                 \
    void pk_multiply_##level(const pk_call *, const pk_product *);                               \
    void pk_conv_forward_##level(const pk_call *, const pk_conv *, const float *, const float *, \
                                 const float *, int32_t, int32_t, float *);                      \
    void pk_conv_input_gradient_##level(const pk_call *, const pk_conv *, const float *,         \
                                        const float *, int32_t, float *);                        \
    void pk_conv_filter_gradient_##level(const pk_call *, const pk_conv *, const float *,        \
                                         const float *, int32_t, float *);
PK_EACH_LEVEL(F)
#undef F
typedef struct {
    const char *level;
    void (*multiply)(const pk_call *, const pk_product *);
    void (*forward)(const pk_call *, const pk_conv *, const float *, const float *, const float *,
                    int32_t, int32_t, float *);
    void (*input)(const pk_call *, const pk_conv *, const float *, const float *, int32_t, float *);
    void (*filter)(const pk_call *, const pk_conv *, const float *, const float *, int32_t,
                   float *);
} variant;
#define F(level)                                                                           \
    {#level, pk_multiply_##level, pk_conv_forward_##level, pk_conv_input_gradient_##level, \
     pk_conv_filter_gradient_##level},
static const variant variants[] = {PK_EACH_LEVEL(F)};
#undef F

#define EXPORT __attribute__((visibility("default")))

EXPORT const char *bench_best_level(void) { return pk_level_name(pk_level_best()); }
EXPORT void *bench_pool(int32_t threads) { return pk_pool_create(threads, 0); }

/* One thread is measured by its own processor time, which other processes do not lengthen. */
static double now(const void *pool) {
    struct timespec t;
    clock_gettime(pk_pool_threads(pool) == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const variant *find(const char *level) {
    const int32_t i = pk_level_find(level);
    return i >= 0 && pk_level_supported(i) ? &variants[i] : NULL;
}

/* Seconds of `repeats` products C[m, n] = op(A) op(B); negative for a level that this machine
 * lacks. */
EXPORT double bench_product(const char *level, void *pool, int64_t m, int64_t n, int64_t k,
                            int32_t ta, int32_t tb, const float *a, const float *b, float *c,
                            int64_t repeats) {
    const variant *v = find(level);
    if (!v) return -1;
    const pk_call call = {.pool = pool};
    const pk_product p = {.m = m,
                          .n = n,
                          .k = k,
                          .a = a,
                          .a_stride = ta ? m : k,
                          .a_transposed = ta,
                          .b = b,
                          .b_stride = tb ? k : n,
                          .b_transposed = tb,
                          .c = c,
                          .c_stride = n};
    const double start = now(pool);
    for (int64_t i = 0; i < repeats; i++) v->multiply(&call, &p);
    return now(pool) - start;
}

/* The same for a convolution; which: 0 forward, 1 input gradient, 2 filter gradient.  shape: the
 * numbers of pk_conv. */
EXPORT double bench_conv(const char *level, void *pool, int32_t which, const int64_t *shape,
                         float *x, float *w, float *y, int64_t repeats) {
    const variant *v = find(level);
    if (!v) return -1;
    const pk_call call = {.pool = pool};
    pk_conv c;
    memcpy(&c, shape, sizeof c);
    const double start = now(pool);
    for (int64_t i = 0; i < repeats; i++) {
        if (which == 0) v->forward(&call, &c, x, w, NULL, 0, 0, y);
        if (which == 1) v->input(&call, &c, y, w, 0, x);
        if (which == 2) v->filter(&call, &c, x, y, 0, w);
    }
    return now(pool) - start;
}
