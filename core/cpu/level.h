/* level.h: the instruction-set levels this library was built for, and their op tables. */
#ifndef PK_LEVEL_H
#define PK_LEVEL_H
#include <stdint.h>

#include "pk_kernel.h"

/* Levels are numbered from 0, the one every machine of the architecture has: baseline, avx2, avx512;
 * neon on aarch64.  NULL past the end. */
const char *pk_level_name(int32_t level);
/* 1 when this machine can run the level. */
int32_t pk_level_supported(int32_t level);
/* The highest level that this machine can run. */
int32_t pk_level_best(void);
/* The level of that name, or -1. */
int32_t pk_level_find(const char *name);
/* One table per file of core/ops, in the order of their names; NULL and 0 for an unknown level. */
const pk_op_table *const *pk_level_tables(int32_t level, int32_t *count);

#endif
