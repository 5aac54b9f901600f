/* class_scores: scores of some classes only, each row with its own. */
#include "packed.cuh"

namespace {
const int64_t NONE = -1;

/* x, dx [n, d]; w, dw [classes, d]; b [classes]; ids, z, dz [n, k]; rows [n * k, d] */
struct scores {
    const float *x, *w, *b, *dz;
    float *out;
    const int64_t *ids;
    int64_t n, k, d, classes;
    int add;
};

struct score_each {
    scores s;
    PK_DEVICE void operator()(int64_t i) const {
        const int64_t id = s.ids[i];
        float z = 0.0f;
        if (id != NONE) {
            for (int64_t j = 0; j < s.d; j++)
                z = fmaf(s.x[i / s.k * s.d + j], s.w[id * s.d + j], z);
            if (s.b) z += s.b[id];
        }
        pk_put(s.out + i, z, s.add);
    }
};
struct back_each {
    scores s;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t r = e / s.d;
        float sum = 0.0f;
        for (int64_t j = r * s.k; j < (r + 1) * s.k; j++)
            if (s.ids[j] != NONE) sum = fmaf(s.dz[j], s.w[s.ids[j] * s.d + e % s.d], sum);
        pk_put(s.out + e, sum, s.add);
    }
};
struct rows_each {
    scores s;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t j = e / s.d;
        pk_put(s.out + e, s.dz[j] * s.x[j / s.k * s.d + e % s.d], s.add);
    }
};
/* An element of a class adds up the pairs of the class in their order. */
struct weight_each {
    scores s;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t id = e / s.d;
        float sum = 0.0f;
        for (int64_t j = 0; j < s.n * s.k; j++)
            if (s.ids[j] == id) sum = fmaf(s.dz[j], s.x[j / s.k * s.d + e % s.d], sum);
        pk_put(s.out + e, sum, s.add);
    }
};

pk_status check_classes(const pk_call *call, const pk_view *ids, int64_t classes, int64_t k) {
    return pk_check_index(call, pk_i64(ids), pk_count(ids), classes, NONE, k,
                          "class is %lld, must be below %lld");
}
pk_status find(const pk_call *call, const pk_view *x, const pk_view *w, const pk_view *ids,
               const pk_view *z, scores *s) {
    s->n = x->dim[0], s->d = pk_inner(x, 1), s->k = pk_inner(z, 1), s->classes = w->dim[0];
    s->ids = pk_i64(ids), s->out = pk_f32(&call->out[0]), s->add = pk_adds(call, 0);
    PK_TRY(pk_check_size(call, "w", w, s->classes * s->d));
    PK_TRY(pk_check_size(call, "ids", ids, s->n * s->k));
    PK_TRY(pk_check_size(call, "z", z, s->n * s->k));
    return check_classes(call, ids, s->classes, s->k);
}

pk_status class_scores_forward(const pk_call *call) {
    const pk_view *in = call->in;
    scores s = {};
    s.x = pk_f32(&in[0]), s.w = pk_f32(&in[1]), s.b = pk_f32(&in[2]);
    PK_TRY(find(call, &in[0], &in[1], &in[3], &call->out[0], &s));
    PK_TRY(pk_check_size(call, "b", &in[2], s.classes));
    return pk_each(call, s.n * s.k, score_each{s});
}
pk_status class_scores_backward_x(const pk_call *call) {
    const pk_view *in = call->in;
    scores s = {};
    s.dz = pk_f32(&in[0]), s.w = pk_f32(&in[1]);
    PK_TRY(find(call, &call->out[0], &in[1], &in[2], &in[0], &s));
    return pk_each(call, s.n * s.d, back_each{s});
}
pk_status class_scores_backward_w(const pk_call *call) {
    const pk_view *in = call->in;
    scores s = {};
    s.dz = pk_f32(&in[0]), s.x = pk_f32(&in[1]);
    PK_TRY(find(call, &in[1], &call->out[0], &in[2], &in[0], &s));
    return pk_each(call, s.classes * s.d, weight_each{s});
}
pk_status class_scores_backward_rows(const pk_call *call) {
    const pk_view *dz = &call->in[0], *x = &call->in[1], *rows = &call->out[0];
    scores s = {};
    s.dz = pk_f32(dz), s.x = pk_f32(x), s.out = pk_f32(rows), s.add = pk_adds(call, 0);
    s.d = pk_inner(x, 1), s.k = pk_inner(dz, 1);
    PK_TRY(pk_check_size(call, "dz", dz, x->dim[0] * s.k));
    PK_TRY(pk_check_size(call, "rows", rows, pk_count(dz) * s.d));
    return pk_each(call, pk_count(rows), rows_each{s});
}
pk_status class_scores_backward_b(const pk_call *call) {
    const pk_view *dz = &call->in[0], *ids = &call->in[1], *db = &call->out[0];
    PK_TRY(pk_check_size(call, "ids", ids, pk_count(dz)));
    PK_TRY(check_classes(call, ids, pk_count(db), pk_inner(dz, 1)));
    return pk_add_rows(call, pk_f32(db), pk_count(db), pk_f32(dz), pk_i64(ids), pk_count(ids), 1,
                       NONE, pk_adds(call, 0));
}
} /* namespace */

PK_OP(class_scores,
      {"class_scores.forward(x: f32, w: f32, b?: f32, ids: i64; sparse: bool) -> (z: f32)",
       class_scores_forward},
      {"class_scores.backward_x(dz: f32, w: f32, ids: i64) -> (dx: f32)", class_scores_backward_x},
      {"class_scores.backward_w(dz: f32, x: f32, ids: i64) -> (dw: f32)", class_scores_backward_w},
      {"class_scores.backward_rows(dz: f32, x: f32) -> (rows: f32)", class_scores_backward_rows},
      {"class_scores.backward_b(dz: f32, ids: i64) -> (db: f32)", class_scores_backward_b});
