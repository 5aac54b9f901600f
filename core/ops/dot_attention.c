/* dot_attention: rows that ask the tokens of their sequence, by products of queries and keys. */
#include "attention_rows.h"

static pk_status find(const pk_call *call, pk_attention *a) {
    a->kind = PK_SCORE_DOT;
    a->heads = call->attr[0].i, a->scale = (float)call->attr[1].f,
    a->causal = (int32_t)call->attr[2].i;
    return pk_attention_of(call, &call->in[0], &call->in[1], &call->in[2], &call->in[3], a);
}

static pk_status find_backward(const pk_call *call, pk_attention *a) {
    const pk_status bad = find(call, a);
    if (bad) return bad;
    a->context = pk_f32(&call->in[4]), a->dcontext = pk_f32(&call->in[5]);
    if (pk_count(&call->in[4]) != a->rows * a->depth ||
        pk_count(&call->in[5]) != a->rows * a->depth)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "context and its gradient have %lld and %lld elements, expected %lld",
                       (long long)pk_count(&call->in[4]), (long long)pk_count(&call->in[5]),
                       (long long)(a->rows * a->depth));
    return PK_OK;
}

static pk_status dot_attention_forward(const pk_call *call) {
    pk_attention a = {.out = pk_f32(&call->out[0]), .add = {pk_adds(call, 0)}};
    const pk_status bad = find(call, &a);
    if (bad) return bad;
    if (pk_count(&call->out[0]) != a.rows * a.depth)
        return pk_fail(call, PK_BAD_SHAPE, -1, "the context has %lld elements, expected %lld",
                       (long long)pk_count(&call->out[0]), (long long)(a.rows * a.depth));
    pk_parallel(call, a.rows * a.heads, pk_attention_grain(&a), pk_attention_forward_task, &a);
    return PK_OK;
}

static pk_status dot_attention_backward_query(const pk_call *call) {
    pk_attention a = {.out = pk_f32(&call->out[0]), .add = {pk_adds(call, 0)}};
    const pk_status bad = find_backward(call, &a);
    if (bad) return bad;
    if (pk_count(&call->out[0]) != a.rows * a.width)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "the query's gradient has %lld elements, expected %lld",
                       (long long)pk_count(&call->out[0]), (long long)(a.rows * a.width));
    pk_parallel(call, a.rows * a.heads, pk_attention_grain(&a), pk_attention_query_task, &a);
    return PK_OK;
}

static pk_status dot_attention_backward_source(const pk_call *call) {
    pk_attention a = {0};
    const pk_status bad = find_backward(call, &a);
    return bad ? bad : pk_attention_source(call, &a, &call->out[2]);
}

#define ARGS "query: f32, keys: f32, values: f32, sequence?: i64"
#define OWN "heads: int, scale: float, causal: bool"
PK_OP(dot_attention,
      {"dot_attention.forward(" ARGS "; " OWN ") -> (context: f32)", dot_attention_forward},
      {"dot_attention.backward_query(" ARGS ", context: f32, dcontext: f32; " OWN
       ") -> (dquery: f32)",
       dot_attention_backward_query},
      {"dot_attention.backward_source(" ARGS ", context: f32, dcontext: f32; " OWN
       ") -> (dkeys: f32, dvalues: f32, work_rows: i64)",
       dot_attention_backward_source});
