/* class_scores: scores of some classes only, each row with its own. */
#include <string.h>

#include "elementwise.h"
#include "packed.h"
#include "rows.h"

#define NONE (-1)

/* x, dx [n, d]; w, dw [classes, d]; b [classes]; ids, z, dz [n, k]; rows [n * k, d] */
typedef struct scores {
    const float *x, *w, *b, *dz;
    float *out;
    const int64_t *ids;
    int64_t n, k, d, classes, bands;
    int add;
} scores;

static pk_status find(const pk_call *call, const pk_view *x, const pk_view *w, const pk_view *ids,
                      const pk_view *z, scores *s) {
    s->n = x->dim[0], s->d = pk_inner(x, 1), s->k = pk_inner(z, 1), s->classes = w->dim[0];
    s->ids = pk_i64(ids), s->out = pk_f32(&call->out[0]), s->add = pk_adds(call, 0);
    pk_status bad = pk_check_size(call, "w", w, s->classes * s->d);
    if (!bad) bad = pk_check_size(call, "ids", ids, s->n * s->k);
    if (!bad) bad = pk_check_size(call, "z", z, s->n * s->k);
    if (bad) return bad;
    return pk_check_index(call, s->ids, s->n * s->k, s->classes, NONE, "class");
}

static int64_t grain(const scores *s) {
    return pk_max_i64(1, 8192 / pk_max_i64(1, s->k * s->d));
}

static void forward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const scores *s = context;
    (void)thread, (void)scratch;
    for (int64_t i = begin * s->k; i < end * s->k; i++) {
        const int64_t id = s->ids[i];
        float z = 0.0f;
        if (id != NONE) {
            z = pk_row_dot(s->x + i / s->k * s->d, s->w + id * s->d, s->d);
            if (s->b) z += s->b[id];
        }
        s->out[i] = s->add ? s->out[i] + z : z;
    }
}

static pk_status class_scores_forward(const pk_call *call) {
    const pk_view *in = call->in;
    scores s = {.x = pk_f32(&in[0]), .w = pk_f32(&in[1]), .b = pk_f32(&in[2])};
    pk_status bad = find(call, &in[0], &in[1], &in[3], &call->out[0], &s);
    if (!bad) bad = pk_check_size(call, "b", &in[2], s.classes);
    if (bad) return bad;
    pk_parallel(call, s.n, grain(&s), forward_task, &s);
    return PK_OK;
}

static void backward_task(void *context, int64_t begin, int64_t end, int32_t thread,
                          void *scratch) {
    const scores *s = context;
    (void)thread, (void)scratch;
    for (int64_t r = begin; r < end; r++)
        PK_FOR16(i, c, s->d) {
            pk_vec sum = pk_zero();
            for (int64_t j = r * s->k; j < (r + 1) * s->k; j++)
                if (s->ids[j] != NONE)
                    sum = pk_fma(pk_set1(s->dz[j]), pk_load_n(s->w + s->ids[j] * s->d + i, c), sum);
            pk_put(s->out + r * s->d + i, sum, c, s->add);
        }
}

static pk_status class_scores_backward_x(const pk_call *call) {
    const pk_view *in = call->in;
    scores s = {.dz = pk_f32(&in[0]), .w = pk_f32(&in[1])};
    const pk_status bad = find(call, &call->out[0], &in[1], &in[2], &in[0], &s);
    if (bad) return bad;
    pk_parallel(call, s.n, grain(&s), backward_task, &s);
    return PK_OK;
}

/* A band of the classes: walks all pairs, so the order of additions is theirs. */
static void weight_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const scores *s = context;
    (void)thread, (void)scratch;
    const int64_t per = pk_ceil_div(s->classes, s->bands);
    const int64_t low = begin * per, high = pk_min_i64(end * per, s->classes);
    if (low >= high) return;
    if (!s->add) memset(s->out + low * s->d, 0, (size_t)((high - low) * s->d) * sizeof(float));
    for (int64_t j = 0; j < s->n * s->k; j++) {
        if (s->ids[j] < low || s->ids[j] >= high) continue;
        float *dw = s->out + s->ids[j] * s->d;
        const float *x = s->x + j / s->k * s->d;
        PK_FOR16(i, c, s->d)
            pk_store_n(dw + i, pk_fma(pk_set1(s->dz[j]), pk_load_n(x + i, c), pk_load_n(dw + i, c)),
                       c);
    }
}

static pk_status class_scores_backward_w(const pk_call *call) {
    const pk_view *in = call->in;
    scores s = {.dz = pk_f32(&in[0]), .x = pk_f32(&in[1])};
    const pk_status bad = find(call, &in[1], &call->out[0], &in[2], &in[0], &s);
    if (bad) return bad;
    /* At most 16 bands: each of them reads all ids. */
    s.bands = pk_max_i64(1, pk_min_i64(16, pk_ceil_div(s.classes * s.d, 16384)));
    pk_parallel(call, s.bands, 1, weight_task, &s);
    return PK_OK;
}

static void rows_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const scores *s = context;
    (void)thread, (void)scratch;
    for (int64_t j = begin; j < end; j++)
        PK_FOR16(i, c, s->d) {
            const pk_vec x = pk_load_n(s->x + j / s->k * s->d + i, c);
            pk_put(s->out + j * s->d + i, pk_mul(pk_set1(s->dz[j]), x), c, s->add);
        }
}

static pk_status class_scores_backward_rows(const pk_call *call) {
    const pk_view *dz = &call->in[0], *x = &call->in[1], *rows = &call->out[0];
    scores s = {.dz = pk_f32(dz), .x = pk_f32(x), .out = pk_f32(rows), .d = pk_inner(x, 1),
                .k = pk_inner(dz, 1), .add = pk_adds(call, 0)};
    pk_status bad = pk_check_size(call, "dz", dz, x->dim[0] * s.k);
    if (!bad) bad = pk_check_size(call, "rows", rows, pk_count(dz) * s.d);
    if (bad) return bad;
    pk_parallel(call, pk_count(dz), pk_max_i64(1, 8192 / pk_max_i64(1, s.d)), rows_task, &s);
    return PK_OK;
}

static pk_status class_scores_backward_b(const pk_call *call) {
    const pk_view *dz = &call->in[0], *ids = &call->in[1], *db = &call->out[0];
    pk_status bad = pk_check_size(call, "ids", ids, pk_count(dz));
    if (!bad) bad = pk_check_index(call, pk_i64(ids), pk_count(ids), pk_count(db), NONE, "class");
    if (bad) return bad;
    pk_add_rows(call, pk_f32(db), pk_count(db), pk_f32(dz), pk_i64(ids), pk_count(ids), 1, NONE,
                pk_adds(call, 0));
    return PK_OK;
}

PK_OP(class_scores,
      {"class_scores.forward(x: f32, w: f32, b?: f32, ids: i64; sparse: bool) -> (z: f32)",
       class_scores_forward},
      {"class_scores.backward_x(dz: f32, w: f32, ids: i64) -> (dx: f32)", class_scores_backward_x},
      {"class_scores.backward_w(dz: f32, x: f32, ids: i64) -> (dw: f32)", class_scores_backward_w},
      {"class_scores.backward_rows(dz: f32, x: f32) -> (rows: f32)", class_scores_backward_rows},
      {"class_scores.backward_b(dz: f32, ids: i64) -> (db: f32)", class_scores_backward_b});
