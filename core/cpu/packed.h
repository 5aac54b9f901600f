/* packed.h: rows of sequences moved between places, one piece a sequence. */
#ifndef PK_PACKED_H
#define PK_PACKED_H
#include "pk_kernel.h"
#include "pk_simd.h"

/* Rows to .. to + room of the output: `rows` of them come from rows from, from + step ... of the
 * input, the others are `fill`. */
typedef struct pk_piece {
    int64_t to, room, from, rows, step;
} pk_piece;
typedef pk_piece (*pk_piece_of)(const void *context, int64_t sequence);

typedef struct pk_pieces {
    float *out;
    const float *in;
    int64_t width; /* floats of a row */
    float fill;
    int add;
    pk_piece_of of;
    const void *context;
} pk_pieces;

static inline void pk_pieces_task(void *context, int64_t begin, int64_t end, int32_t thread,
                                  void *scratch) {
    const pk_pieces *p = context;
    (void)thread, (void)scratch;
    for (int64_t s = begin; s < end; s++) {
        const pk_piece piece = p->of(p->context, s);
        for (int64_t r = 0; r < piece.room; r++) {
            float *out = p->out + (piece.to + r) * p->width;
            const float *in = p->in + (piece.from + r * piece.step) * p->width;
            PK_FOR16(i, c, p->width) {
                const pk_vec v = r < piece.rows ? pk_load_n(in + i, c) : pk_set1(p->fill);
                pk_store_n(out + i, p->add ? pk_add(pk_load_n(out + i, c), v) : v, c);
            }
        }
    }
}

/* The pieces of sequences 0 .. sequences - 1; together they must cover the output. */
static inline void pk_move_pieces(const pk_call *call, int64_t sequences, const pk_pieces *p) {
    const int64_t each = pk_count(&call->out[0]) / pk_max_i64(1, sequences);
    pk_parallel(call, sequences, pk_max_i64(1, 8192 / pk_max_i64(1, each)), pk_pieces_task,
                (void *)(uintptr_t)p);
}

/* PK_BAD_SHAPE unless a ragged tensor has offsets that end with its rows. */
static inline pk_status pk_check_packed(const pk_call *call, const char *what, const pk_view *v) {
    if (!v->offsets) return pk_fail(call, PK_BAD_SHAPE, -1, "%s comes without offsets", what);
    if (v->offsets[v->sequences] != v->dim[0])
        return pk_fail(call, PK_BAD_SHAPE, -1, "%s has %lld rows, its sequences %lld", what,
                       (long long)v->dim[0], (long long)v->offsets[v->sequences]);
    return PK_OK;
}
/* PK_BAD_SHAPE unless a tensor that is given has n elements. */
static inline pk_status pk_check_size(const pk_call *call, const char *what, const pk_view *v,
                                      int64_t n) {
    if (!v->data || pk_count(v) == n) return PK_OK;
    return pk_fail(call, PK_BAD_SHAPE, -1, "%s has %lld elements, expected %lld", what,
                   (long long)pk_count(v), (long long)n);
}
#endif
