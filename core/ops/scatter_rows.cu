/* scatter_rows: rows put into another order. */
#include "rows.cuh"

namespace {
struct mark {
    uint8_t *taken;
    PK_DEVICE void operator()(int64_t i) const { taken[i] = 0; }
};
/* All n indices are in range, so n distinct ones take every row; a row left over tells of a
 * repeated index. */
struct take {
    uint8_t *taken;
    const int64_t *index;
    PK_DEVICE void operator()(int64_t i) const { taken[index[i]] = 1; }
};
struct check_taken {
    pk_gate gate;
    const uint8_t *taken;
    int64_t n;
    PK_DEVICE void operator()(int64_t i) const {
        if (!taken[i])
            pk_fault_at(gate, "row %lld of %lld is in no index: another one is there twice", i, i,
                        n);
    }
};
struct scatter {
    float *y;
    const float *x;
    const int64_t *index;
    int64_t width;
    int add;
    PK_DEVICE void operator()(int64_t e) const {
        pk_put(y + index[e / width] * width + e % width, x[e], add);
    }
};

/* x [n, ...], index [n] -> y [n, ...], work [n]: rows that have been taken */
pk_status scatter_rows_forward(const pk_call *call) {
    const pk_view *x = &call->in[0], *index = &call->in[1], *y = &call->out[0];
    const int64_t n = pk_count(index), width = pk_inner(x, 1);
    uint8_t *taken = (uint8_t *)call->out[1].data;
    if (x->dim[0] != n || pk_count(y) != n * width || y->dim[0] != n || pk_count(&call->out[1]) < n)
        return pk_fail(call, PK_BAD_SHAPE, -1, "%lld indices, x has %lld rows, y %lld",
                       (long long)n, (long long)x->dim[0], (long long)y->dim[0]);
    PK_TRY(pk_check_index(call, pk_i64(index), n, n, INT64_MIN, 1,
                          "index is %lld, must be below %lld"));
    PK_TRY(pk_each(call, n, mark{taken}));
    PK_TRY(pk_each(call, n, take{taken, pk_i64(index)}));
    const pk_gate gate = pk_gate_of(call);
    PK_TRY(pk_each_behind(call, gate, n, check_taken{gate, taken, n}));
    return pk_each(call, n * width,
                   scatter{pk_f32(y), pk_f32(x), pk_i64(index), width, pk_adds(call, 0)});
}
} /* namespace */

PK_OP(scatter_rows,
      {"scatter_rows.forward(x: f32, index: i64) -> (y: f32, work: u8)", scatter_rows_forward});
