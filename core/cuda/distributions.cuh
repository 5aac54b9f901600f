/* distributions.cuh: what softmax and its relatives share: a warp for each distribution of x
 * [outer, classes, inner]. */
#ifndef PK_DISTRIBUTIONS_CUH
#define PK_DISTRIBUTIONS_CUH
#include "reductions.cuh"

#define PK_PLACE_WARPS 4 /* places of a block */

typedef struct pk_places {
    int64_t outer, classes, inner;
} pk_places;

static inline pk_status pk_places_of(const pk_call *call, const pk_view *x, int64_t axis,
                                     pk_places *s) {
    if (axis < 0) axis += x->ndim;
    if (axis < 0 || axis >= x->ndim)
        return pk_fail(call, PK_BAD_SHAPE, -1, "no axis %lld in %d dimensions", (long long)axis,
                       (int)x->ndim);
    *s = pk_places{1, x->dim[axis], pk_inner(x, (int32_t)axis + 1)};
    for (int32_t i = 0; i < axis; i++) s->outer *= x->dim[i];
    return PK_OK;
}

/* F: void at(place, first, lane): by all lanes of the place's warp; class c of the place is element
 * first + c * inner. */
template <class F> struct pk_places_kernel {
    F f;
    pk_places s;
    PK_DEVICE void operator()() const {
        const int64_t place = (int64_t)blockIdx.x * PK_PLACE_WARPS + threadIdx.x / PK_WARP;
        if (place >= s.outer * s.inner) return;
        f.at(place, place / s.inner * s.classes * s.inner + place % s.inner,
             (int)(threadIdx.x % PK_WARP));
    }
};
template <class F> pk_status pk_each_place(const pk_call *call, const pk_places &s, const F &f) {
    const int64_t places = s.outer * s.inner;
    if (places == 0 || s.classes == 0) return PK_OK;
    return PK_LAUNCH(call, pk_dim((unsigned)pk_ceil_div(places, PK_PLACE_WARPS)),
                     pk_dim(PK_PLACE_WARPS * PK_WARP), pk_places_kernel<F>{f, s});
}

/* For a lane: classes lane, lane + 32, ... */
#define PK_EACH_CLASS(c, s, lane) for (int64_t c = lane; c < (s).classes; c += PK_WARP)

PK_DEVICE float pk_place_max(const pk_places &s, const float *x, int lane) {
    float most = -INFINITY;
    PK_EACH_CLASS(c, s, lane) most = fmaxf(most, x[c * s.inner]);
    return pk_warp_max(most);
}
/* Sum of exp(x - most) but for class `skip` (negative: none). */
PK_DEVICE float pk_place_exp_sum(const pk_places &s, const float *x, float most, int64_t skip,
                                 int lane) {
    float sum = 0.0f;
    PK_EACH_CLASS(c, s, lane) if (c != skip) sum += expf(x[c * s.inner] - most);
    return pk_warp_sum(sum);
}
#endif
