/* The buddy pools: blocks do not overlap, are aligned, join again, and the counters say what was asked for. */
#include "memory.h"

#include "check.h"

#define BLOCKS 200

static int64_t taken, given;
static int fail_next;
static void *counted_take(void *context, uint64_t bytes) {
    if (fail_next) return NULL;
    taken++;
    return pk_memory_host.take(context, bytes);
}
static void counted_give(void *context, void *data, uint64_t bytes) {
    given++;
    pk_memory_host.give(context, data, bytes);
}

/* Each block is filled with its own byte: a neighbour that overlaps would change it. */
static void test_blocks(void) {
    const pk_memory_source source = {counted_take, counted_give, NULL};
    pk_memory *memory = pk_memory_create(source, 16);
    uint8_t *block[BLOCKS] = {NULL};
    uint64_t size[BLOCKS] = {0};
    int64_t used = 0, peak = 0, allocations = 0;
    for (int round = 0; round < 20000; round++) {
        const int i = (int)random_below(BLOCKS);
        if (block[i]) {
            for (uint64_t k = 0; k < size[i]; k++) CHECK(block[i][k] == (uint8_t)i, "block %d was changed", i);
            pk_memory_give(memory, block[i]);
            used -= (int64_t)size[i];
            block[i] = NULL;
            continue;
        }
        size[i] = (uint64_t)random_below(random_below(10) ? 3000 : 100000);
        block[i] = pk_memory_take(memory, size[i]);
        CHECK(block[i] && (uintptr_t)block[i] % PK_ALIGN == 0, "block %d", i);
        memset(block[i], i, size[i]);
        used += (int64_t)size[i];
        allocations++;
        if (used > peak) peak = used;
    }
    pk_memory_counters c;
    pk_memory_read(memory, &c, 0);
    CHECK(c.used == used && c.peak == peak && c.allocations == allocations, "counters");
    pk_memory_read(memory, &c, 1);
    CHECK(c.peak == used, "peak after a reset");
    for (int i = 0; i < BLOCKS; i++) pk_memory_give(memory, block[i]);
    pk_memory_read(memory, &c, 0);
    CHECK(c.used == 0 && taken == given, "%lld pieces taken, %lld given back", (long long)taken, (long long)given);
    pk_memory_free(memory);
}

static void test_joining(void) {
    const pk_memory_source source = {counted_take, counted_give, NULL};
    pk_memory *memory = pk_memory_create(source, 12); /* 4096 bytes: 16 blocks of 256 */
    void *block[16];
    taken = given = 0;
    for (int i = 0; i < 16; i++) block[i] = pk_memory_take(memory, 200);
    CHECK(taken == 1, "16 small blocks fill one piece, not %lld", (long long)taken);
    for (int i = 1; i < 16; i++) pk_memory_give(memory, block[i]);
    void *half = pk_memory_take(memory, 2048);
    CHECK(half && taken == 1, "free neighbours did not join");
    pk_memory_give(memory, half);
    pk_memory_give(memory, block[0]);
    CHECK(given == 1, "an empty piece goes back");
    pk_memory_free(memory);
}

static void test_refusal(void) {
    const pk_memory_source source = {counted_take, counted_give, NULL};
    pk_memory *memory = pk_memory_create(source, 12);
    fail_next = 1;
    CHECK(!pk_memory_take(memory, 100) && !pk_memory_take(memory, 1 << 20), "memory out of nothing");
    fail_next = 0;
    CHECK(!pk_memory_take(memory, UINT64_MAX) && !pk_memory_take(memory, UINT64_MAX - 63), "more than there is");
    pk_memory_give(memory, NULL);
    pk_memory_counters c;
    pk_memory_read(memory, &c, 0);
    CHECK(c.allocations == 0 && c.used == 0, "refused allocations count");
    CHECK(!pk_memory_create(source, 3) && !pk_memory_create(source, 60), "orders");
    pk_memory_free(memory);
    pk_memory_free(NULL);
}

int main(void) {
    make_calls();
    test_blocks();
    test_joining();
    test_refusal();
    return end_of_test("memory");
}
