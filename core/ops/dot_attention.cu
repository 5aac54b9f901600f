/* dot_attention: rows that ask the tokens of their sequence, by products of queries and keys. */
#include "attention.cuh"

namespace {
pk_status find(const pk_call *call, pk_attention *a) {
    a->kind = PK_SCORE_DOT;
    a->heads = call->attr[0].i, a->scale = (float)call->attr[1].f, a->causal = (int)call->attr[2].i;
    return pk_attention_of(call, &call->in[0], &call->in[1], &call->in[2], &call->in[3], a);
}

pk_status dot_attention_forward(const pk_call *call) {
    pk_attention a = {};
    a.out = pk_f32(&call->out[0]), a.add[0] = pk_adds(call, 0);
    PK_TRY(find(call, &a));
    return pk_attention_run(call, a, a.rows, a.rows * a.depth, pk_attention_forward{a});
}
pk_status dot_attention_backward_query(const pk_call *call) {
    pk_attention a = {};
    a.out = pk_f32(&call->out[0]), a.add[0] = pk_adds(call, 0);
    PK_TRY(find(call, &a));
    PK_TRY(pk_attention_seen(call, &call->in[4], &call->in[5], &a));
    return pk_attention_run(call, a, a.rows, a.rows * a.width, pk_attention_query{a});
}
pk_status dot_attention_backward_source(const pk_call *call) {
    pk_attention a = {};
    PK_TRY(find(call, &a));
    PK_TRY(pk_attention_seen(call, &call->in[4], &call->in[5], &a));
    return pk_attention_source(call, &a, call->in[1].dim[0]);
}
} /* namespace */

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
