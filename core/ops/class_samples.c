/* class_samples: each row's class and others drawn at random. */
#include <math.h>

#include "packed.h"
#include "random_rows.h"
#include "rows.h"

/* In the order of SAMPLERS in paddlecli/ops/class_samples.py. */
enum { UNIFORM, LOG_UNIFORM, SAMPLERS };

/* label [n]; given [count] (stride 0) or [n, count], or NULL; ids, expected, hit [n, 1 + count] */
typedef struct samples {
    const int64_t *label, *given;
    int64_t *ids, stride, classes, count, sampler;
    float *expected, *hit;
    pk_random random;
    int add[3];
} samples;

/* The class that 32 random bits draw. */
static int64_t drawn(const samples *s, uint32_t bits) {
    if (s->sampler == UNIFORM) return (int64_t)(((uint64_t)bits * (uint64_t)s->classes) >> 32);
    const double u = (double)(bits >> 8) * 0x1p-24;
    return pk_min_i64((int64_t)exp(u * log((double)s->classes)) - 1, s->classes - 2);
}
static float expected_of(const samples *s, int64_t id) {
    double share = 1.0 / (double)s->classes;
    if (s->sampler == LOG_UNIFORM)
        share = log(((double)id + 2.0) / ((double)id + 1.0)) / log((double)s->classes);
    return (float)((double)s->count * share);
}

static void samples_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    const samples *s = context;
    (void)thread, (void)scratch;
    for (int64_t r = begin; r < end; r++)
        for (int64_t j = 0; j <= s->count; j++) {
            const int64_t at = r * (1 + s->count) + j;
            int64_t id = s->label[r];
            if (j > 0 && s->given) id = s->given[r * s->stride + j - 1];
            else if (j > 0)
                id = drawn(s, pk_random_u32(&s->random, ((uint64_t)s->random.first + (uint64_t)r) *
                                                                (uint64_t)s->count +
                                                            (uint64_t)(j - 1)));
            const float hit = j > 0 && id == s->label[r] ? 1.0f : 0.0f;
            s->ids[at] = id;
            s->expected[at] = (s->add[1] ? s->expected[at] : 0.0f) + expected_of(s, id);
            s->hit[at] = (s->add[2] ? s->hit[at] : 0.0f) + hit;
        }
}

static pk_status class_samples_forward(const pk_call *call) {
    const pk_view *label = &call->in[0], *given = &call->in[1], *out = call->out;
    samples s = {.label = pk_i64(label), .given = pk_i64(given), .ids = pk_i64(&out[0]),
                 .expected = pk_f32(&out[1]), .hit = pk_f32(&out[2]), .random = call->random,
                 .classes = call->attr[0].i, .count = call->attr[1].i, .sampler = call->attr[2].i};
    const int64_t n = pk_count(label);
    for (int32_t i = 0; i < 3; i++) s.add[i] = pk_adds(call, i);
    if (s.classes < 2 || s.classes > INT32_MAX || s.count < 1 || s.sampler < 0 ||
        s.sampler >= SAMPLERS || s.add[0])
        return pk_fail(call, PK_BAD_CALL, -1, "%lld of %lld classes, sampler %lld",
                       (long long)s.count, (long long)s.classes, (long long)s.sampler);
    s.stride = s.given && pk_count(given) != s.count ? s.count : 0;
    pk_status bad = PK_OK;
    for (int32_t i = 0; !bad && i < 3; i++)
        bad = pk_check_size(call, "an output", &out[i], n * (1 + s.count));
    if (!bad && s.stride) bad = pk_check_size(call, "given", given, n * s.count);
    if (!bad) bad = pk_check_index(call, s.label, n, s.classes, INT64_MIN, "label");
    if (!bad && s.given)
        bad = pk_check_index(call, s.given, pk_count(given), s.classes, INT64_MIN, "given class");
    if (bad) return bad;
    pk_parallel(call, n, pk_max_i64(1, 1024 / s.count), samples_task, &s);
    return PK_OK;
}

PK_OP(class_samples,
      {"class_samples.forward(label: i64, given?: i64; classes: int, count: int, sampler: int)"
       " -> (ids: i64, expected: f32, hit: f32)",
       class_samples_forward});
