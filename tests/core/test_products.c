/* Products against a sum in double; same bits for threads, levels and batches. */
#include "check.h"
#include "products.h"
#include "windows.h"

#undef pk_multiply
typedef void (*multiply_fn)(const pk_call *, const pk_product *);
#define F(level) void pk_multiply_##level(const pk_call *, const pk_product *);
PK_EACH_LEVEL(F)
#undef F
typedef struct {
    const char *level;
    multiply_fn fn;
} variant;
#define F(level) {#level, pk_multiply_##level},
static const variant variants[] = {PK_EACH_LEVEL(F)};
#undef F
#define VARIANTS (int)(sizeof variants / sizeof variants[0])

static double activated(double x, int32_t activation) {
    switch (activation) {
    case PK_ACT_RELU: return x > 0 ? x : 0;
    case PK_ACT_TANH: return tanh(x);
    case PK_ACT_SIGMOID: return 1 / (1 + exp(-x));
    default: return x;
    }
}

static double at(const float *p, int64_t stride, int transposed, int64_t i, int64_t j) {
    return transposed ? p[j * stride + i] : p[i * stride + j];
}

static void compare(const pk_product *p, const float *old, const char *level) {
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            double sum = p->accumulate ? old[i * p->c_stride + j] : 0, size = fabs(sum);
            for (int64_t q = 0; q < p->k; q++) {
                const double term = at(p->a, p->a_stride, p->a_transposed, i, q) *
                                    at(p->b, p->b_stride, p->b_transposed, q, j);
                sum += term;
                size += fabs(term);
            }
            if (p->bias) sum += p->bias[j];
            const double expected = activated(sum, p->activation), got = p->c[i * p->c_stride + j];
            CHECK(fabs(got - expected) <= 1e-6 * (size + 1),
                  "%s m %ld n %ld k %ld at %ld,%ld: %g, not %g", level, (long)p->m, (long)p->n,
                  (long)p->k, (long)i, (long)j, got, expected);
        }
}

static int64_t random_size(void) {
    static const int64_t sizes[] = {0,  1,  2,  7,  10,  13,  14,  15,  16,  17,  20, 31,
                                    32, 33, 64, 65, 100, 127, 255, 256, 257, 300, 513};
    return sizes[random_below((int64_t)(sizeof sizes / sizeof sizes[0]))];
}

/* One random product with every level and every pool. */
static void try_one(int64_t m, int64_t n, int64_t k) {
    const int ta = (int)random_below(2), tb = (int)random_below(2);
    /* Rows 4 KiB apart take another road. */
    const int64_t sa = random_below(8) ? (ta ? m : k) + random_below(3) : 1024,
                  sb = (tb ? k : n) + random_below(3), sc = n + random_below(3);
    float *a = random_floats((ta ? k : m) * sa), *b = random_floats((tb ? n : k) * sb),
          *bias = random_floats(n);
    float *old = random_floats(m * sc), *fma_c = NULL;
    pk_product p = {.m = m,
                    .n = n,
                    .k = k,
                    .a = a,
                    .a_stride = sa,
                    .b = b,
                    .b_stride = sb,
                    .c_stride = sc,
                    .a_transposed = ta,
                    .b_transposed = tb,
                    .accumulate = (int32_t)random_below(2),
                    .activation = (int32_t)random_below(4),
                    .bias = random_below(2) ? bias : NULL};
    for (int v = 0; v < VARIANTS; v++) {
        float *first = NULL;
        if (!pk_level_supported(v)) continue;
        for (int i = 0; i < CALLS; i++) {
            p.c = copy_floats(old, m * sc);
            variants[v].fn(&test_calls[i], &p);
            if (!first) {
                first = p.c;
                compare(&p, old, variants[v].level);
                continue;
            }
            CHECK(same_bits(first, p.c, m * sc), "%s m %ld n %ld k %ld t %d%d: pool %d differs",
                  variants[v].level, (long)m, (long)n, (long)k, ta, tb, i);
            free(p.c);
        }
        if (fma_c)
            CHECK(same_bits(fma_c, first, m * sc), "%s differs from the level below: %ld %ld %ld",
                  variants[v].level, (long)m, (long)n, (long)k);
        free(fma_c);
        fma_c = has_fma(variants[v].level) ? first : NULL;
        if (!fma_c) free(first);
    }
    free(fma_c);
    free(old);
    free(bias);
    free(b);
    free(a);
}

/* A row of A gives the same bits alone and among others, through whichever storage order. */
static void try_batch(int64_t m, int64_t n, int64_t k, const variant *v) {
    float *a = random_floats(m * k), *b = random_floats(k * n), *bt = random_floats(k * n),
          *at_ = random_floats(m * k);
    float *all = random_floats(m * n), *row = random_floats(n), *other = random_floats(m * n);
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < n; j++) bt[j * k + i] = b[i * n + j];
    for (int64_t i = 0; i < m; i++)
        for (int64_t q = 0; q < k; q++) at_[q * m + i] = a[i * k + q];
    pk_product p = {.m = m,
                    .n = n,
                    .k = k,
                    .a = a,
                    .a_stride = k,
                    .b = b,
                    .b_stride = n,
                    .c = all,
                    .c_stride = n};
    v->fn(&test_calls[2], &p);
    pk_product t = {.m = m,
                    .n = n,
                    .k = k,
                    .a = at_,
                    .a_stride = m,
                    .a_transposed = 1,
                    .b = bt,
                    .b_stride = k,
                    .b_transposed = 1,
                    .c = other,
                    .c_stride = n};
    v->fn(&test_calls[1], &t);
    CHECK(same_bits(all, other, m * n), "%s: storage order changes bits (%ld %ld %ld)", v->level,
          (long)m, (long)n, (long)k);
    for (int64_t i = 0; i < m; i++) {
        pk_product one = p;
        one.m = 1;
        one.a = a + i * k;
        one.c = row;
        v->fn(&test_calls[1], &one);
        CHECK(same_bits(all + i * n, row, n), "%s: row %ld of %ld differs alone (n %ld k %ld)",
              v->level, (long)i, (long)m, (long)n, (long)k);
    }
    free(other);
    free(row);
    free(all);
    free(at_);
    free(bt);
    free(b);
    free(a);
}

/* Windows over sequences give the bits of the matrix that has them side by side, either way round. */
static void try_windows(int64_t width, int64_t size, int64_t first, int64_t n, const variant *v) {
    const int64_t offsets[] = {0, 3, 3, 40, 41, 341}, sequences = 5, m = 341, k = size * width;
    float *x = random_floats(m * width), *b = random_floats(k * n), *dy = random_floats(m * n);
    float *wide = calloc((size_t)(m * k), sizeof(float)), *c[4];
    for (int64_t s = 0; s < sequences; s++)
        for (int64_t t = offsets[s]; t < offsets[s + 1]; t++)
            for (int64_t i = 0; i < k; i++) {
                const int64_t from = t + first + i / width;
                if (from >= offsets[s] && from < offsets[s + 1])
                    wide[t * k + i] = x[from * width + i % width];
            }
    const pk_windows windows = {.offsets = offsets, .sequences = sequences, .first = first};
    for (int i = 0; i < 4; i++) {
        const int turned = i / 2;
        pk_product p = {.m = turned ? k : m, .n = n, .k = turned ? m : k, .a = wide,
                        .a_stride = k, .a_transposed = turned, .b = turned ? dy : b,
                        .b_stride = n, .c_stride = n};
        if (i % 2) p.a = x, p.a_stride = width, p.windows = &windows;
        p.c = c[i] = random_floats(p.m * n);
        v->fn(&test_calls[i % CALLS], &p);
    }
    CHECK(same_bits(c[0], c[1], m * n), "%s: windows of %ld x %ld from %ld differ", v->level,
          (long)size, (long)width, (long)first);
    CHECK(same_bits(c[2], c[3], k * n), "%s: windows of %ld x %ld from %ld differ as columns",
          v->level, (long)size, (long)width, (long)first);
    for (int i = 0; i < 4; i++) free(c[i]);
    free(wide), free(dy), free(b), free(x);
}

int main(void) {
    make_calls();
    for (int i = 0; i < 150; i++) try_one(random_size(), random_size(), random_size());
    try_one(700, 1100, 70);
    try_one(20, 30, 5000);
    for (int64_t n = 1; n < 13; n++) try_one(32 + random_below(3000), n, random_size());
    for (int v = 0; v < VARIANTS; v++) {
        if (!pk_level_supported(v)) continue;
        try_batch(64, 200, 784, &variants[v]);
        try_batch(37, 10, 300, &variants[v]);
        try_batch(20, 1, 13, &variants[v]);
        try_batch(20, 700, 300, &variants[v]);
        try_windows(5, 3, -1, 40, &variants[v]);
        try_windows(128, 4, -2, 33, &variants[v]);
        try_windows(17, 2, 3, 9, &variants[v]);
        try_windows(3, 5, -50, 20, &variants[v]);
    }
    return end_of_test("products");
}
