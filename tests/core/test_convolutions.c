/* Convolutions against plain loops in double; same bits for threads, levels and batches. */
#include "check.h"
#include "convolutions.h"
#include "products.h"

#undef pk_conv_forward
#undef pk_conv_input_gradient
#undef pk_conv_filter_gradient
#undef pk_conv_bias_gradient
typedef struct {
    const char *level;
    void (*forward)(const pk_call *, const pk_conv *, const float *, const float *, const float *,
                    int32_t, int32_t, float *);
    void (*input)(const pk_call *, const pk_conv *, const float *, const float *, int32_t, float *);
    void (*filter)(const pk_call *, const pk_conv *, const float *, const float *, int32_t,
                   float *);
    void (*bias)(const pk_call *, const pk_conv *, const float *, int32_t, float *);
} variant;
#define F(level)                                                                                 \
    void pk_conv_forward_##level(const pk_call *, const pk_conv *, const float *, const float *, \
                                 const float *, int32_t, int32_t, float *);                      \
    void pk_conv_input_gradient_##level(const pk_call *, const pk_conv *, const float *,         \
                                        const float *, int32_t, float *);                        \
    void pk_conv_filter_gradient_##level(const pk_call *, const pk_conv *, const float *,        \
                                         const float *, int32_t, float *);                       \
    void pk_conv_bias_gradient_##level(const pk_call *, const pk_conv *, const float *, int32_t, \
                                       float *);
PK_EACH_LEVEL(F)
#undef F
#define F(level)                                                      \
    {#level, pk_conv_forward_##level, pk_conv_input_gradient_##level, \
     pk_conv_filter_gradient_##level, pk_conv_bias_gradient_##level},
static const variant variants[] = {PK_EACH_LEVEL(F)};
#undef F
#define VARIANTS (int)(sizeof variants / sizeof variants[0])

static int64_t x_count(const pk_conv *c) { return c->n * c->channels * c->height * c->width; }
static int64_t w_count(const pk_conv *c) {
    return c->out_channels * (c->channels / c->groups) * c->kernel_h * c->kernel_w;
}
static int64_t y_count(const pk_conv *c) { return c->n * c->out_channels * c->out_h * c->out_w; }

/* Calls visit(index in x, in w, in y) for every product of the convolution. */
typedef void (*visitor)(void *context, int64_t x, int64_t w, int64_t y);
static void visit_row(const pk_conv *c, int64_t s, int64_t o, int64_t oh, int64_t ow, visitor visit,
                      void *context) {
    const int64_t in = c->channels / c->groups, group = o / (c->out_channels / c->groups);
    const int64_t y = ((s * c->out_channels + o) * c->out_h + oh) * c->out_w + ow;
    for (int64_t i = 0; i < in; i++)
        for (int64_t kh = 0; kh < c->kernel_h; kh++)
            for (int64_t kw = 0; kw < c->kernel_w; kw++) {
                const int64_t ih = oh * c->stride_h - c->pad_top + kh * c->dilation_h;
                const int64_t iw = ow * c->stride_w - c->pad_left + kw * c->dilation_w;
                if (ih < 0 || ih >= c->height || iw < 0 || iw >= c->width) continue;
                visit(context,
                      ((s * c->channels + group * in + i) * c->height + ih) * c->width + iw,
                      ((o * in + i) * c->kernel_h + kh) * c->kernel_w + kw, y);
            }
}
static void visit_all(const pk_conv *c, visitor visit, void *context) {
    for (int64_t s = 0; s < c->n; s++)
        for (int64_t o = 0; o < c->out_channels; o++)
            for (int64_t oh = 0; oh < c->out_h; oh++)
                for (int64_t ow = 0; ow < c->out_w; ow++)
                    visit_row(c, s, o, oh, ow, visit, context);
}

/* Sums in double of what one of the three convolutions adds, and of the sizes of its terms. */
typedef struct {
    const float *x, *w, *dy;
    double *sum, *size;
} sums;
static void add_term(sums *s, int64_t at, double term) {
    s->sum[at] += term;
    s->size[at] += fabs(term);
}
static void add_y(void *s, int64_t x, int64_t w, int64_t y) {
    add_term(s, y, (double)((sums *)s)->x[x] * ((sums *)s)->w[w]);
}
static void add_dx(void *s, int64_t x, int64_t w, int64_t y) {
    add_term(s, x, (double)((sums *)s)->dy[y] * ((sums *)s)->w[w]);
}
static void add_dw(void *s, int64_t x, int64_t w, int64_t y) {
    add_term(s, w, (double)((sums *)s)->dy[y] * ((sums *)s)->x[x]);
}

static void compare(const char *what, const char *level, const sums *s, const float *old,
                    const float *got, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const double expected = s->sum[i] + (old ? old[i] : 0);
        CHECK(fabs(got[i] - expected) <= 1e-6 * (s->size[i] + 1), "%s %s at %ld: %g, not %g", level,
              what, (long)i, got[i], expected);
    }
}

/* One of the three functions, for the loop over levels and pools. */
typedef enum { FORWARD, INPUT, FILTER, BIAS } kind;
static const char *const kind_name[] = {"forward", "input gradient", "filter gradient",
                                        "bias gradient"};
typedef struct {
    const pk_conv *c;
    const float *x, *w, *dy, *bias;
    int32_t accumulate;
} operands;
static void run(kind k, const variant *v, const pk_call *call, const operands *o, float *out) {
    switch (k) {
    case FORWARD: v->forward(call, o->c, o->x, o->w, NULL, PK_ACT_NONE, o->accumulate, out); break;
    case INPUT: v->input(call, o->c, o->dy, o->w, o->accumulate, out); break;
    case FILTER: v->filter(call, o->c, o->x, o->dy, o->accumulate, out); break;
    case BIAS: v->bias(call, o->c, o->dy, o->accumulate, out); break;
    }
}

static void try_kind(kind k, const operands *o, const sums *s, int64_t n) {
    float *old = random_floats(n), *fma_first = NULL;
    for (int v = 0; v < VARIANTS; v++) {
        float *first = NULL;
        if (!pk_level_supported(v)) continue;
        for (int i = 0; i < CALLS; i++) {
            float *out = copy_floats(old, n);
            run(k, &variants[v], &test_calls[i], o, out);
            if (!first) {
                first = out;
                compare(kind_name[k], variants[v].level, s, o->accumulate ? old : NULL, out, n);
                continue;
            }
            CHECK(same_bits(first, out, n), "%s %s: pool %d differs", variants[v].level,
                  kind_name[k], i);
            free(out);
        }
        if (fma_first)
            CHECK(same_bits(fma_first, first, n), "%s %s: differs from the level below",
                  variants[v].level, kind_name[k]);
        free(fma_first);
        fma_first = has_fma(variants[v].level) ? first : NULL;
        if (!fma_first) free(first);
    }
    free(fma_first);
    free(old);
}

static void try_one(const pk_conv *c) {
    const int64_t counts[] = {y_count(c), x_count(c), w_count(c), c->out_channels};
    float *x = random_floats(counts[1]), *w = random_floats(counts[2]),
          *dy = random_floats(counts[0]);
    const operands o = {c, x, w, dy, NULL, (int32_t)random_below(2)};
    static const visitor visitors[] = {add_y, add_dx, add_dw};
    for (int k = FORWARD; k <= BIAS; k++) {
        const size_t n = (size_t)(counts[k] > 0 ? counts[k] : 1);
        sums s = {x, w, dy, calloc(n, sizeof(double)), calloc(n, sizeof(double))};
        const int64_t positions = c->out_h * c->out_w;
        if (k < BIAS)
            visit_all(c, visitors[k], &s);
        else
            for (int64_t i = 0; i < counts[0]; i++)
                add_term(&s, i / positions % c->out_channels, dy[i]);
        const int before = failures;
        try_kind((kind)k, &o, &s, counts[k]);
        if (failures > before)
            printf("  n %ld c %ld %ldx%ld -> %ld %ldx%ld kernel %ldx%ld stride %ld,%ld pad %ld,%ld "
                   "dilation %ld,%ld groups %ld\n",
                   (long)c->n, (long)c->channels, (long)c->height, (long)c->width,
                   (long)c->out_channels, (long)c->out_h, (long)c->out_w, (long)c->kernel_h,
                   (long)c->kernel_w, (long)c->stride_h, (long)c->stride_w, (long)c->pad_top,
                   (long)c->pad_left, (long)c->dilation_h, (long)c->dilation_w, (long)c->groups);
        free(s.sum);
        free(s.size);
    }
    free(dy);
    free(w);
    free(x);
}

static pk_conv conv_of(int64_t n, int64_t channels, int64_t size, int64_t out, int64_t kernel,
                       int64_t pad) {
    const int64_t s = size + 2 * pad - kernel + 1;
    return (pk_conv){n, channels, size, size, out, s, s, kernel, kernel, 1, 1, pad, pad, 1, 1, 1};
}

static int random_conv(pk_conv *c) {
    const int64_t groups = random_below(3) ? 1 : 1 + random_below(3);
    *c = (pk_conv){.n = random_below(5),
                   .channels = groups * (1 + random_below(9)),
                   .height = 1 + random_below(14),
                   .width = 1 + random_below(40),
                   .out_channels = groups * (1 + random_below(20)),
                   .kernel_h = 1 + random_below(5),
                   .kernel_w = 1 + random_below(5),
                   .stride_h = 1 + random_below(3),
                   .stride_w = 1 + random_below(3),
                   .pad_top = random_below(4),
                   .pad_left = random_below(4),
                   .dilation_h = 1 + random_below(2),
                   .dilation_w = 1 + random_below(2),
                   .groups = groups};
    const int64_t h =
        c->height + c->pad_top + random_below(3) - c->dilation_h * (c->kernel_h - 1) - 1;
    const int64_t w =
        c->width + c->pad_left + random_below(3) - c->dilation_w * (c->kernel_w - 1) - 1;
    c->out_h = h / c->stride_h + 1;
    c->out_w = w / c->stride_w + 1;
    return h >= 0 && w >= 0;
}

/* Bias, activation, and a sample alone giving the bits that it has in a batch. */
static void try_batch(const pk_conv *c, const variant *v) {
    const int64_t y_size = y_count(c) / c->n, x_size = x_count(c) / c->n;
    float *x = random_floats(x_count(c)), *w = random_floats(w_count(c)),
          *bias = random_floats(c->out_channels);
    float *all = random_floats(y_count(c)), *one = random_floats(y_size),
          *plain = random_floats(y_count(c));
    v->forward(&test_calls[2], c, x, w, bias, PK_ACT_TANH, 0, all);
    v->forward(&test_calls[2], c, x, w, NULL, PK_ACT_NONE, 0, plain);
    for (int64_t i = 0; i < y_count(c); i++) {
        const double expected =
            tanh((double)plain[i] + bias[i / (c->out_h * c->out_w) % c->out_channels]);
        CHECK(fabs(all[i] - expected) < 1e-6, "%s: tanh at %ld is %g, not %g", v->level, (long)i,
              all[i], expected);
    }
    pk_conv single = *c;
    single.n = 1;
    for (int64_t s = 0; s < c->n; s++) {
        v->forward(&test_calls[1], &single, x + s * x_size, w, bias, PK_ACT_TANH, 0, one);
        CHECK(same_bits(all + s * y_size, one, y_size), "%s: sample %ld differs alone", v->level,
              (long)s);
    }
    float *dx = random_floats(x_count(c)), *dx_one = random_floats(x_size);
    v->input(&test_calls[2], c, all, w, 0, dx);
    for (int64_t s = 0; s < c->n; s++) {
        v->input(&test_calls[1], &single, all + s * y_size, w, 0, dx_one);
        CHECK(same_bits(dx + s * x_size, dx_one, x_size), "%s: dx of sample %ld differs alone",
              v->level, (long)s);
    }
    free(dx_one);
    free(dx);
    free(plain);
    free(one);
    free(all);
    free(bias);
    free(w);
    free(x);
}

int main(void) {
    make_calls();
    pk_conv c;
    for (int i = 0; i < 120; i++)
        if (random_conv(&c)) try_one(&c);
    const pk_conv shapes[] = {conv_of(5, 1, 28, 20, 5, 0), conv_of(5, 20, 12, 50, 5, 0),
                              conv_of(3, 40, 9, 33, 3, 1), conv_of(2, 300, 6, 40, 1, 0),
                              conv_of(2, 3, 24, 18, 3, 1), conv_of(9, 33, 4, 17, 3, 1),
                              conv_of(2, 40, 14, 130, 1, 0)};
    for (int i = 0; i < (int)(sizeof shapes / sizeof shapes[0]); i++) {
        try_one(&shapes[i]);
        for (int v = 0; v < VARIANTS; v++)
            if (pk_level_supported(v)) try_batch(&shapes[i], &variants[v]);
    }
    return end_of_test("convolutions");
}
