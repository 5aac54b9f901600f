/* dot_attention: rows that ask the tokens of their sequence, by products of queries and keys. */
#include "attention_rows.h"

static pk_status find(const pk_call *call, pk_attention *a) {
    a->kind = PK_SCORE_DOT;
    a->heads = call->attr[0].i, a->scale = (float)call->attr[1].f,
    a->causal = (int32_t)call->attr[2].i;
    return pk_attention_of(call, &call->in[0], &call->in[1], &call->in[2], &call->in[3], a);
}

static pk_status dot_attention_forward(const pk_call *call) {
    pk_attention a = {0};
    const pk_status bad = find(call, &a);
    return bad ? bad : pk_attention_forward(call, &a);
}

static pk_status find_backward(const pk_call *call, pk_attention *a) {
    const pk_status bad = find(call, a);
    return bad ? bad : pk_attention_behind(call, 4, a);
}

static pk_status dot_attention_backward_query(const pk_call *call) {
    pk_attention a = {0};
    const pk_status bad = find_backward(call, &a);
    return bad ? bad : pk_attention_query(call, &a);
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
