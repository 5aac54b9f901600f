/* windows.h: the A of a product as windows over packed sequences.
 *
 * Stored row t of A is what lies from row t + first on, over as many rows as it is long: rows
 * overlap instead of being copied side by side.  What belongs to another sequence than t counts as
 * zeros and is not read. */
#ifndef PK_WINDOWS_H
#define PK_WINDOWS_H
#include "tile.h"

typedef struct pk_windows {
    const int64_t *offsets; /* sequences + 1 of them, the first is 0 */
    int64_t sequences;
    int64_t row;   /* which row A's first one is */
    int64_t first; /* rows from t to the begin of its window */
} pk_windows;

/* pk_pack_a of such an A: a is row 0 of all sequences, a row takes `stride` floats; k may be at
 * most PK_PRODUCT_CHUNK, rows as many.  row and k0: where the block begins in A. */
#define pk_pack_windows PK_LEVEL_NAME(pk_pack_windows)
void pk_pack_windows(const pk_windows *windows, pk_order order, const float *a, int64_t stride,
                     int64_t row, int64_t rows, int64_t k0, int64_t k, float *packed);

#endif
