/* check.h: what the C tests share: a counter of failures, a small random generator, levels and
 * pools. */
#ifndef PK_CHECK_H
#define PK_CHECK_H
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "level.h"
#include "pk_kernel.h"
#include "pool.h"
#include "test_levels.h"

static int failures;
#define CHECK(condition, ...)                                      \
    do {                                                           \
        if (!(condition) && failures++ < 20) {                     \
            printf("%s:%d: %s: ", __FILE__, __LINE__, #condition); \
            printf(__VA_ARGS__);                                   \
            printf("\n");                                          \
        }                                                          \
    } while (0)

static uint64_t random_state = 88172645463325252ull;
static inline uint32_t next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32);
}
static inline int64_t random_below(int64_t n) { return (int64_t)(next_random() % (uint64_t)n); }
static inline float random_float(void) { return (float)next_random() / 2147483648.0f - 1.0f; }
/* n random floats in memory of exactly that size, so that the address sanitizer sees every step
 * outside. */
static inline float *random_floats(int64_t n) {
    float *p = malloc((size_t)(n > 0 ? n : 1) * sizeof *p);
    for (int64_t i = 0; i < n; i++) p[i] = random_float();
    return p;
}
static inline float *copy_floats(const float *from, int64_t n) {
    float *p = malloc((size_t)(n > 0 ? n : 1) * sizeof *p);
    memcpy(p, from, (size_t)n * sizeof *p);
    return p;
}
static inline int same_bits(const float *a, const float *b, int64_t n) {
    return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

/* The calls that every primitive is tried with: alone, one thread, two, three with the smallest
 * grain. */
#define CALLS 4
static pk_pool *test_pools[CALLS];
static pk_call test_calls[CALLS];
static inline void make_calls(void) {
    test_pools[1] = pk_pool_create(1, 0);
    test_pools[2] = pk_pool_create(2, 0);
    test_pools[3] = pk_pool_create(3, 1);
    for (int i = 0; i < CALLS; i++) test_calls[i].pool = test_pools[i];
}
static inline int end_of_test(const char *name) {
    for (int i = 0; i < CALLS; i++) pk_pool_free(test_pools[i]);
    printf("%s: %s\n", name, failures ? "FAILED" : "ok");
    return failures ? 1 : 0;
}
/* Levels with fma agree bit for bit; the baseline rounds twice. */
static inline int has_fma(const char *level) { return strcmp(level, "baseline") != 0; }

#endif
