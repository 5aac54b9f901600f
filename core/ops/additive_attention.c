/* additive_attention: rows that ask the tokens of their sequence, by a small net of both. */
#include "attention_rows.h"

static pk_status find(const pk_call *call, pk_attention *a) {
    const pk_view *v = &call->in[3];
    a->heads = 1, a->scale = 1.0f, a->v = pk_f32(v);
    a->kind = call->attr[0].i ? PK_SCORE_TANH : PK_SCORE_LINEAR;
    const pk_status bad =
        pk_attention_of(call, &call->in[0], &call->in[1], &call->in[2], &call->in[4], a);
    if (bad) return bad;
    return pk_check_size(call, "v", v, a->width);
}

static pk_status additive_attention_forward(const pk_call *call) {
    pk_attention a = {0};
    const pk_status bad = find(call, &a);
    return bad ? bad : pk_attention_forward(call, &a);
}

static pk_status find_backward(const pk_call *call, pk_attention *a) {
    const pk_status bad = find(call, a);
    return bad ? bad : pk_attention_behind(call, 5, a);
}

static pk_status additive_attention_backward_query(const pk_call *call) {
    pk_attention a = {0};
    const pk_status bad = find_backward(call, &a);
    return bad ? bad : pk_attention_query(call, &a);
}

static pk_status additive_attention_backward_source(const pk_call *call) {
    pk_attention a = {.dv = pk_f32(&call->out[4])};
    pk_status bad = find_backward(call, &a);
    if (!bad) bad = pk_check_size(call, "dv", &call->out[2], a.width);
    if (!bad) bad = pk_check_size(call, "work_v", &call->out[4], a.sequences * a.width);
    if (!bad) bad = pk_attention_source(call, &a, &call->out[3]);
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
