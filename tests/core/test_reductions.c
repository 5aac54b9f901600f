/* Reductions and transposes against plain loops; same bits for threads and levels. */
#include "check.h"
#include "packing.h"
#include "reductions.h"

#undef pk_sum_columns
#undef pk_sum_flat
#undef pk_transpose
typedef struct {
    const char *level;
    void (*sum_columns)(const pk_call *, const float *, int64_t, int64_t, int64_t, int32_t,
                        float *);
    double (*sum_flat)(const pk_call *, const float *, int64_t);
    void (*transpose)(const pk_call *, const float *, int64_t, int64_t, int64_t, float *, int64_t);
} variant;
#define F(level)                                                                                  \
    void pk_sum_columns_##level(const pk_call *, const float *, int64_t, int64_t, int64_t,        \
                                int32_t, float *);                                                \
    double pk_sum_flat_##level(const pk_call *, const float *, int64_t);                          \
    void pk_transpose_##level(const pk_call *, const float *, int64_t, int64_t, int64_t, float *, \
                              int64_t);
PK_EACH_LEVEL(F)
#undef F
#define F(level)             \
    {#level,                 \
     pk_sum_columns_##level, \
     pk_sum_flat_##level,    \
     pk_transpose_##level},
static const variant variants[] = {PK_EACH_LEVEL(F)};
#undef F
#define VARIANTS (int)(sizeof variants / sizeof variants[0])

/* What every level and every pool must repeat, bit for bit. */
static float *reference;
static void same_as_first(float *out, int64_t n, const variant *v, const char *what) {
    if (!reference) {
        reference = copy_floats(out, n);
        return;
    }
    CHECK(same_bits(reference, out, n), "%s %s: other bits", v->level, what);
}
static void forget(void) {
    free(reference);
    reference = NULL;
}

#define EACH_WAY(v, i)                 \
    for (int v = 0; v < VARIANTS; v++) \
        for (int i = 0; i < CALLS && pk_level_supported(v); i++)

static void try_matrix(int64_t rows, int64_t columns) {
    const int64_t stride = columns + random_below(4);
    const int32_t accumulate = (int32_t)random_below(2);
    float *x = random_floats(rows * stride), *old_c = random_floats(columns);
    EACH_WAY(v, i) {
        float *out = copy_floats(old_c, columns);
        variants[v].sum_columns(&test_calls[i], x, stride, rows, columns, accumulate, out);
        for (int64_t j = 0; j < columns && !reference; j++) {
            double sum = accumulate ? old_c[j] : 0;
            for (int64_t r = 0; r < rows; r++) sum += x[r * stride + j];
            CHECK(fabs(out[j] - sum) < 1e-6 * (double)(rows + 10), "column sum %g, not %g", out[j],
                  sum);
        }
        same_as_first(out, columns, &variants[v], "sum_columns");
        free(out);
    }
    forget();
    EACH_WAY(v, i) {
        const int64_t out_stride = rows + 1;
        float *out = calloc((size_t)(columns * out_stride + 1), sizeof *out);
        variants[v].transpose(&test_calls[i], x, stride, rows, columns, out, out_stride);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < columns; j++)
                CHECK(out[j * out_stride + r] == x[r * stride + j], "%s transpose at %ld,%ld",
                      variants[v].level, (long)r, (long)j);
        for (int64_t j = 0; j < columns; j++)
            CHECK(out[j * out_stride + rows] == 0, "transpose wrote beside its rows");
        free(out);
    }
    free(old_c);
    free(x);
}

static void try_flat(int64_t n) {
    float *x = random_floats(n);
    double sum = 0, first = 0;
    int have = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i];
    EACH_WAY(v, i) {
        const double got = variants[v].sum_flat(&test_calls[i], x, n);
        CHECK(fabs(got - sum) < 1e-9, "%s flat sum of %ld", variants[v].level, (long)n);
        CHECK(!have || memcmp(&got, &first, sizeof got) == 0, "%s flat sum of %ld: other bits",
              variants[v].level, (long)n);
        first = got;
        have = 1;
    }
    free(x);
}

int main(void) {
    make_calls();
    static const int64_t sizes[] = {0, 1, 3, 4, 15, 16, 17, 63, 64, 65, 255, 257, 600};
    const int count = (int)(sizeof sizes / sizeof sizes[0]);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++) try_matrix(sizes[i], sizes[j]);
    for (int i = 0; i < count; i++) try_flat(sizes[i]);
    try_flat(16384);
    try_flat(100001);
    return end_of_test("reductions");
}
