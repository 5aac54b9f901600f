/* pairs.h: neighbours apart and together: what a stride of two reads, what it leaves free. */
#ifndef PK_PAIRS_H
#define PK_PAIRS_H
#include "pk_simd.h"

#if PK_PART_LANES == 16
#define PK_PAIRS_EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define PK_PAIRS_ODD 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#define PK_PAIRS_LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define PK_PAIRS_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif PK_PART_LANES == 8
#define PK_PAIRS_EVEN 0, 2, 4, 6, 8, 10, 12, 14
#define PK_PAIRS_ODD 1, 3, 5, 7, 9, 11, 13, 15
#define PK_PAIRS_LOW 0, 8, 1, 9, 2, 10, 3, 11
#define PK_PAIRS_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#else
#define PK_PAIRS_EVEN 0, 2, 4, 6
#define PK_PAIRS_ODD 1, 3, 5, 7
#define PK_PAIRS_LOW 0, 4, 1, 5
#define PK_PAIRS_HIGH 2, 6, 3, 7
#endif

/* Lanes 0, 2, 4 ... of a and then of b, and 1, 3, 5 ... */
PK_INLINE void pk_sort_pairs(pk_vec a, pk_vec b, pk_vec *even, pk_vec *odd) {
    pk_part all[2 * PK_PARTS];
    PK_PARTWISE all[i_] = a.p[i_], all[PK_PARTS + i_] = b.p[i_];
    PK_PARTWISE {
        even->p[i_] = __builtin_shufflevector(all[2 * i_], all[2 * i_ + 1], PK_PAIRS_EVEN);
        odd->p[i_] = __builtin_shufflevector(all[2 * i_], all[2 * i_ + 1], PK_PAIRS_ODD);
    }
}

/* a's lanes with zeros between, 32 floats to `to`. */
PK_INLINE void pk_spread_pairs(pk_vec a, float *to) {
    const pk_part zero = {0};
    PK_PARTWISE {
        *(pk_part_u *)(to + 2 * i_ * PK_PART_LANES) =
            __builtin_shufflevector(a.p[i_], zero, PK_PAIRS_LOW);
        *(pk_part_u *)(to + (2 * i_ + 1) * PK_PART_LANES) =
            __builtin_shufflevector(a.p[i_], zero, PK_PAIRS_HIGH);
    }
}

#endif
