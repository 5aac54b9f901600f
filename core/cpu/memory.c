/* memory.c: buddy pools with counters of bytes in use, peak and allocations. */
#if defined(__linux__)
#define _DEFAULT_SOURCE /* madvise */
#endif
#include "memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

#define SMALLEST 8       /* order of the smallest block: 256 bytes */
#define ORDERS 40
#define FREE_FLAG 0x80u
#define UNTOUCHED (64u << 20) /* bytes from which on pages are worth more than the time of their first use */

/* One piece from the source.  Its state is one byte for each smallest block: at the first block of a run the order of the
 * run, with FREE_FLAG when it is free.  A large piece (order 0) is one block of its own. */
typedef struct piece {
    struct piece *next;
    uint8_t *base;
    uint64_t bytes;
    int32_t order;
    uint32_t blocks;      /* smallest blocks */
    uint8_t *state;
    uint64_t *asked;      /* bytes asked for, by first block */
} piece;

struct pk_memory {
    pthread_mutex_t lock;
    pk_memory_source source;
    int32_t order;
    piece *pieces;
    pk_memory_counters counters;
};

static void *host_take(void *context, uint64_t bytes) {
    (void)context;
    void *data = NULL;
    if (bytes > SIZE_MAX - PK_ALIGN) return NULL;
    return posix_memalign(&data, PK_ALIGN, (size_t)bytes) == 0 ? data : NULL;
}

static void host_give(void *context, void *data, uint64_t bytes) {
    (void)context;
    (void)bytes;
    free(data);
}

const pk_memory_source pk_memory_host = {host_take, host_give, NULL};

void pk_memory_clear(void *data, uint64_t bytes) {
#if defined(__linux__)
    if (bytes >= UNTOUCHED) {
        /* Private memory without a file reads as zeros afterwards; elsewhere the call may mean less. */
        const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)data;
        const uintptr_t first = (at + page - 1) / page * page, last = (at + bytes) / page * page;
        if (madvise((void *)first, last - first, MADV_DONTNEED) == 0) {
            memset(data, 0, first - at);
            memset((void *)last, 0, at + bytes - last);
            return;
        }
    }
#endif
    memset(data, 0, bytes);
}

pk_memory *pk_memory_create(pk_memory_source source, int32_t order) {
    if (order < SMALLEST + 1 || order >= ORDERS) return NULL;
    pk_memory *memory = calloc(1, sizeof *memory);
    if (!memory) return NULL;
    if (pthread_mutex_init(&memory->lock, NULL) != 0) {
        free(memory);
        return NULL;
    }
    memory->source = source;
    memory->order = order;
    return memory;
}

static void piece_free(pk_memory *memory, piece *p) {
    memory->source.give(memory->source.context, p->base, p->bytes);
    free(p->state);
    free(p->asked);
    free(p);
}

void pk_memory_free(pk_memory *memory) {
    if (!memory) return;
    while (memory->pieces) {
        piece *p = memory->pieces;
        memory->pieces = p->next;
        piece_free(memory, p);
    }
    pthread_mutex_destroy(&memory->lock);
    free(memory);
}

/* order 0: one block of exactly `bytes`. */
static piece *piece_create(pk_memory *memory, int32_t order, uint64_t bytes) {
    piece *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->order = order;
    p->bytes = order ? (uint64_t)1 << order : bytes;
    p->blocks = order ? 1u << (order - SMALLEST) : 1u;
    p->state = calloc(p->blocks, 1);
    p->asked = calloc(p->blocks, sizeof *p->asked);
    p->base = p->state && p->asked ? memory->source.take(memory->source.context, p->bytes) : NULL;
    if (!p->base) {
        free(p->state);
        free(p->asked);
        free(p);
        return NULL;
    }
    p->state[0] = (uint8_t)(order | (int32_t)FREE_FLAG);
    p->next = memory->pieces;
    memory->pieces = p;
    return p;
}

/* The smallest free run of at least `order` in the piece; blocks if there is none. */
static uint32_t find_run(const piece *p, int32_t order) {
    uint32_t best = p->blocks;
    int32_t best_order = ORDERS;
    for (uint32_t i = 0; i < p->blocks;) {
        int32_t run = p->state[i] & 0x7f;
        if ((p->state[i] & FREE_FLAG) && run >= order && run < best_order) {
            best = i;
            best_order = run;
            if (run == order) break;
        }
        i += 1u << (run - SMALLEST);
    }
    return best;
}

static void *take_run(piece *p, uint32_t block, int32_t order, uint64_t bytes) {
    int32_t run = p->state[block] & 0x7f;
    /* Halve until it fits; the upper halves stay free. */
    while (run > order) {
        run--;
        p->state[block + (1u << (run - SMALLEST))] = (uint8_t)(run | (int32_t)FREE_FLAG);
    }
    p->state[block] = (uint8_t)order;
    p->asked[block] = bytes;
    return p->base + ((uint64_t)block << SMALLEST);
}

static void *take_locked(pk_memory *memory, uint64_t bytes) {
    uint64_t rounded = (bytes + PK_ALIGN - 1) / PK_ALIGN * PK_ALIGN;
    if (rounded < bytes) return NULL;
    if (rounded == 0) rounded = PK_ALIGN;
    if (rounded > (uint64_t)1 << (memory->order - 1)) {
        piece *p = piece_create(memory, 0, rounded);
        if (!p) return NULL;
        p->state[0] = 0;
        p->asked[0] = bytes;
        return p->base;
    }
    int32_t order = SMALLEST;
    while (((uint64_t)1 << order) < rounded) order++;
    for (piece *p = memory->pieces; p; p = p->next) {
        if (p->order == 0) continue;
        uint32_t block = find_run(p, order);
        if (block < p->blocks) return take_run(p, block, order, bytes);
    }
    piece *p = piece_create(memory, memory->order, 0);
    return p ? take_run(p, 0, order, bytes) : NULL;
}

void *pk_memory_take(pk_memory *memory, uint64_t bytes) {
    pthread_mutex_lock(&memory->lock);
    void *data = take_locked(memory, bytes);
    if (data) {
        pk_memory_counters *c = &memory->counters;
        c->allocations++;
        c->used += (int64_t)bytes;
        if (c->used > c->peak) c->peak = c->used;
    }
    pthread_mutex_unlock(&memory->lock);
    return data;
}

/* Joins the run with its free neighbours of equal order. */
static void give_run(piece *p, uint32_t block) {
    int32_t order = p->state[block];
    while (order < p->order) {
        uint32_t other = block ^ (1u << (order - SMALLEST));
        if (p->state[other] != (uint8_t)(order | (int32_t)FREE_FLAG)) break;
        if (other < block) block = other;
        order++;
    }
    p->state[block] = (uint8_t)(order | (int32_t)FREE_FLAG);
}

void pk_memory_give(pk_memory *memory, void *data) {
    if (!data) return;
    pthread_mutex_lock(&memory->lock);
    for (piece **link = &memory->pieces; *link; link = &(*link)->next) {
        piece *p = *link;
        uint8_t *at = data;
        if (at < p->base || at >= p->base + p->bytes) continue;
        uint32_t block = (uint32_t)((uint64_t)(at - p->base) >> SMALLEST);
        memory->counters.used -= (int64_t)p->asked[block];
        if (p->order) give_run(p, block);
        /* A large piece goes back at once, a common one when all of it is free again. */
        if (!p->order || (p->state[0] & 0x7f) == p->order) {
            *link = p->next;
            piece_free(memory, p);
        }
        break;
    }
    pthread_mutex_unlock(&memory->lock);
}

void pk_memory_read(pk_memory *memory, pk_memory_counters *counters, int reset_peak) {
    pthread_mutex_lock(&memory->lock);
    if (reset_peak) memory->counters.peak = memory->counters.used;
    if (counters) *counters = memory->counters;
    pthread_mutex_unlock(&memory->lock);
}
