/* pk_random.h: counter-based random numbers for kernels (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11).
 *
 * Element e of a stream at a step is a function of (seed, stream, step, e) alone, whoever computes it:
 *   key     = mix(seed + mix(stream)) as two 32-bit words, low word first
 *   counter = {low, high word of e / 4; low, high word of step}
 *   bits    = word e % 4 of Philox4x32-10(counter, key)
 *   uniform = (bits >> 8) * 2^-24, in [0, 1)
 *   normal  = of the pair of uniforms (u, v) of elements 2j and 2j + 1: sqrt(-2 ln(1 - u)) times cos(2 pi v) for element 2j
 *             and sin(2 pi v) for element 2j + 1
 * mix is the finaliser of splitmix64.  paddlecli/ops/_random.py repeats this in numpy: bits and uniforms exactly, normals
 * to a few units in the last place of float32. */
#ifndef PK_RANDOM_H
#define PK_RANDOM_H
#include <math.h>

#include "pk_kernel.h"

#ifndef PK_BOTH
#define PK_BOTH   /* the device dialect compiles these functions for both sides */
#endif

PK_BOTH static inline uint64_t pk_random_mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

PK_BOTH static inline uint64_t pk_random_key(const pk_random *r) { return pk_random_mix(r->seed + pk_random_mix(r->stream)); }

PK_BOTH static inline void pk_philox(uint64_t key, uint64_t low, uint64_t high, uint32_t out[4]) {
    uint32_t c0 = (uint32_t)low, c1 = (uint32_t)(low >> 32), c2 = (uint32_t)high, c3 = (uint32_t)(high >> 32);
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* Elements 4*block to 4*block + 3. */
PK_BOTH static inline void pk_random_block(const pk_random *r, uint64_t block, uint32_t out[4]) {
    pk_philox(pk_random_key(r), block, r->step, out);
}

/* Bits of `count` elements from element `first` on; no alignment wanted. */
PK_BOTH static inline void pk_random_fill(const pk_random *r, uint64_t first, int64_t count, uint32_t *out) {
    const uint64_t key = pk_random_key(r);
    uint32_t four[4];
    int64_t i = 0;
    while (i < count) {
        const uint64_t element = first + (uint64_t)i;
        pk_philox(key, element / 4, r->step, four);
        for (uint64_t lane = element % 4; lane < 4 && i < count; lane++) out[i++] = four[lane];
    }
}

PK_BOTH static inline uint32_t pk_random_u32(const pk_random *r, uint64_t element) {
    uint32_t four[4];
    pk_random_block(r, element / 4, four);
    return four[element % 4];
}

PK_BOTH static inline float pk_uniform(uint32_t bits) { return (float)(bits >> 8) * 0x1p-24f; }

/* Two normal numbers of mean 0 and variance 1 from the bits of elements 2j and 2j + 1. */
PK_BOTH static inline void pk_normal(const uint32_t bits[2], float out[2]) {
    const double u = (double)(bits[0] >> 8) * 0x1p-24, v = (double)(bits[1] >> 8) * 0x1p-24;
    const double length = sqrt(-2.0 * log(1.0 - u)), angle = 6.283185307179586476925 * v;
    out[0] = (float)(length * cos(angle));
    out[1] = (float)(length * sin(angle));
}

#endif
