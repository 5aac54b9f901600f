/* Which instruction-set levels exist comes from CMake's generated tables; which of them run here,
 * from the processor. */
#include "level.h"

#include <string.h>

#include "pk_tables.h"

const char *pk_level_name(int32_t level) {
    return level >= 0 && level < PK_TABLE_LEVELS ? pk_table_levels[level].name : NULL;
}

/* __builtin_cpu_supports also asks whether the operating system saves the wide registers. */
int32_t pk_level_supported(int32_t level) {
    const char *name = pk_level_name(level);
    if (!name) return 0;
#if defined(__x86_64__)
    const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                     __builtin_cpu_supports("f16c");
    if (strcmp(name, "avx2") == 0) return avx2;
    if (strcmp(name, "avx512") == 0)
        return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
    return 1;
}

int32_t pk_level_best(void) {
    int32_t best = 0;
    for (int32_t i = 1; i < PK_TABLE_LEVELS; i++)
        if (pk_level_supported(i)) best = i;
    return best;
}

int32_t pk_level_find(const char *name) {
    for (int32_t i = 0; i < PK_TABLE_LEVELS; i++)
        if (strcmp(name, pk_table_levels[i].name) == 0) return i;
    return -1;
}

const pk_op_table *const *pk_level_tables(int32_t level, int32_t *count) {
    const int known = level >= 0 && level < PK_TABLE_LEVELS;
    *count = known ? PK_TABLE_OPS : 0;
    return known ? pk_table_levels[level].ops : NULL;
}
