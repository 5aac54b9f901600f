/* global_norm: the norm of all gradients together, from sums of squares in double precision.
 * A gradient that is not finite makes the norm so too. */
#include "updates.cuh"

namespace {
/* Elements of parameters that are clipped. */
struct clipped_squares {
    const float *g;
    const int64_t *bounds; /* [segments, 2] */
    const int32_t *clips;
    int64_t segments;
    PK_DEVICE double at(int64_t i) const {
        const int64_t s = pk_segment_of(bounds, segments, i);
        return s < segments && i >= bounds[2 * s] && clips[s] ? (double)g[i] * (double)g[i] : 0.0;
    }
};
struct row_squares {
    const float *g;
    const int64_t *rows;
    int64_t columns;
    PK_DEVICE double at(int64_t i) const {
        return i / columns < *rows ? (double)g[i] * (double)g[i] : 0.0;
    }
};
struct total {
    double *out;
    int add;
    PK_DEVICE void put(double sum) const { *out = add ? *out + sum : sum; }
};

pk_status one(const pk_call *call, const pk_view *v, const char *what) {
    return pk_update_size(call, what, v, 1);
}

/* g [n], bounds [segments, 2], clips [segments] -> total [1] */
pk_status squares_flat(const pk_call *call) {
    const pk_view *in = call->in;
    PK_TRY(one(call, &call->out[0], "total"));
    PK_TRY(pk_update_size(call, "clips", &in[2], in[1].dim[0]));
    return pk_flat_sum<double>(
        call, pk_count(&in[0]),
        clipped_squares{pk_f32(&in[0]), pk_i64(&in[1]), pk_i32(&in[2]), in[1].dim[0]},
        total{(double *)call->out[0].data, pk_adds(call, 0)});
}

struct check_rows {
    pk_gate gate;
    const int64_t *rows;
    int64_t room;
    PK_DEVICE void operator()(int64_t) const {
        if (*rows < 0 || *rows > room)
            pk_fault_at(gate, "rows says %lld, there is room for %lld", 0, *rows, room);
    }
};

/* values [room, ...], rows [1]: how many are real -> total [1] */
pk_status squares_rows(const pk_call *call) {
    const pk_view *values = &call->in[0], *rows = &call->in[1];
    if (values->ndim < 1) return pk_fail(call, PK_BAD_SHAPE, -1, "values is a single number");
    PK_TRY(one(call, rows, "rows"));
    PK_TRY(one(call, &call->out[0], "total"));
    const pk_gate gate = pk_gate_of(call);
    PK_TRY(pk_each_behind(call, gate, 1, check_rows{gate, pk_i64(rows), values->dim[0]}));
    return pk_flat_sum<double>(
        call, pk_count(values),
        row_squares{pk_f32(values), pk_i64(rows), pk_max_i64(1, pk_inner(values, 1))},
        total{(double *)call->out[0].data, pk_adds(call, 0)});
}

/* Up to MOST totals of a launch; the sum so far lies in the scratch. */
const int MOST = 16;
struct join {
    const double *in[MOST];
    int count, first, last, add;
    double *sum;
    float *norm;
    PK_DEVICE void operator()(int64_t) const {
        double s = first ? 0.0 : *sum;
        for (int i = 0; i < count; i++) s += *in[i];
        if (last) pk_put(norm, (float)sqrt(s), add);
        else *sum = s;
    }
};

/* totals: [1] each -> norm [1] */
pk_status forward(const pk_call *call) {
    PK_TRY(one(call, &call->out[0], "norm"));
    for (int32_t i = 0; i < call->n_in; i++) PK_TRY(one(call, &call->in[i], "a total"));
    for (int32_t at = 0; at == 0 || at < call->n_in; at += MOST) {
        join k = {{},
                  0,
                  at == 0,
                  at + MOST >= call->n_in,
                  pk_adds(call, 0),
                  pk_device_scratch<double>(call),
                  pk_f32(&call->out[0])};
        for (; k.count < MOST && at + k.count < call->n_in; k.count++)
            k.in[k.count] = (const double *)call->in[at + k.count].data;
        PK_TRY(pk_each(call, 1, k));
    }
    return PK_OK;
}
} /* namespace */

PK_OP(global_norm, {"global_norm.forward(totals*: f64) -> (norm: f32)", forward},
      {"global_norm.squares(g: f32, bounds: i64, clips: i32) -> (total: f64, work: f64)",
       squares_flat},
      {"global_norm.squares_rows(values: f32, rows: i64) -> (total: f64, work: f64)",
       squares_rows});
