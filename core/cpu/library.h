/* library.h: kernels of libraries that were loaded beside those of this one. */
#ifndef PK_CPU_LIBRARY_H
#define PK_CPU_LIBRARY_H
#include "pk_kernel.h"

/* Takes the rows of a shared library (pk_library.h); a library that is loaded already is left as it is. */
pk_status pk_library_load(const char *path, pk_error *error);
/* Row number `index` of all libraries, in the order they were loaded; NULL past the end. */
const pk_kernel_row *pk_library_row(int32_t index);

#endif
