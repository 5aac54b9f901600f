/* packed.cuh: rows of sequences moved between places, one piece a sequence. */
#ifndef PK_PACKED_CUH
#define PK_PACKED_CUH
#include "sort.cuh"

/* PK_BAD_SHAPE unless a tensor that is given has n elements. */
static inline pk_status pk_check_size(const pk_call *call, const char *what, const pk_view *v,
                                      int64_t n) {
    if (!v->data || pk_count(v) == n) return PK_OK;
    return pk_fail(call, PK_BAD_SHAPE, -1, "%s has %lld elements, expected %lld", what,
                   (long long)pk_count(v), (long long)n);
}
static inline pk_status pk_check_packed(const pk_call *call, const char *what, const pk_view *v) {
    if (v->offsets) return PK_OK;
    return pk_fail(call, PK_BAD_SHAPE, -1, "%s comes without offsets", what);
}
#endif
