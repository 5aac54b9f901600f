/* The thread pool: every index once, scratch of its own, nesting, sleeping and waking, cheap where
 * there is one piece. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <time.h>

#include "check.h"

typedef struct {
    _Atomic int32_t *seen;
    const pk_call *call;
    int64_t inner;
    _Atomic int32_t wrong;
} work;

static void count_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    work *w = context;
    (void)thread;
    memset(scratch, (int)(begin & 127), PK_SCRATCH_BYTES / 64);
    for (int64_t i = begin; i < end; i++) atomic_fetch_add(&w->seen[i], 1);
    const unsigned char *bytes = scratch;
    for (int i = 0; i < 1000; i++)
        if (bytes[i] != (begin & 127)) atomic_fetch_add(&w->wrong, 1);
}

static void outer_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    work *w = context;
    (void)thread;
    unsigned char *mine = scratch, *between = pk_scratch(w->call);
    mine[0] = 1;
    between[0] = 2;
    CHECK(pk_threads(w->call) == 1, "a task has one thread, not %d", pk_threads(w->call));
    for (int64_t i = begin; i < end; i++) {
        work inner = {w->seen + i * w->inner, w->call, 0, 0};
        pk_parallel(w->call, w->inner, 3, count_task, &inner);
        atomic_fetch_add(&w->wrong, atomic_load(&inner.wrong));
    }
    if (mine[0] != 1 || between[0] != 2) atomic_fetch_add(&w->wrong, 1);
}

static void check_once(const char *what, const _Atomic int32_t *seen, int64_t n, const work *w) {
    for (int64_t i = 0; i < n; i++)
        CHECK(atomic_load(&seen[i]) == 1, "%s: index %ld ran %d times", what, (long)i, seen[i]);
    CHECK(atomic_load(&w->wrong) == 0, "%s: scratch was shared", what);
}

static void try_call(const pk_call *call) {
    for (int64_t n = 0; n < 40; n += 1 + n / 8)
        for (int64_t grain = 0; grain < 9; grain += 4) {
            _Atomic int32_t seen[64] = {0};
            work w = {seen, call, 0, 0};
            pk_parallel(call, n, grain, count_task, &w);
            check_once("flat", seen, n, &w);
            for (int64_t i = n; i < 64; i++)
                CHECK(atomic_load(&seen[i]) == 0, "index %ld of %ld ran", (long)i, (long)n);
        }
    _Atomic int32_t seen[8 * 11] = {0};
    work w = {seen, call, 11, 0};
    pk_parallel(call, 8, 1, outer_task, &w);
    check_once("nested", seen, 8 * 11, &w);
}

static void tiny_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread;
    (void)scratch;
    int64_t *sum = context;
    for (int64_t i = begin; i < end; i++) sum[i] += i;
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Jobs right after each other, and after pauses in which the workers fall asleep. */
static void try_many(const pk_call *call) {
    int64_t sums[16] = {0};
    const struct timespec pause = {0, 200000};
    for (int i = 0; i < 20000; i++) pk_parallel(call, 16, 1, tiny_task, sums);
    for (int i = 0; i < 200; i++) {
        nanosleep(&pause, NULL);
        pk_parallel(call, 16, 2, tiny_task, sums);
    }
    for (int i = 0; i < 16; i++) CHECK(sums[i] == 20200 * i, "sum %d is %ld", i, (long)sums[i]);
}

int main(void) {
    make_calls();
    for (int i = 0; i < CALLS; i++) try_call(&test_calls[i]);
    for (int i = 0; i < CALLS; i++) try_many(&test_calls[i]);
    CHECK(pk_pool_threads(test_pools[2]) == 2, "a pool of two has %d",
          pk_pool_threads(test_pools[2]));
    int64_t sums[16] = {0};
    const double start = seconds();
    for (int i = 0; i < 1000000; i++) pk_parallel(&test_calls[2], 4, 16, tiny_task, sums);
    const double inline_ns = (seconds() - start) * 1e3;
    const double again = seconds();
    for (int i = 0; i < 100000; i++) pk_parallel(&test_calls[2], 2, 1, tiny_task, sums);
    printf("one piece: %.1f ns, two pieces on two threads: %.0f ns\n", inline_ns,
           (seconds() - again) * 1e4);
    for (int i = 0; i < 100; i++) pk_pool_free(pk_pool_create(1 + i % 4, 0));
    return end_of_test("pool");
}
