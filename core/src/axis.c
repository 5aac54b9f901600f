/* What kernels and scans need of a ragged axis besides its offsets.  Sequences are ordered longest first, equal lengths in
 * their old order, so that the sequences still running at step t are the first n_t of them. */
#include <string.h>

#include "core.h"

#define HAS(parts, part) (((parts) >> (part)) & 1u)

/* A counting sort: starts[t] is first the number of sequences longer than t, then the first packed row of step t. */
static void fill_order(const pk_axis_data *axis) {
    const int64_t *offsets = axis->part[PK_PART_OFFSETS];
    int64_t *order = axis->part[PK_PART_ORDER], *starts = axis->part[PK_PART_STARTS];
    const int64_t n = axis->sequences, longest = axis->longest;
    memset(starts, 0, (size_t)(longest + 1) * sizeof *starts);
    for (int64_t i = 0; i < n; i++) starts[offsets[i + 1] - offsets[i]]++;
    /* starts[l]: where sequences of length l begin in the order = number of longer ones. */
    int64_t longer = 0;
    for (int64_t l = longest; l >= 0; l--) {
        const int64_t equal = starts[l];
        starts[l] = longer;
        longer += equal;
    }
    for (int64_t i = 0; i < n; i++) order[starts[offsets[i + 1] - offsets[i]]++] = i;
    /* starts[l] is now the number of sequences of at least l rows; step t = l - 1 has as many. */
    int64_t row = 0;
    for (int64_t t = 0; t <= longest; t++) {
        const int64_t rows = t < longest ? starts[t + 1] : 0;
        starts[t] = row;
        row += rows;
    }
}

static void fill_map(const pk_axis_data *axis, int64_t *map, int reversed) {
    const int64_t *offsets = axis->part[PK_PART_OFFSETS], *order = axis->part[PK_PART_ORDER];
    const int64_t *starts = axis->part[PK_PART_STARTS];
    for (int64_t t = 0; t < axis->longest; t++)
        for (int64_t i = 0; i < starts[t + 1] - starts[t]; i++) {
            const int64_t s = order[i];
            map[starts[t] + i] = reversed ? offsets[s + 1] - 1 - t : offsets[s] + t;
        }
}

void pk_axis_fill(pk_axis_data *axis, uint8_t parts) {
    if (parts & PK_AXIS_SORTED) fill_order(axis);
    if (HAS(parts, PK_PART_MAP)) fill_map(axis, axis->part[PK_PART_MAP], 0);
    if (HAS(parts, PK_PART_MAP_REVERSED)) fill_map(axis, axis->part[PK_PART_MAP_REVERSED], 1);
    if (!HAS(parts, PK_PART_SEQUENCE)) return;
    const int64_t *offsets = axis->part[PK_PART_OFFSETS];
    for (int64_t i = 0; i < axis->sequences; i++)
        for (int64_t row = offsets[i]; row < offsets[i + 1]; row++) axis->part[PK_PART_SEQUENCE][row] = i;
}
