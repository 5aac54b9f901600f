/* softmax_with_cross_entropy: log-softmax and cross-entropy in one, right for scores of any size.
 *
 * Nothing of the size of x is saved: `stats` keeps, for each distribution, its largest score m and l = log(sum(exp(x - m))),
 * from which the backward kernel makes p = exp(x - m - l) again.  m and l stay apart because their sum would lose the
 * digits of l where scores are large.  Where a gradient is known before the loss, as in every mean,
 * `forward_backward` makes both while the row is in the nearest cache, with one exponential a score,
 * and nothing is saved. */
#include "softmax_rows.h"

typedef struct task_data {
    float *out, *stats_out;      /* loss [places] and stats [places, 2]; or dx [outer, classes, inner] */
    const float *x;              /* [outer, classes, inner] */
    const int64_t *label;        /* hard: [places]; NULL when soft */
    const float *soft;           /* [outer, classes, inner] */
    const float *weight;         /* [classes] or NULL: what a label counts */
    const float *stats, *dloss;  /* backward: [places, 2], [places] */
    int64_t ignore;
    rows_shape shape;
    float *dx;                   /* forward_backward: [outer, classes] */
    int add, add_stats, add_dx;
} task_data;

/* What the backward kernel has of a row: its largest score and the logarithm of its sum. */
typedef struct row_stats {
    float m, l;
} row_stats;

static float worth(const task_data *k, int64_t label) { return k->weight == NULL ? 1.0f : k->weight[label]; }
static void put(float *out, float v, int add) { *out = add ? *out + v : v; }

/* e^z - 1 for z <= 0: the difference would lose the digits of a small z. */
static float exp_minus_1(float z) {
    if (z < -0.125f) return pk_exp1(z) - 1.0f;
    return z * (1.0f + z * (0.5f + z * (1.0f / 6 + z * (1.0f / 24 + z * (1.0f / 120)))));
}

/* log(rest + exp(gap)), without the second where no label counts.  A label that is the largest score
 * has the loss log(1 + the others' sum): it keeps its digits however small it is. */
static float log_of_sum(float rest, float gap, int counts) {
    if (!counts) return pk_log1(rest);
    return gap == 0.0f ? pk_log1p1(rest) : pk_log1(rest + pk_exp1(gap));
}

static void forward_hard_row(const task_data *k, int64_t row) {
    const int64_t classes = k->shape.classes, label = k->label[row];
    const float *x = k->x + row * classes;
    const int counts = label != k->ignore;
    const float m = pk_row_max(x, classes), gap = counts ? x[label] - m : 0.0f;
    const float l = log_of_sum(row_exp_rest(NULL, x, classes, m, counts ? label : -1), gap, counts);
    put(k->out + row, counts ? worth(k, label) * (l - gap) : 0.0f, k->add);
    put(k->stats_out + 2 * row, m, k->add_stats);
    put(k->stats_out + 2 * row + 1, l, k->add_stats);
}

static void forward_soft_row(const task_data *k, int64_t row) {
    const int64_t classes = k->shape.classes;
    const float *x = k->x + row * classes;
    const float m = pk_row_max(x, classes), l = pk_log1(row_exp_sum(x, classes, m));
    const pk_vec vm = pk_set1(m), vl = pk_set1(l);
    pk_vec s = pk_zero();
    PK_FOR16(i, c, classes) {
        const pk_vec t = pk_load_n(k->soft + row * classes + i, c);
        s = pk_fma(t, pk_sub(vl, pk_sub(pk_load_n(x + i, c), vm)), s);
    }
    put(k->out + row, pk_sum16(s), k->add);
    put(k->stats_out + 2 * row, m, k->add_stats);
    put(k->stats_out + 2 * row + 1, l, k->add_stats);
}

static void forward_columns(const task_data *k, rows_place at) {
    const int64_t classes = k->shape.classes, inner = k->shape.inner;
    const float *x = k->x + at.first;
    /* place of the first lane: outer index times inner, plus the column */
    const int64_t o = at.first / (classes * inner), place = o * inner + at.first % inner;
    const pk_vec m = columns_max(x, classes, at), l = pk_log(columns_exp_sum(x, classes, at, m));
    float ms[16], ls[16], loss[16];
    pk_vec s = pk_zero();
    if (k->soft != NULL)
        for (int64_t c = 0; c < classes * inner; c += inner)
            s = pk_fma(pk_load_n(k->soft + at.first + c, at.lanes),
                       pk_sub(l, pk_sub(pk_load_n(x + c, at.lanes), m)), s);
    pk_store(ms, m), pk_store(ls, l), pk_store(loss, s);
    for (int64_t j = 0; j < at.lanes; j++) {
        if (k->soft == NULL) {
            const int64_t label = k->label[place + j];
            loss[j] = label == k->ignore ? 0.0f : worth(k, label) * (ls[j] - (x[label * inner + j] - ms[j]));
        }
        put(k->out + place + j, loss[j], k->add);
        put(k->stats_out + 2 * (place + j), ms[j], k->add_stats);
        put(k->stats_out + 2 * (place + j) + 1, ls[j], k->add_stats);
    }
}

static void forward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const task_data *k = context;
    for (int64_t i = begin; i < end; i++) {
        if (k->shape.inner == 1 && k->soft == NULL)
            forward_hard_row(k, i);
        else if (k->shape.inner == 1)
            forward_soft_row(k, i);
        else
            forward_columns(k, rows_at(k->shape, i));
    }
}

/* dx = dloss*(p - onehot), or dloss*(p*sum(t) - t) for soft labels */
static void backward_row(const task_data *k, int64_t row, row_stats stats) {
    const int64_t classes = k->shape.classes;
    const float *x = k->x + row * classes, *t = k->soft == NULL ? NULL : k->soft + row * classes;
    float *dx = k->out + row * classes;
    const int64_t label = t == NULL ? k->label[row] : 0;
    if (t == NULL && label == k->ignore) {
        if (!k->add) memset(dx, 0, (size_t)classes * sizeof *dx);
        return;
    }
    const pk_vec m = pk_set1(stats.m), l = pk_set1(stats.l);
    const float d = k->dloss[row] * (t == NULL ? worth(k, label) : 1.0f);
    const pk_vec vd = pk_set1(d), total = pk_set1(t == NULL ? 1.0f : pk_row_sum(t, classes));
    PK_FOR16(i, c, classes) {
        pk_vec v = pk_exp(pk_sub(pk_sub(pk_load_n(x + i, c), m), l));
        if (t != NULL)
            v = pk_sub(pk_mul(v, total), pk_load_n(t + i, c));
        else if (label >= i && label < i + c) {
            float lanes[16];
            pk_store(lanes, v);
            lanes[label - i] = exp_minus_1(x[label] - stats.m - stats.l);
            v = pk_load(lanes);
        }
        pk_put(dx + i, pk_mul(v, vd), c, k->add);
    }
}

static void backward_columns(const task_data *k, rows_place at) {
    const int64_t classes = k->shape.classes, inner = k->shape.inner;
    const int64_t o = at.first / (classes * inner), place = o * inner + at.first % inner;
    float ms[16] = {0}, ls[16] = {0}, ds[16] = {0};
    for (int64_t j = 0; j < at.lanes; j++) {
        const int64_t label = k->soft == NULL ? k->label[place + j] : 0;
        ms[j] = k->stats[2 * (place + j)], ls[j] = k->stats[2 * (place + j) + 1];
        ds[j] = k->soft != NULL ? k->dloss[place + j] : label == k->ignore ? 0.0f : k->dloss[place + j] * worth(k, label);
    }
    const pk_vec m = pk_load(ms), l = pk_load(ls), d = pk_load(ds);
    pk_vec total = k->soft == NULL ? pk_set1(1.0f) : pk_zero();
    if (k->soft != NULL)
        for (int64_t c = 0; c < classes * inner; c += inner)
            total = pk_add(total, pk_load_n(k->soft + at.first + c, at.lanes));
    for (int64_t c = 0; c < classes; c++) {
        const int64_t e = at.first + c * inner;
        pk_vec t;
        if (k->soft != NULL) {
            t = pk_load_n(k->soft + e, at.lanes);
        } else {
            float lanes[16] = {0};
            for (int64_t j = 0; j < at.lanes; j++) lanes[j] = k->label[place + j] == c ? 1.0f : 0.0f;
            t = pk_load(lanes);
        }
        const pk_vec p = pk_exp(pk_sub(pk_sub(pk_load_n(k->x + e, at.lanes), m), l));
        /* An ignored place has d = 0, but its x may be anything: 0 times infinity is not 0. */
        const pk_vec v = pk_mul(pk_sub(pk_mul(p, total), t), d);
        pk_put(k->out + e, pk_select(pk_eq(d, pk_zero()), pk_zero(), v), at.lanes, k->add);
    }
}

static void backward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const task_data *k = context;
    for (int64_t i = begin; i < end; i++) {
        if (k->shape.inner == 1)
            backward_row(k, i, (row_stats){k->stats[2 * i], k->stats[2 * i + 1]});
        else
            backward_columns(k, rows_at(k->shape, i));
    }
}

/* Loss and gradient of a row with a hard label; dx may be x. */
static void both_row(const task_data *k, int64_t row) {
    const int64_t classes = k->shape.classes, label = k->label[row];
    const float *x = k->x + row * classes;
    float *dx = k->dx + row * classes;
    if (label == k->ignore) {
        put(k->out + row, 0.0f, k->add);
        if (!k->add_dx) memset(dx, 0, (size_t)classes * sizeof *dx);
        return;
    }
    const float m = pk_row_max(x, classes), gap = x[label] - m;
    const float rest = row_exp_rest(k->add_dx ? NULL : dx, x, classes, m, label);
    const float l = log_of_sum(rest, gap, 1);
    put(k->out + row, worth(k, label) * (l - gap), k->add);
    if (k->add_dx) {
        task_data back = *k;
        back.out = k->dx, back.add = 1;
        backward_row(&back, row, (row_stats){m, l});
        return;
    }
    const float d = k->dloss[row] * worth(k, label);
    const pk_vec share = pk_set1(d / (rest + pk_exp1(gap)));
    PK_FOR16(i, c, classes) pk_store_n(dx + i, pk_mul(pk_load_n(dx + i, c), share), c);
    dx[label] = d * exp_minus_1(gap - l);
}

static void both_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    for (int64_t i = begin; i < end; i++) both_row(context, i);
}

/* Fills what all kernels need and checks the labels. */
static pk_status prepare(const pk_call *call, int soft, int64_t axis, int64_t ignore,
                         task_data *k) {
    const pk_view *x = &call->in[0], *label = &call->in[1], *weight = &call->in[2];
    const pk_status status = rows_of(call, x, axis, &k->shape);
    if (status != PK_OK) return status;
    const int64_t places = k->shape.outer * k->shape.inner, wanted = soft ? pk_count(x) : places;
    if (pk_count(label) != wanted || label->dtype != (soft ? PK_F32 : PK_I64))
        return pk_fail(call, PK_BAD_SHAPE, -1,
                       "label has %lld elements of type %d, %lld %s are needed",
                       (long long)pk_count(label), (int)label->dtype, (long long)wanted, soft ? "f32" : "i64");
    if (weight->data != NULL && (soft || pk_count(weight) != k->shape.classes))
        return pk_fail(call, PK_BAD_SHAPE, -1, "weight has %lld elements, x has %lld classes%s",
                       (long long)pk_count(weight), (long long)k->shape.classes, soft ? " and soft labels" : "");
    k->x = pk_f32(x);
    k->weight = weight->data == NULL ? NULL : pk_f32(weight);
    k->ignore = ignore;
    k->soft = soft ? pk_f32(label) : NULL;
    k->label = soft ? NULL : pk_i64(label);
    for (int64_t i = 0; !soft && i < places; i++)
        if (k->label[i] != k->ignore && (k->label[i] < 0 || k->label[i] >= k->shape.classes))
            return pk_fail(call, PK_BAD_DATA, i / k->shape.inner,
                           "label %lld is not one of %lld classes", (long long)k->label[i],
                           (long long)k->shape.classes);
    return PK_OK;
}

/* x [.., classes, ..], label [..] or as x, weight [classes], loss [..], stats [.., 2] */
static pk_status forward(const pk_call *call) {
    task_data k = {0};
    const pk_attr *attr = call->attr;
    const pk_status status = prepare(call, attr[0].i != 0, attr[1].i, attr[2].i, &k);
    if (status != PK_OK) return status;
    k.out = pk_f32(&call->out[0]), k.stats_out = pk_f32(&call->out[1]);
    k.add = pk_adds(call, 0), k.add_stats = pk_adds(call, 1);
    pk_parallel(call, rows_places(k.shape), rows_grain(k.shape), forward_task, &k);
    return PK_OK;
}

/* x, label, weight as above, stats, dloss -> dx */
static pk_status backward_x(const pk_call *call) {
    task_data k = {0};
    const pk_attr *attr = call->attr;
    const pk_status status = prepare(call, attr[0].i != 0, attr[1].i, attr[2].i, &k);
    if (status != PK_OK) return status;
    k.stats = pk_f32(&call->in[3]), k.dloss = pk_f32(&call->in[4]);
    k.out = pk_f32(&call->out[0]), k.add = pk_adds(call, 0);
    pk_parallel(call, rows_places(k.shape), rows_grain(k.shape), backward_task, &k);
    return PK_OK;
}

/* x [.., classes], label [..], weight [classes], dloss [..] -> loss [..], dx */
static pk_status forward_backward(const pk_call *call) {
    task_data k = {0};
    const pk_status status = prepare(call, 0, -1, call->attr[0].i, &k);
    if (status != PK_OK) return status;
    if (pk_count(&call->in[3]) != k.shape.outer)
        return pk_fail(call, PK_BAD_SHAPE, -1, "dloss has %lld elements, x has %lld rows",
                       (long long)pk_count(&call->in[3]), (long long)k.shape.outer);
    k.dloss = pk_f32(&call->in[3]);
    k.out = pk_f32(&call->out[0]), k.dx = pk_f32(&call->out[1]);
    k.add = pk_adds(call, 0), k.add_dx = pk_adds(call, 1);
    pk_parallel(call, rows_places(k.shape), rows_grain(k.shape), both_task, &k);
    return PK_OK;
}

PK_OP(softmax_with_cross_entropy,
      {"softmax_with_cross_entropy.forward(x: f32, label: any, weight?: f32; soft_label: bool, axis: int, "
       "ignore_index: int) -> (loss: f32, stats: f32)", forward},
      {"softmax_with_cross_entropy.backward_x(x: f32, label: any, weight?: f32, stats: f32, dloss: f32; soft_label: bool, "
       "axis: int, ignore_index: int) -> (dx: f32)", backward_x},
      {"softmax_with_cross_entropy.forward_backward(x: f32, label: i64, weight?: f32, dloss: f32; ignore_index: int)"
       " -> (loss: f32, dx: f32)", forward_backward});
