/* class_samples: each row's class and others drawn at random. */
#include "packed.cuh"
#include "random.cuh"

namespace {
/* In the order of SAMPLERS in paddlecli/ops/class_samples.py. */
enum { UNIFORM, LOG_UNIFORM, SAMPLERS };

/* label [n]; given [count] (stride 0) or [n, count], or NULL; ids, expected, hit [n, 1 + count] */
struct sample_each {
    const int64_t *label, *given;
    int64_t *ids, stride, classes, count, sampler;
    float *expected, *hit;
    pk_random random;
    int add[3];
    /* The class that 32 random bits draw. */
    PK_DEVICE int64_t drawn(uint32_t bits) const {
        if (sampler == UNIFORM) return (int64_t)(((uint64_t)bits * (uint64_t)classes) >> 32);
        const double u = (double)(bits >> 8) * 0x1p-24;
        const int64_t id = (int64_t)exp(u * log((double)classes)) - 1;
        return id < classes - 2 ? id : classes - 2;
    }
    PK_DEVICE void operator()(int64_t at) const {
        const int64_t r = at / (1 + count), j = at % (1 + count);
        int64_t id = label[r];
        if (j > 0 && given) id = given[r * stride + j - 1];
        else if (j > 0)
            id = drawn(pk_random_u32(&random, ((uint64_t)random.first + (uint64_t)r) *
                                                      (uint64_t)count +
                                                  (uint64_t)(j - 1)));
        double share = 1.0 / (double)classes;
        if (sampler == LOG_UNIFORM)
            share = log(((double)id + 2.0) / ((double)id + 1.0)) / log((double)classes);
        ids[at] = id;
        pk_put(expected + at, (float)((double)count * share), add[1]);
        pk_put(hit + at, j > 0 && id == label[r] ? 1.0f : 0.0f, add[2]);
    }
};

pk_status class_samples_forward(const pk_call *call) {
    const pk_view *label = &call->in[0], *given = &call->in[1], *out = call->out;
    sample_each s = {};
    s.label = pk_i64(label), s.given = pk_i64(given), s.ids = pk_i64(&out[0]);
    s.expected = pk_f32(&out[1]), s.hit = pk_f32(&out[2]), s.random = call->random;
    s.classes = call->attr[0].i, s.count = call->attr[1].i, s.sampler = call->attr[2].i;
    const int64_t n = pk_count(label);
    for (int32_t i = 0; i < 3; i++) s.add[i] = pk_adds(call, i);
    if (s.classes < 2 || s.classes > INT32_MAX || s.count < 1 || s.sampler < 0 ||
        s.sampler >= SAMPLERS || s.add[0])
        return pk_fail(call, PK_BAD_CALL, -1, "%lld of %lld classes, sampler %lld",
                       (long long)s.count, (long long)s.classes, (long long)s.sampler);
    s.stride = s.given && pk_count(given) != s.count ? s.count : 0;
    for (int32_t i = 0; i < 3; i++)
        PK_TRY(pk_check_size(call, "an output", &out[i], n * (1 + s.count)));
    if (s.stride) PK_TRY(pk_check_size(call, "given", given, n * s.count));
    PK_TRY(pk_check_index(call, s.label, n, s.classes, INT64_MIN, 1,
                          "label is %lld, must be below %lld"));
    if (s.given)
        PK_TRY(pk_check_index(call, s.given, pk_count(given), s.classes, INT64_MIN, 1,
                              "given class is %lld, must be below %lld"));
    return pk_each(call, n * (1 + s.count), s);
}
} /* namespace */

PK_OP(class_samples,
      {"class_samples.forward(label: i64, given?: i64; classes: int, count: int, sampler: int)"
       " -> (ids: i64, expected: f32, hit: f32)",
       class_samples_forward});
