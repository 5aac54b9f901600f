/* Threads that wait for work, with a barrier that spins briefly and then sleeps.
 *
 * One job at a time.  Its pieces are dealt out in stretches, one to each thread, so that from job to
 * job the same thread meets the same part of a buffer, which its cache still holds; a thread that is
 * done takes from the others' stretches.  A stretch's `ticket` holds the job's number in its upper
 * half and the next piece in its lower half, so a piece is taken by one compare-and-swap that fails
 * when the job is another one by now.  The owner closes all tickets before it writes the next job's
 * fields: a worker that read fields of two jobs then loses its swap and reads again. */
#define _GNU_SOURCE
#include "pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "pk_kernel.h"

/* A waiting thread first spins, then offers its processor at every look, then sleeps.  Waking takes
 * tens of microseconds: a worker that slept between the products of one step would come too late
 * for every one of them. */
#define SPIN_NS 20000
#define AWAKE_NS 200000
#define CLOSED 0xffffffffu /* piece number of a ticket that gives out no piece */
/* A task may call pk_parallel or pk_scratch again, and that call's tasks once more.  Each depth has
 * a buffer for pk_scratch and one for the tasks started there. */
#define DEPTHS 3
#define SLOTS (2 * DEPTHS)

typedef struct {
    _Alignas(64) _Atomic uint64_t ticket;
    _Atomic uint32_t end; /* the piece behind the stretch */
} pk_stretch;

struct pk_pool {
    _Alignas(64) _Atomic uint32_t job; /* number of the job whose tickets are open */
    _Atomic(pk_task) task;
    _Atomic(void *) context;
    _Atomic int64_t n, grain;
    _Atomic uint32_t pieces;
    _Atomic int32_t dealt; /* stretches of the job, the first ones of the array */
    _Alignas(64) _Atomic uint32_t done;
    _Alignas(64) _Atomic int32_t sleepers;
    _Atomic int32_t owner_sleeps;
    _Atomic int32_t stop;
    pthread_mutex_t lock;
    pthread_cond_t work, finished;
    int32_t threads, smallest_grain;
    int32_t started;
    pthread_t *handles;
    pk_stretch *stretches; /* [threads] */
    unsigned char *scratch;
};

/* Where this thread stands: inside how many tasks, as which thread of its pool. */
typedef struct {
    int32_t depth, thread;
} pk_place;
static _Thread_local pk_place place __attribute__((tls_model("initial-exec")));

/* Scratch for calls without a pool, which only tests make: taken when a thread first asks, given
 * back when it ends. */
static pthread_key_t lone_key;
static pthread_once_t lone_once = PTHREAD_ONCE_INIT;
static void make_lone_key(void) { pthread_key_create(&lone_key, free); }
static unsigned char *lone_scratch(void) {
    pthread_once(&lone_once, make_lone_key);
    unsigned char *scratch = pthread_getspecific(lone_key);
    if (!scratch) {
        scratch = aligned_alloc(PK_ALIGN, (size_t)SLOTS * PK_SCRATCH_BYTES);
        pthread_setspecific(lone_key, scratch);
    }
    return scratch;
}

static inline void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    __asm__ volatile("yield");
#endif
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void *slot_of(pk_pool *pool, int32_t thread, int32_t slot) {
    if (slot >= SLOTS) slot = SLOTS - 2 + (slot & 1);
    if (!pool) return lone_scratch() + (size_t)slot * PK_SCRATCH_BYTES;
    return pool->scratch + ((size_t)thread * SLOTS + (size_t)slot) * PK_SCRATCH_BYTES;
}

static void run_range(pk_pool *pool, pk_task task, void *context, int64_t begin, int64_t end,
                      int32_t thread) {
    const pk_place before = place;
    void *scratch = slot_of(pool, thread, 2 * before.depth + 1);
    place = (pk_place){before.depth + 1, thread};
    task(context, begin, end, thread, scratch);
    place = before;
}

/* Takes one piece of the stretch and runs it; 0 when none is left there. */
static int take_piece(pk_pool *pool, pk_stretch *stretch, int32_t thread) {
    for (;;) {
        uint64_t ticket = atomic_load(&stretch->ticket);
        const uint32_t piece = (uint32_t)ticket;
        if (piece == CLOSED || piece >= atomic_load(&stretch->end)) return 0;
        const uint32_t pieces = atomic_load(&pool->pieces);
        const pk_task task = atomic_load(&pool->task);
        void *context = atomic_load(&pool->context);
        const int64_t n = atomic_load(&pool->n), grain = atomic_load(&pool->grain);
        if (!atomic_compare_exchange_strong(&stretch->ticket, &ticket, ticket + 1)) continue;
        const int64_t begin = (int64_t)piece * grain;
        run_range(pool, task, context, begin, pk_min_i64(begin + grain, n), thread);
        if (atomic_fetch_add(&pool->done, 1) + 1 == pieces && atomic_load(&pool->owner_sleeps)) {
            pthread_mutex_lock(&pool->lock);
            pthread_cond_signal(&pool->finished);
            pthread_mutex_unlock(&pool->lock);
        }
        return 1;
    }
}

/* Takes pieces of the job until none is left, from the thread's own stretch first. */
static void take_pieces(pk_pool *pool, int32_t thread) {
    const int32_t dealt = atomic_load(&pool->dealt);
    for (int32_t i = 0; i < dealt; i++)
        while (take_piece(pool, &pool->stretches[(thread + i) % dealt], thread)) continue;
}

/* One look's pause; 0 when it is time to sleep. */
static int wait_more(int64_t start) {
    const int64_t waited = now_ns() - start;
    if (waited > SPIN_NS) sched_yield();
    return waited < AWAKE_NS;
}

/* 1 as soon as the job is another one than `seen`, 0 when it is time to sleep. */
static int spin_for_work(pk_pool *pool, uint32_t seen) {
    const int64_t start = now_ns();
    do {
        for (int i = 0; i < 32; i++) {
            if (atomic_load_explicit(&pool->job, memory_order_relaxed) != seen) return 1;
            relax();
        }
        if (atomic_load(&pool->stop)) return 1;
    } while (wait_more(start));
    return 0;
}

static void sleep_for_work(pk_pool *pool, uint32_t seen) {
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->sleepers, 1);
    while (!atomic_load(&pool->stop) && atomic_load(&pool->job) == seen)
        pthread_cond_wait(&pool->work, &pool->lock);
    atomic_fetch_sub(&pool->sleepers, 1);
    pthread_mutex_unlock(&pool->lock);
}

typedef struct {
    pk_pool *pool;
    int32_t thread;
} pk_worker;

static void *worker_main(void *argument) {
    const pk_worker self = *(pk_worker *)argument;
    free(argument);
    pk_pool *pool = self.pool;
    uint32_t seen = 0;
    while (!atomic_load(&pool->stop)) {
        if (!spin_for_work(pool, seen)) sleep_for_work(pool, seen);
        seen = atomic_load(&pool->job);
        take_pieces(pool, self.thread);
    }
    return NULL;
}

static void wait_for_others(pk_pool *pool, uint32_t pieces) {
    const int64_t start = now_ns();
    do {
        for (int i = 0; i < 32; i++) {
            if (atomic_load(&pool->done) == pieces) return;
            relax();
        }
    } while (wait_more(start));
    pthread_mutex_lock(&pool->lock);
    atomic_store(&pool->owner_sleeps, 1);
    while (atomic_load(&pool->done) != pieces) pthread_cond_wait(&pool->finished, &pool->lock);
    atomic_store(&pool->owner_sleeps, 0);
    pthread_mutex_unlock(&pool->lock);
}

static void run_job(pk_pool *pool, int64_t n, int64_t grain, uint32_t pieces, pk_task task,
                    void *context) {
    const uint32_t job = atomic_load(&pool->job) + 1;
    const int64_t dealt = pk_min_i64(pool->threads, pieces);
    for (int32_t t = 0; t < pool->threads; t++)
        atomic_store(&pool->stretches[t].ticket, (uint64_t)job << 32 | CLOSED);
    atomic_store(&pool->task, task);
    atomic_store(&pool->context, context);
    atomic_store(&pool->n, n);
    atomic_store(&pool->grain, grain);
    atomic_store(&pool->pieces, pieces);
    atomic_store(&pool->dealt, (int32_t)dealt);
    atomic_store(&pool->done, 0);
    for (int64_t t = 0; t < dealt; t++) {
        pk_stretch *stretch = &pool->stretches[t];
        atomic_store(&stretch->end, (uint32_t)(pieces * (t + 1) / dealt));
        atomic_store(&stretch->ticket, (uint64_t)job << 32 | (uint64_t)(pieces * t / dealt));
    }
    atomic_store(&pool->job, job);
    if (atomic_load(&pool->sleepers)) {
        pthread_mutex_lock(&pool->lock);
        pthread_cond_broadcast(&pool->work);
        pthread_mutex_unlock(&pool->lock);
    }
    take_pieces(pool, 0);
    if (atomic_load(&pool->done) != pieces) wait_for_others(pool, pieces);
}

/* The work in this thread alone; a pool with the smallest grain still gives single indices. */
static void run_alone(pk_pool *pool, int64_t n, int32_t smallest, pk_task task, void *context) {
    if (!smallest) {
        run_range(pool, task, context, 0, n, place.depth ? place.thread : 0);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        run_range(pool, task, context, i, i + 1, place.depth ? place.thread : 0);
}

/* Few pieces of many indices each: as many for every thread, all of about one size, which is at
 * least the grain. */
static int64_t even_grain(int64_t n, int64_t grain, int64_t threads) {
    const int64_t pieces = n / grain;
    if (grain < 32 || pieces > 8 * threads) return grain;
    if (pieces < 2) return n;
    const int64_t even = pieces < threads ? pieces : pieces / threads * threads;
    return pk_ceil_div(pk_ceil_div(n, even), 16) * 16;
}

void pk_parallel(const pk_call *call, int64_t n, int64_t grain, pk_task task, void *context) {
    pk_pool *pool = call->pool;
    if (n <= 0) return;
    if (!pool || pool->threads == 1 || place.depth > 0) {
        run_alone(pool, n, pool ? pool->smallest_grain : 0, task, context);
        return;
    }
    grain = pool->smallest_grain || grain < 1 ? 1 : grain;
    /* The lower half of a ticket counts the pieces, with room for every thread's last, failing
     * look. */
    if (n / grain >= 1 << 30) grain = n >> 29;
    grain = even_grain(n, grain, pool->threads);
    const int64_t pieces = pk_ceil_div(n, grain);
    if (pieces == 1)
        run_range(pool, task, context, 0, n, 0);
    else
        run_job(pool, n, grain, (uint32_t)pieces, task, context);
}

int32_t pk_threads(const pk_call *call) {
    return call->pool && place.depth == 0 ? call->pool->threads : 1;
}

void *pk_scratch(const pk_call *call) {
    return slot_of(call->pool, place.depth ? place.thread : 0, 2 * place.depth);
}

static int32_t processors(void) {
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int32_t)n : 1;
}

static int start_worker(pk_pool *pool, int32_t thread) {
    pk_worker *self = malloc(sizeof *self);
    if (!self) return 0;
    *self = (pk_worker){pool, thread};
    if (pthread_create(&pool->handles[thread], NULL, worker_main, self) != 0) {
        free(self);
        return 0;
    }
    pool->started = thread;
    return 1;
}

pk_pool *pk_pool_create(int32_t threads, int32_t smallest_grain) {
    if (threads <= 0) threads = processors();
    pk_pool *pool = aligned_alloc(64, (sizeof(pk_pool) + 63) / 64 * 64);
    if (!pool) return NULL;
    *pool = (pk_pool){.threads = threads, .smallest_grain = smallest_grain != 0};
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->finished, NULL);
    pool->handles = calloc((size_t)threads, sizeof *pool->handles);
    pool->stretches = aligned_alloc(64, (size_t)threads * sizeof *pool->stretches);
    pool->scratch = aligned_alloc(64, (size_t)pk_pool_bytes(pool));
    int32_t good = pool->handles && pool->stretches && pool->scratch;
    for (int32_t t = 0; good && t < threads; t++) pool->stretches[t] = (pk_stretch){.ticket = CLOSED};
    for (int32_t t = 1; good && t < threads; t++) good = start_worker(pool, t);
    if (good) return pool;
    pk_pool_free(pool);
    return NULL;
}

void pk_pool_free(pk_pool *pool) {
    if (!pool) return;
    atomic_store(&pool->stop, 1);
    pthread_mutex_lock(&pool->lock);
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    for (int32_t t = 1; t <= pool->started; t++) pthread_join(pool->handles[t], NULL);
    pthread_cond_destroy(&pool->finished);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->lock);
    free(pool->scratch);
    free(pool->stretches);
    free(pool->handles);
    free(pool);
}

int32_t pk_pool_threads(const pk_pool *pool) { return pool->threads; }

int64_t pk_pool_bytes(const pk_pool *pool) {
    return (int64_t)pool->threads * SLOTS * (int64_t)PK_SCRATCH_BYTES;
}

int32_t pk_pool_smallest(const pk_pool *pool) { return pool && pool->smallest_grain; }
