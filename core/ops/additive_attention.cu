/* additive_attention: rows that ask the tokens of their sequence, by a small net of both. */
#include "attention.cuh"

namespace {
pk_status find(const pk_call *call, pk_attention *a) {
    const pk_view *v = &call->in[3];
    a->heads = 1, a->scale = 1.0f, a->v = pk_f32(v);
    a->kind = call->attr[0].i ? PK_SCORE_TANH : PK_SCORE_LINEAR;
    PK_TRY(pk_attention_of(call, &call->in[0], &call->in[1], &call->in[2], &call->in[4], a));
    if (pk_count(v) != a->width)
        return pk_fail(call, PK_BAD_SHAPE, -1, "v has %lld elements, the queries %lld",
                       (long long)pk_count(v), (long long)a->width);
    return PK_OK;
}

pk_status additive_attention_forward(const pk_call *call) {
    pk_attention a = {};
    a.out = pk_f32(&call->out[0]), a.add[0] = pk_adds(call, 0);
    PK_TRY(find(call, &a));
    return pk_attention_run(call, a, a.rows, a.rows * a.depth, pk_attention_forward{a});
}
pk_status additive_attention_backward_query(const pk_call *call) {
    pk_attention a = {};
    a.out = pk_f32(&call->out[0]), a.add[0] = pk_adds(call, 0);
    PK_TRY(find(call, &a));
    PK_TRY(pk_attention_seen(call, &call->in[5], &call->in[6], &a));
    return pk_attention_run(call, a, a.rows, a.rows * a.width, pk_attention_query{a});
}

struct add_parts {
    float *dv;
    const float *parts; /* [sequences, width] */
    int64_t sequences, width;
    int add;
    PK_DEVICE void operator()(int64_t j) const {
        float sum = 0.0f;
        for (int64_t s = 0; s < sequences; s++) sum += parts[s * width + j];
        pk_put(dv + j, sum, add);
    }
};
pk_status additive_attention_backward_source(const pk_call *call) {
    pk_attention a = {};
    a.dv = pk_f32(&call->out[4]);
    PK_TRY(find(call, &a));
    PK_TRY(pk_attention_seen(call, &call->in[5], &call->in[6], &a));
    if (pk_count(&call->out[2]) != a.width || pk_count(&call->out[4]) != a.sequences * a.width)
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "the gradient of v has %lld elements, its parts %lld",
                       (long long)pk_count(&call->out[2]), (long long)pk_count(&call->out[4]));
    PK_TRY(pk_attention_source(call, &a, call->in[1].dim[0]));
    return pk_each(call, a.width,
                   add_parts{pk_f32(&call->out[2]), a.dv, a.sequences, a.width, pk_adds(call, 2)});
}
} /* namespace */

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
