/* updates.cuh: the walks of the optimizers over flat ranges and over tables whose gradient is
 * row-sparse.
 *
 * A rule is a struct of its attributes:
 *     static const int slots, counted;                    counted: the signature has the input
 * `count` typedef ... settings; settings prepare(double t) const;                   t: number of
 * this update, 1 without a count; run once void step(const settings &, const pk_update &, float d,
 * float *p, float *const *slots) const; where d is the clipped and regularised gradient of the
 * element that p and slots point at.  The arithmetic of an element is that of core/ops/<rule>.c.
 * Offsets of segments come from the plan: a wrong one leaves elements alone. */
#ifndef PK_UPDATES_CUH
#define PK_UPDATES_CUH
#include "reductions.cuh"
#include "rows.cuh"
#include "updates.h"

template <class R> struct pk_prepare_kernel {
    R rule;
    typename R::settings *out;
    const int64_t *count;
    PK_DEVICE void operator()(int64_t) const {
        *out = rule.prepare(count ? (double)*count + 1.0 : 1.0);
    }
};

/* Segments that element i may lie in: the first one that ends behind it. */
PK_DEVICE int64_t pk_segment_of(const int64_t *bounds, int64_t segments, int64_t i) {
    int64_t low = 0, high = segments;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (bounds[2 * middle] + bounds[2 * middle + 1] > i) high = middle;
        else low = middle + 1;
    }
    return low;
}

/* What all walks know; lr, scale and trust lie on the device. */
template <class R> struct pk_update_walk {
    R rule;
    const typename R::settings *settings;
    float *p;
    float *slots[PK_UPDATE_MAX_SLOTS];
    const float *g, *lr, *scale;
    int64_t scales;
    float limit;
    const double *trust; /* by segment; NULL: none */
    PK_DEVICE void move(const pk_update &u, int64_t i, float g_i) const {
        float *at[PK_UPDATE_MAX_SLOTS];
        for (int k = 0; k < R::slots; k++) at[k] = slots[k] + i;
        rule.step(*settings, u, pk_update_gradient(u, g_i, p[i]), p + i, at);
    }
};

/* ---- flat ranges ---- */
template <class R> struct pk_flat_update {
    pk_update_walk<R> w;
    const int64_t *bounds; /* [segments, 2] */
    int64_t segments;
    const float *rates, *l2, *l1;
    const int32_t *clips;
    PK_DEVICE pk_update of(int64_t s) const {
        const int clipped = clips[s] != 0;
        pk_update u;
        u.rate = *w.lr * rates[s];
        u.scale = clipped && w.scales ? w.scale[w.scales > 1 ? s : 0] : 1.0f;
        u.limit = clipped ? w.limit : INFINITY;
        u.l2 = l2[s];
        u.l1 = l1[s];
        u.trust = w.trust ? (float)w.trust[s] : 0.0f;
        return u;
    }
    PK_DEVICE void operator()(int64_t i) const {
        const int64_t s = pk_segment_of(bounds, segments, i);
        if (s < segments && i >= bounds[2 * s]) w.move(of(s), i, w.g[i]);
    }
};

static inline pk_status pk_update_size(const pk_call *call, const char *what, const pk_view *view,
                                       int64_t n) {
    if (pk_count(view) == n) return PK_OK;
    return pk_fail(call, PK_BAD_SHAPE, -1, "%s has %lld elements, expected %lld", what,
                   (long long)pk_count(view), (long long)n);
}

/* States, rate and settings; `lr`: the input's number, `first`: that of the first slot. */
template <class R> pk_status pk_update_take(const pk_call *call, const R &rule, int32_t first,
                                            int32_t lr, double clip, pk_update_walk<R> *w) {
    const pk_view *in = call->in;
    if (call->accumulate)
        return pk_fail(call, PK_BAD_CALL, -1, "an update cannot be added to its outputs");
    PK_TRY(pk_update_size(call, "lr", &in[lr], 1));
    if (R::counted) PK_TRY(pk_update_size(call, "count", &in[lr - 1], 1));
    PK_TRY(pk_take_state(call, 0, 0));
    for (int32_t k = 0; k < R::slots; k++) {
        PK_TRY(pk_update_size(call, "a slot", &in[first + k], pk_count(&in[0])));
        PK_TRY(pk_take_state(call, first + k, 1 + k));
        w->slots[k] = pk_f32(&call->out[1 + k]);
    }
    w->p = pk_f32(&call->out[0]);
    w->lr = pk_f32(&in[lr]);
    w->limit = clip > 0.0 ? (float)clip : INFINITY;
    w->scale = pk_f32(&in[lr + 1]);
    w->scales = in[lr + 1].data ? pk_count(&in[lr + 1]) : 0;
    /* Behind the partial sums of pk_flat_sum. */
    typename R::settings *settings = (typename R::settings *)(pk_device_scratch<char>(call) +
                                                              (1 << 20));
    w->settings = settings;
    w->trust = NULL;
    return pk_each(call, 1,
                   pk_prepare_kernel<R>{rule, settings, R::counted ? pk_i64(&in[lr - 1]) : NULL});
}

template <class R>
pk_status pk_read_flat(const pk_call *call, const R &rule, pk_flat_update<R> *k) {
    const int32_t lr = 2 + R::slots + R::counted;
    const pk_view *in = call->in, *bounds = &in[lr + 2];
    const int64_t segments = bounds->dim[0];
    if (bounds->ndim != 2 || bounds->dim[1] != 2)
        return pk_fail(call, PK_BAD_SHAPE, -1, "bounds must have the shape [segments, 2]");
    PK_TRY(pk_update_size(call, "g", &in[1], pk_count(&in[0])));
    const char *const names[4] = {"rates", "l2", "l1", "clips"};
    for (int32_t i = 0; i < 4; i++)
        PK_TRY(pk_update_size(call, names[i], &in[lr + 3 + i], segments));
    k->w.rule = rule;
    k->w.g = pk_f32(&in[1]);
    PK_TRY(pk_update_take(call, rule, 2, lr, call->attr[0].f, &k->w));
    if (k->w.scales > 1) PK_TRY(pk_update_size(call, "scale", &in[lr + 1], segments));
    k->bounds = pk_i64(bounds);
    k->segments = segments;
    k->rates = pk_f32(&in[lr + 3]), k->l2 = pk_f32(&in[lr + 4]), k->l1 = pk_f32(&in[lr + 5]);
    k->clips = pk_i32(&in[lr + 6]);
    return PK_OK;
}

/* p, g, slots, count if counted, then PK_FLAT_PORTS -> p, slots */
template <class R> pk_status pk_update_flat(const pk_call *call, const R &rule) {
    pk_flat_update<R> k;
    PK_TRY(pk_read_flat(call, rule, &k));
    return pk_each(call, pk_count(&call->in[0]), k);
}

/* ---- tables with a row-sparse gradient ---- */
struct pk_check_ids_kernel {
    pk_gate gate;
    const int64_t *ids, *rows;
    int64_t room, height;
    PK_DEVICE void operator()(int64_t k) const {
        if (k == 0 && (*rows < 0 || *rows > room))
            pk_fault_at(gate, "rows says %lld, there is room for %lld", 0, *rows, room);
        else if (k < *rows && (ids[k] < 0 || ids[k] >= height || (k > 0 && ids[k] <= ids[k - 1])))
            pk_fault_at(gate, "row id %lld: ids must ascend without repeats below %lld", k, ids[k],
                        height);
    }
};

template <class R> struct pk_rows_update {
    pk_update_walk<R> w;
    const int64_t *ids, *rows; /* rows [1]: how many ids there are */
    int64_t columns;
    float rate, l2, l1;
    PK_DEVICE pk_update of() const {
        pk_update u;
        u.rate = *w.lr * rate;
        u.scale = w.scales ? w.scale[0] : 1.0f;
        u.limit = w.limit;
        u.l2 = l2;
        u.l1 = l1;
        u.trust = w.trust ? (float)*w.trust : 0.0f;
        return u;
    }
    /* Place of a row among the ids, -1 for a row without a gradient. */
    PK_DEVICE int64_t find(int64_t row) const {
        int64_t low = 0, high = *rows;
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (ids[middle] >= row) high = middle;
            else low = middle + 1;
        }
        return low < *rows && ids[low] == row ? low : -1;
    }
    PK_DEVICE float gradient(int64_t i) const {
        const int64_t k = find(i / columns);
        return k < 0 ? 0.0f : w.g[k * columns + i % columns];
    }
};
template <class R> struct pk_touched_rows {
    pk_rows_update<R> k;
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t at = e / k.columns;
        if (at < *k.rows) k.w.move(k.of(), k.ids[at] * k.columns + e % k.columns, k.w.g[e]);
    }
};
template <class R> struct pk_all_rows {
    pk_rows_update<R> k;
    PK_DEVICE void operator()(int64_t i) const { k.w.move(k.of(), i, k.gradient(i)); }
};

template <class R>
pk_status pk_read_rows(const pk_call *call, const R &rule, pk_rows_update<R> *k) {
    const pk_view *in = call->in;
    const int32_t lr = 4 + R::slots + R::counted;
    if (in[0].ndim < 1)
        return pk_fail(call, PK_BAD_SHAPE, -1, "p is a single number, expected a table");
    const int64_t room = pk_count(&in[1]);
    k->columns = pk_inner(&in[0], 1);
    PK_TRY(pk_update_size(call, "values", &in[2], room * k->columns));
    PK_TRY(pk_update_size(call, "rows", &in[3], 1));
    const pk_gate gate = pk_gate_of(call);
    PK_TRY(pk_each_behind(
        call, gate, pk_max_i64(1, room),
        pk_check_ids_kernel{gate, pk_i64(&in[1]), pk_i64(&in[3]), room, in[0].dim[0]}));
    k->w.rule = rule;
    k->w.g = pk_f32(&in[2]);
    PK_TRY(pk_update_take(call, rule, 4, lr, call->attr[3].f, &k->w));
    if (k->w.scales > 1) PK_TRY(pk_update_size(call, "scale", &in[lr + 1], 1));
    k->ids = pk_i64(&in[1]), k->rows = pk_i64(&in[3]);
    k->rate = (float)call->attr[0].f, k->l2 = (float)call->attr[1].f,
    k->l1 = (float)call->attr[2].f;
    return PK_OK;
}

/* p, ids, values, rows, slots, count if counted, then PK_ROWS_PORTS -> p, slots.  moves: rows
 * without a gradient move too. */
template <class R> pk_status pk_update_rows(const pk_call *call, const R &rule, int moves) {
    pk_rows_update<R> k;
    PK_TRY(pk_read_rows(call, rule, &k));
    if (!moves && k.l2 == 0.0f && k.l1 == 0.0f)
        return pk_each(call, pk_count(&call->in[2]), pk_touched_rows<R>{k});
    return pk_each(call, pk_count(&call->in[0]), pk_all_rows<R>{k});
}

/* ---- rules with norms ---- */
/* Such a rule has two passes and besides step (the second one, with u.trust):
 *     void first(settings, u, d, p, slots) const;     moves the slots, but not p
 *     float size(settings, u, d, p, slots) const;     what is squared and summed beside p
 *     float trust(u, p2, size2) const; */
#define PK_NORM_BLOCK 256

template <class R> struct pk_first_pass {
    pk_flat_update<R> k;
    PK_DEVICE void operator()(int64_t i) const {
        const int64_t s = pk_segment_of(k.bounds, k.segments, i);
        if (s >= k.segments || i < k.bounds[2 * s]) return;
        float *at[PK_UPDATE_MAX_SLOTS];
        for (int j = 0; j < R::slots; j++) at[j] = k.w.slots[j] + i;
        const pk_update u = k.of(s);
        k.w.rule.first(*k.w.settings, u, pk_update_gradient(u, k.w.g[i], k.w.p[i]), k.w.p + i, at);
    }
};
/* A block for each segment. */
template <class R> struct pk_segment_trust {
    pk_flat_update<R> k;
    double *trust;
    PK_DEVICE void operator()() const {
        const int64_t s = blockIdx.x, from = k.bounds[2 * s], n = k.bounds[2 * s + 1];
        const pk_update u = k.of(s);
        double p2 = 0.0, size2 = 0.0;
        for (int64_t i = from + threadIdx.x; i < from + n; i += PK_NORM_BLOCK) {
            float *at[PK_UPDATE_MAX_SLOTS];
            for (int j = 0; j < R::slots; j++) at[j] = k.w.slots[j] + i;
            const double p = k.w.p[i];
            const double size = k.w.rule.size(
                *k.w.settings, u, pk_update_gradient(u, k.w.g[i], k.w.p[i]), k.w.p + i, at);
            p2 += p * p, size2 += size * size;
        }
        p2 = pk_block_sum(p2), size2 = pk_block_sum(size2);
        if (threadIdx.x == 0) trust[s] = k.w.rule.trust(u, p2, size2);
    }
};

/* As pk_update_flat, with an output work f64 of at least `segments` elements behind the slots. */
template <class R> pk_status pk_update_flat_norms(const pk_call *call, const R &rule) {
    const pk_view *work = &call->out[1 + R::slots];
    pk_flat_update<R> k;
    PK_TRY(pk_read_flat(call, rule, &k));
    if (pk_count(work) < k.segments) return pk_update_size(call, "work", work, k.segments);
    PK_TRY(pk_each(call, pk_count(&call->in[0]), pk_first_pass<R>{k}));
    PK_TRY(PK_LAUNCH(call, pk_dim((unsigned)k.segments), pk_dim(PK_NORM_BLOCK),
                     pk_segment_trust<R>{k, (double *)work->data}));
    k.w.trust = (const double *)work->data;
    return pk_each(call, pk_count(&call->in[0]), k);
}

template <class R> struct pk_first_rows {
    pk_rows_update<R> k;
    PK_DEVICE void operator()(int64_t i) const {
        float *at[PK_UPDATE_MAX_SLOTS];
        for (int j = 0; j < R::slots; j++) at[j] = k.w.slots[j] + i;
        const pk_update u = k.of();
        k.w.rule.first(*k.w.settings, u, pk_update_gradient(u, k.gradient(i), k.w.p[i]), k.w.p + i,
                       at);
    }
};
template <class R> struct pk_row_sizes {
    pk_rows_update<R> k;
    PK_DEVICE double at(int64_t i) const {
        float *at[PK_UPDATE_MAX_SLOTS];
        for (int j = 0; j < R::slots; j++) at[j] = k.w.slots[j] + i;
        const pk_update u = k.of();
        const double size = k.w.rule.size(
            *k.w.settings, u, pk_update_gradient(u, k.gradient(i), k.w.p[i]), k.w.p + i, at);
        return size * size;
    }
};
struct pk_keep_sum {
    double *out;
    PK_DEVICE void put(double sum) const { *out = sum; }
};
template <class R> struct pk_table_trust {
    pk_rows_update<R> k;
    double *work; /* p2, size2; then the trust */
    PK_DEVICE void operator()(int64_t) const { work[0] = k.w.rule.trust(k.of(), work[0], work[1]); }
};

/* As pk_update_rows where all rows move, with an output work f64 of at least 2 elements. */
template <class R> pk_status pk_update_rows_norms(const pk_call *call, const R &rule) {
    const pk_view *out = &call->out[1 + R::slots];
    double *work = (double *)out->data;
    const int64_t n = pk_count(&call->in[0]);
    pk_rows_update<R> k;
    PK_TRY(pk_read_rows(call, rule, &k));
    if (n == 0) return PK_OK;
    if (pk_count(out) < 2) return pk_update_size(call, "work", out, 2);
    PK_TRY(pk_each(call, n, pk_first_rows<R>{k}));
    PK_TRY(pk_flat_sum<double>(call, n, pk_squares{k.w.p}, pk_keep_sum{work}));
    PK_TRY(pk_flat_sum<double>(call, n, pk_row_sizes<R>{k}, pk_keep_sum{work + 1}));
    PK_TRY(pk_each(call, 1, pk_table_trust<R>{k, work}));
    k.w.trust = work;
    return pk_each(call, n, pk_all_rows<R>{k});
}
#endif
