/* pk_simd.h against libm in double: error in units of the last place, special values, lanes,
 * levels. */
#include "simd_level.h"

#include "check.h"

#define F(level)                                                       \
    void simd_apply_##level(int32_t, const float *, float *, int64_t); \
    void simd_reduce_##level(const float *, int64_t, float *);         \
    int64_t simd_roots_##level(uint32_t, uint32_t);
PK_EACH_LEVEL(F)
#undef F
typedef struct {
    const char *level;
    simd_apply_fn apply;
    simd_reduce_fn reduce;
    simd_roots_fn roots;
} variant;
#define F(level) {#level, simd_apply_##level, simd_reduce_##level, simd_roots_##level},
static const variant variants[] = {PK_EACH_LEVEL(F)};
#undef F
#define VARIANTS (int)(sizeof variants / sizeof variants[0])
#define F(name) #name,
static const char *const names[] = {EACH_FUNCTION(F)};
#undef F
#define FUNCTIONS (int)(sizeof names / sizeof names[0])

static double softplus(double x) { return x > 700 ? x : log1p(exp(x)); }
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double relu(double x) { return x < 0 ? 0 : x; }
static double (*const exact[])(double) = {exp, log, log1p, softplus, tanh,  sigmoid, erf,
                                          sin, cos, sqrt,  rint,     floor, relu};
/* Allowed error in ulp of the result, and the floor below which only the absolute error counts. */
static const double ulps[] = {2, 2, 3, 3, 3, 3, 3, 2, 2, 0.5, 0, 0, 0};
static const double floors[] = {0, 0, 0, 1e-37, 0, 1e-37, 0, 0.1, 0.1, 0, 0, 0, 0};

/* Distance of two floats next to `x`. */
static double ulp_of(double x) {
    const float f = (float)fabs(x);
    if (f < 1.17549435e-38f) return 1.4012985e-45;
    return (double)nextafterf(f, INFINITY) - (double)f;
}

static void check_values(int f, const variant *v, const float *in, int64_t n, double tolerance) {
    float *out = copy_floats(in, n);
    double worst = 0, worst_at = 0;
    v->apply(f, in, out, n);
    for (int64_t i = 0; i < n; i++) {
        const double expected = exact[f](in[i]);
        if (isnan(expected) || isinf(expected) || fabs(expected) > 3.4028235e38) {
            const int same =
                isnan(expected) ? isnan(out[i]) : (double)out[i] == (double)(float)expected;
            CHECK(same, "%s %s(%g) = %g, not %g", v->level, names[f], in[i], out[i], expected);
            continue;
        }
        const double error = fabs(out[i] - expected) / ulp_of(fmax(fabs(expected), floors[f]));
        if (!(error <= worst)) {
            worst = error;
            worst_at = in[i];
        }
    }
    CHECK(worst <= tolerance, "%s %s: %.2f ulp at %.9g", v->level, names[f], worst, worst_at);
    if (getenv("PK_VERBOSE"))
        printf("%s %s: %.2f ulp at %.9g\n", v->level, names[f], worst, worst_at);
    free(out);
}

static float *inputs(int f, int64_t n) {
    float *in = random_floats(n);
    const int wave = strcmp(names[f], "sin") == 0 || strcmp(names[f], "cos") == 0;
    for (int64_t i = 0; i < n; i++) {
        const int32_t exponent =
            wave ? (int32_t)random_below(26) - 13 : (int32_t)random_below(40) - 28;
        in[i] = ldexpf(in[i], exponent);
        if (strcmp(names[f], "log") == 0)
            in[i] = fabsf(ldexpf(in[i], (int32_t)random_below(200) - 100));
        if (strcmp(names[f], "log1p") == 0 && in[i] < -1) in[i] = -1 / in[i];
        if (strcmp(names[f], "sqrt") == 0) in[i] = fabsf(in[i]);
    }
    return in;
}

static void check_function(int f) {
    const float special[] = {0.0f,       -0.0f,       INFINITY,   -INFINITY,   NAN,    1e-45f,
                             -1e-45f,    1e-38f,      3.4e38f,    -3.4e38f,    88.72f, 88.73f,
                             -103.9f,    -104.0f,     1.0f,       2.5f,        -2.5f,  0.5f,
                             4194304.5f, -4194305.5f, 8388609.0f, -16777216.0f};
    const int wave = strcmp(names[f], "sin") == 0 || strcmp(names[f], "cos") == 0;
    const int64_t n = 200001;
    float *in = inputs(f, n);
    for (int v = 0; v < VARIANTS; v++) {
        if (!pk_level_supported(v)) continue;
        const double more = has_fma(variants[v].level) || ulps[f] < 1 ? 0 : 1;
        check_values(f, &variants[v], in, n, ulps[f] + more);
        if (!wave) check_values(f, &variants[v], special, 22, ulps[f] + more);
    }
    float *first = copy_floats(in, n), *other = copy_floats(in, n);
    int have = 0;
    for (int v = 0; v < VARIANTS; v++) {
        if (!pk_level_supported(v) || !has_fma(variants[v].level)) continue;
        variants[v].apply(f, in, have ? other : first, n);
        CHECK(!have || same_bits(first, other, n), "%s %s: other bits than the level below",
              variants[v].level, names[f]);
        have = 1;
    }
    free(other);
    free(first);
    free(in);
}

/* Lanes: the sum of any n floats is the one written out here, on every level; nothing behind them
 * is read or written. */
static void check_reductions(void) {
    for (int64_t n = 0; n < 70; n++) {
        float *in = random_floats(n), lanes[16] = {0}, expected = 0, maximum = -INFINITY;
        for (int64_t i = 0; i < n; i++) {
            lanes[i % 16] += in[i];
            maximum = in[i] > maximum ? in[i] : maximum;
        }
        for (int width = 8; width > 0; width /= 2)
            for (int j = 0; j < width; j++) lanes[j] += lanes[j + width];
        expected = lanes[0];
        float fma_out[5];
        int have = 0;
        for (int v = 0; v < VARIANTS; v++) {
            float out[5];
            if (!pk_level_supported(v)) continue;
            variants[v].reduce(in, n, out);
            CHECK(out[0] == expected, "%s sum of %ld: %.9g, not %.9g", variants[v].level, (long)n,
                  out[0], expected);
            CHECK(out[1] == maximum, "%s maximum of %ld", variants[v].level, (long)n);
            if (!has_fma(variants[v].level)) continue;
            CHECK(!have || same_bits(out, fma_out, 5), "%s reductions of %ld: other bits",
                  variants[v].level, (long)n);
            memcpy(fma_out, out, sizeof out);
            have = 1;
        }
        free(in);
    }
}

/* Every mantissa at odd and even exponents, at both ends of the range that has its own way, and what
 * lies outside of it. */
static void check_roots(void) {
    const uint32_t ranges[][2] = {
        {0x00000000, 0x00010000}, {0x0f800000, 0x10800000}, {0x3f800000, 0x40800000},
        {0x7f000000, 0x7f810000}, {0x80000000, 0x80010000}, {0xff7f0000, 0xff810000}};
    for (int v = 0; v < VARIANTS; v++)
        for (size_t i = 0; i < sizeof ranges / sizeof ranges[0] && pk_level_supported(v); i++) {
            const int64_t wrong = variants[v].roots(ranges[i][0], ranges[i][1]);
            CHECK(wrong == 0, "%s: %ld roots of floats from %#x on are not the nearest",
                  variants[v].level, (long)wrong, (unsigned)ranges[i][0]);
        }
}

int main(void) {
    check_roots();
    for (int f = 0; f < FUNCTIONS; f++) check_function(f);
    check_reductions();
    return end_of_test("simd");
}
