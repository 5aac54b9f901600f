/* random_rows.h: pk_random.h's bits, sixteen blocks at a time, for kernels whose elements are those of whole rows.
 *
 * Element e of row s is element (first + s)*len + e of its stream, so a batch cut into pieces draws what the whole one does. */
#ifndef PK_RANDOM_ROWS_H
#define PK_RANDOM_ROWS_H
#include "pk_random.h"

/* Elements that one step of the loops below draws; a multiple of 64. */
#define RANDOM_PIECE 1024

/* The stream's element that flat element 0 of a tensor is. */
static inline uint64_t random_start(const pk_call *call, const pk_view *rows) {
    return (uint64_t)call->random.first * (uint64_t)pk_inner(rows, 1);
}

/* Blocks `block` to `block` + 15: the rounds of pk_philox side by side, which compilers turn into vectors. */
static inline void philox16(uint64_t key, uint64_t block, uint64_t step, uint32_t out[64]) {
    uint32_t c0[16], c1[16], c2[16], c3[16];
    for (uint32_t j = 0; j < 16; j++) {
        c0[j] = (uint32_t)(block + j), c1[j] = (uint32_t)((block + j) >> 32);
        c2[j] = (uint32_t)step, c3[j] = (uint32_t)(step >> 32);
    }
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        for (int j = 0; j < 16; j++) {
            const uint64_t p0 = (uint64_t)0xD2511F53u * c0[j], p1 = (uint64_t)0xCD9E8D57u * c2[j];
            c0[j] = (uint32_t)(p1 >> 32) ^ c1[j] ^ k0;
            c1[j] = (uint32_t)p1;
            c2[j] = (uint32_t)(p0 >> 32) ^ c3[j] ^ k1;
            c3[j] = (uint32_t)p0;
        }
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    for (int j = 0; j < 16; j++) out[4 * j] = c0[j], out[4 * j + 1] = c1[j], out[4 * j + 2] = c2[j], out[4 * j + 3] = c3[j];
}

/* As pk_random_fill. */
static inline void random_bits(const pk_random *r, uint64_t first, int64_t count, uint32_t *out) {
    const int64_t lead = pk_min_i64(count, (int64_t)((4 - first % 4) % 4));
    const uint64_t key = pk_random_key(r);
    pk_random_fill(r, first, lead, out);
    int64_t i = lead;
    for (; i + 64 <= count; i += 64) philox16(key, (first + (uint64_t)i) / 4, r->step, out + i);
    pk_random_fill(r, first + (uint64_t)i, count - i, out + i);
}
#endif
