/* additive_attention: rows that ask the tokens of their sequence, by a small net of both. */
#include "attention_rows.h"

static pk_status find(const pk_call *call, pk_attention *a) {
    const pk_view *v = &call->in[3];
    a->heads = 1, a->scale = 1.0f, a->v = pk_f32(v);
    a->kind = call->attr[0].i ? PK_SCORE_TANH : PK_SCORE_LINEAR;
    const pk_status bad =
        pk_attention_of(call, &call->in[0], &call->in[1], &call->in[2], &call->in[4], a);
    if (bad) return bad;
    if (pk_count(v) != a->width)
        return pk_fail(call, PK_BAD_SHAPE, -1, "v has %lld elements, the queries %lld",
                       (long long)pk_count(v), (long long)a->width);
    return PK_OK;
}

static pk_status find_backward(const pk_call *call, pk_attention *a) {
    const pk_status bad = find(call, a);
    if (bad) return bad;
    a->context = pk_f32(&call->in[5]), a->dcontext = pk_f32(&call->in[6]);
    if (pk_count(&call->in[5]) != a->rows * a->depth ||
        pk_count(&call->in[6]) != a->rows * a->depth)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "context and its gradient have %lld and %lld elements, expected %lld",
                       (long long)pk_count(&call->in[5]), (long long)pk_count(&call->in[6]),
                       (long long)(a->rows * a->depth));
    return PK_OK;
}

static pk_status additive_attention_forward(const pk_call *call) {
    pk_attention a = {.out = pk_f32(&call->out[0]), .add = {pk_adds(call, 0)}};
    const pk_status bad = find(call, &a);
    if (bad) return bad;
    if (pk_count(&call->out[0]) != a.rows * a.depth)
        return pk_fail(call, PK_BAD_SHAPE, -1, "the context has %lld elements, expected %lld",
                       (long long)pk_count(&call->out[0]), (long long)(a.rows * a.depth));
    pk_parallel(call, a.rows, pk_attention_grain(&a), pk_attention_forward_task, &a);
    return PK_OK;
}

static pk_status additive_attention_backward_query(const pk_call *call) {
    pk_attention a = {.out = pk_f32(&call->out[0]), .add = {pk_adds(call, 0)}};
    const pk_status bad = find_backward(call, &a);
    if (bad) return bad;
    if (pk_count(&call->out[0]) != a.rows * a.width)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "the query's gradient has %lld elements, expected %lld",
                       (long long)pk_count(&call->out[0]), (long long)(a.rows * a.width));
    pk_parallel(call, a.rows, pk_attention_grain(&a), pk_attention_query_task, &a);
    return PK_OK;
}

static pk_status additive_attention_backward_source(const pk_call *call) {
    pk_attention a = {.dv = pk_f32(&call->out[4])};
    pk_status bad = find_backward(call, &a);
    if (bad) return bad;
    if (pk_count(&call->out[2]) != a.width || pk_count(&call->out[4]) != a.sequences * a.width)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "the gradient of v has %lld elements, its parts %lld",
                       (long long)pk_count(&call->out[2]), (long long)pk_count(&call->out[4]));
    bad = pk_attention_source(call, &a, &call->out[3]);
    if (bad) return bad;
    pk_sum_columns(call, a.dv, a.width, a.sequences, a.width, pk_adds(call, 2),
                   pk_f32(&call->out[2]));
    return PK_OK;
}

#define ARGS "query: f32, keys: f32, values: f32, v: f32, sequence?: i64"
PK_OP(additive_attention,
      {"additive_attention.forward(" ARGS "; tanh: bool) -> (context: f32)",
       additive_attention_forward},
      {"additive_attention.backward_query(" ARGS
       ", context: f32, dcontext: f32; tanh: bool) -> (dquery: f32)",
       additive_attention_backward_query},
      {"additive_attention.backward_source(" ARGS ", context: f32, dcontext: f32; tanh: bool)"
       " -> (dkeys: f32, dvalues: f32, dv: f32, work_rows: i64, work_v: f32)",
       additive_attention_backward_source});
