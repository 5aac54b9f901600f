/* slots.c: where the slots of a session lie, by size and by when they are needed.
 *
 * The largest first, each in the smallest gap among those that are placed and needed at the same
 * time (greedy by size, after Pisarchyk and Lee 2020, "Efficient memory management for deep neural
 * net inference"; `placed` of paddlecli/compiler/memory.py gives the same places).  Those are found
 * in a tree over the slots in the order of their first use, which knows of every part the latest last
 * use; so a slot costs the number of its neighbours, not of all slots. */
#include <stdlib.h>

#include "core.h"

#define MOST (1u << 28) /* slots, so that the tree's nodes can be counted */

typedef struct key {
    int64_t value;
    int32_t slot;
} key;

struct pk_slot_room {
    int32_t slots, leaves;
    int64_t *latest;  /* [2*leaves] last use of the placed slots below a node, -1 without any */
    key *first;       /* [slots] in the order of first use */
    int32_t *rank;    /* [slots] a slot's place in that order */
    key *queue, *near; /* [slots] by size; neighbours by address */
};

static int ascending(const void *a, const void *b) {
    const key *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    return (x->slot > y->slot) - (x->slot < y->slot);
}

pk_slot_room *pk_slot_room_create(const pk_plan *plan) {
    pk_slot_room *r = pk_host_zeros(1, sizeof *r);
    if (!r) return NULL;
    const uint64_t slots = (uint64_t)PK_COUNT(plan, SLOTS);
    if (slots > MOST) {
        pk_release(r);
        return NULL;
    }
    r->slots = (int32_t)slots;
    for (r->leaves = 1; r->leaves < r->slots;) r->leaves *= 2;
    r->latest = pk_host_zeros(2 * (uint64_t)r->leaves, sizeof *r->latest);
    r->first = pk_host_zeros(slots, sizeof *r->first);
    r->rank = pk_host_zeros(slots, sizeof *r->rank);
    r->queue = pk_host_zeros(slots, sizeof *r->queue);
    r->near = pk_host_zeros(slots, sizeof *r->near);
    if (!r->latest || !r->first || !r->rank || !r->queue || !r->near) {
        pk_slot_room_free(r);
        return NULL;
    }
    for (int32_t i = 0; i < r->slots; i++) r->first[i] = (key){plan->slots[i].first, i};
    qsort(r->first, (size_t)slots, sizeof *r->first, ascending);
    for (int32_t i = 0; i < r->slots; i++) r->rank[r->first[i].slot] = i;
    return r;
}

void pk_slot_room_free(pk_slot_room *r) {
    if (!r) return;
    pk_release(r->latest);
    pk_release(r->first);
    pk_release(r->rank);
    pk_release(r->queue);
    pk_release(r->near);
    pk_release(r);
}

/* Collects the placed slots below a node that covers `width` places from `from` on, of those before
 * `before` in the order, whose last use is not before `since`. */
static int32_t collect(const pk_slot_room *r, const int64_t *at, int32_t node, int32_t from, int32_t width,
                       int32_t before, int64_t since, int32_t count) {
    if (from >= before || r->latest[node] < since) return count;
    if (width == 1) {
        const int32_t slot = r->first[from].slot;
        r->near[count] = (key){at[slot], slot};
        return count + 1;
    }
    const int32_t half = width / 2;
    count = collect(r, at, 2 * node, from, half, before, since, count);
    return collect(r, at, 2 * node + 1, from + half, half, before, since, count);
}

/* Slots whose first use is not behind `end`. */
static int32_t begun(const pk_slot_room *r, int64_t end) {
    int32_t low = 0, high = r->slots;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (r->first[middle].value <= end) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* The smallest gap among the neighbours that takes `bytes`; their end if none does. */
static int64_t gap_for(const key *near, int32_t count, const int64_t *sizes, int64_t bytes) {
    int64_t end = 0, best = -1, least = INT64_MAX;
    for (int32_t k = 0; k < count; k++) {
        const int64_t room = near[k].value - end, behind = near[k].value + pk_aligned(sizes[near[k].slot]);
        if (room >= bytes && room < least) {
            least = room;
            best = end;
        }
        if (behind > end) end = behind;
    }
    return best >= 0 ? best : end;
}

int pk_place_slots(pk_slot_room *r, const pk_plan_slot *slots, const int64_t *bytes, int64_t *at, int64_t *sum) {
    int32_t count = 0;
    *sum = 0;
    for (int32_t i = 0; i < 2 * r->leaves; i++) r->latest[i] = -1;
    for (int32_t i = 0; i < r->slots; i++) {
        if (bytes[i] > PK_MAX_BYTES) return 0;
        at[i] = 0;
        if (bytes[i]) r->queue[count++] = (key){-bytes[i], i};
    }
    qsort(r->queue, (size_t)count, sizeof *r->queue, ascending);
    for (int32_t n = 0; n < count; n++) {
        const int32_t i = r->queue[n].slot, before = begun(r, slots[i].last);
        const int32_t near = collect(r, at, 1, 0, r->leaves, before, slots[i].first, 0);
        qsort(r->near, (size_t)near, sizeof *r->near, ascending);
        at[i] = gap_for(r->near, near, bytes, bytes[i]);
        const int64_t end = at[i] + pk_aligned(bytes[i]);
        if (end > PK_MAX_BYTES) return 0;
        if (end > *sum) *sum = end;
        for (int32_t node = r->leaves + r->rank[i]; node; node /= 2)
            if (slots[i].last > r->latest[node]) r->latest[node] = slots[i].last;
    }
    return 1;
}
