/* exact_sum.h: sums of doubles as whole numbers, the same in every order and over every cut.
 *
 * A sum is PK_SUM_LIMBS int64 limbs, worth limb[i] * 2^(32 i - PK_SUM_BELOW).  That spans what
 * floats can give: their squares lie between 2^-298 and 2^256, and 2^62 of those stay below the top
 * limb.  Carried limbs are 0 .. 2^32 - 1 but for the signed top one, so equal sums are equal
 * integers; states of parts add up limb by limb.  Python's side: paddlecli/ops/_exact_sum.py. */
#ifndef PK_EXACT_SUM_H
#define PK_EXACT_SUM_H
#include <stdint.h>
#include <string.h>

#define PK_SUM_LIMBS 20
#define PK_SUM_BELOW 320
#define PK_SUM_ADDS (1 << 20) /* additions that surely fit between two carries */

/* Adds a finite x with |x| < 2^258; nothing of a float or of a float's square is lost, what lies
 * below 2^-320 would be. */
static inline void pk_sum_add(int64_t *limb, double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int64_t exponent = (int64_t)(bits >> 52 & 0x7ff), sign = bits >> 63 ? -1 : 1;
    uint64_t digits = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    int64_t at = exponent - 1075 + PK_SUM_BELOW; /* where the last digit stands */
    if (exponent == 0 || at <= -53) return;
    if (at < 0) digits >>= -at, at = 0;
    const uint64_t mask = 0xffffffffu, low = (digits & mask) << (at & 31),
                   high = (digits >> 32) << (at & 31);
    limb += at >> 5;
    limb[0] += sign * (int64_t)(low & mask);
    limb[1] += sign * (int64_t)((low >> 32) + (high & mask));
    limb[2] += sign * (int64_t)(high >> 32);
}

/* Every limb but the top one becomes 0 .. 2^32 - 1. */
static inline void pk_sum_carry(int64_t *limb) {
    for (int i = 0; i + 1 < PK_SUM_LIMBS; i++) {
        limb[i + 1] += limb[i] >> 32;
        limb[i] &= 0xffffffff;
    }
}
#endif
