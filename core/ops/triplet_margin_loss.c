/* triplet_margin_loss: max(0, d(a, p) - d(a, n) + margin), d(a, b) = sqrt(sum((a - b + epsilon)^2)) over a row. */
#include "elementwise.h"

typedef struct task_data {
    float *out;                     /* loss [rows], or a gradient [rows, size] */
    const float *a, *p, *n, *dloss; /* anchor, positive, negative [rows, size], [rows] */
    int64_t size;
    float margin, epsilon;
    float of_p, of_n;               /* what the unit vectors of a - p and a - n count in the gradient */
    int add;
} task_data;

static float distance(const float *a, const float *b, int64_t size, float epsilon) {
    const pk_vec e = pk_set1(epsilon);
    pk_vec s = pk_zero();
    PK_FOR16(i, c, size) {
        pk_vec d = pk_add(pk_sub(pk_load_n(a + i, c), pk_load_n(b + i, c)), e);
        if (c < 16) d = pk_select(pk_first_lanes(c), d, pk_zero());
        s = pk_fma(d, d, s);
    }
    return __builtin_sqrtf(pk_sum16(s));
}

static void forward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const task_data k = *(const task_data *)context;
    for (int64_t r = begin; r < end; r++) {
        const int64_t at = r * k.size;
        const float near = distance(k.a + at, k.p + at, k.size, k.epsilon);
        const float over = near - distance(k.a + at, k.n + at, k.size, k.epsilon) + k.margin;
        const float loss = over < 0.0f ? 0.0f : over;
        k.out[r] = k.add ? k.out[r] + loss : loss;
    }
}

/* Distances of 0 have no direction: they pull nowhere. */
static void backward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const task_data k = *(const task_data *)context;
    const pk_vec e = pk_set1(k.epsilon);
    for (int64_t r = begin; r < end; r++) {
        const int64_t at = r * k.size;
        const float near = distance(k.a + at, k.p + at, k.size, k.epsilon);
        const float far = distance(k.a + at, k.n + at, k.size, k.epsilon);
        const float d = near - far + k.margin > 0.0f ? k.dloss[r] : 0.0f;
        const pk_vec of_p = pk_set1(near > 0.0f ? k.of_p * d / near : 0.0f);
        const pk_vec of_n = pk_set1(far > 0.0f ? k.of_n * d / far : 0.0f);
        PK_FOR16(i, c, k.size) {
            const pk_vec a = pk_load_n(k.a + at + i, c);
            const pk_vec p = pk_add(pk_sub(a, pk_load_n(k.p + at + i, c)), e);
            const pk_vec n = pk_add(pk_sub(a, pk_load_n(k.n + at + i, c)), e);
            pk_put(k.out + at + i, pk_fma(p, of_p, pk_mul(n, of_n)), c, k.add);
        }
    }
}

static pk_status run(const pk_call *call, pk_task task, const pk_view *dloss, float of_p, float of_n) {
    const int64_t n = pk_count(&call->in[0]), rows = call->in[0].dim[0];
    if (pk_count(&call->in[1]) != n || pk_count(&call->in[2]) != n)
        return pk_fail(call, PK_BAD_SHAPE, -1, "anchor, positive and negative have %lld, %lld, %lld elements",
                       (long long)n, (long long)pk_count(&call->in[1]), (long long)pk_count(&call->in[2]));
    task_data k = {pk_f32(&call->out[0]), pk_f32(&call->in[0]), pk_f32(&call->in[1]), pk_f32(&call->in[2]),
                   dloss == NULL ? NULL : pk_f32(dloss), pk_inner(&call->in[0], 1), (float)call->attr[0].f,
                   (float)call->attr[1].f, of_p, of_n, pk_adds(call, 0)};
    pk_parallel(call, rows, pk_max_i64(1, 4096 / pk_max_i64(1, k.size)), task, &k);
    return PK_OK;
}

/* anchor, positive, negative [rows, size], loss [rows, 1]; attributes margin, epsilon */
static pk_status forward(const pk_call *call) { return run(call, forward_task, NULL, 0, 0); }
static pk_status backward_anchor(const pk_call *call) { return run(call, backward_task, &call->in[3], 1, -1); }
static pk_status backward_positive(const pk_call *call) { return run(call, backward_task, &call->in[3], -1, 0); }
static pk_status backward_negative(const pk_call *call) { return run(call, backward_task, &call->in[3], 0, 1); }

#define TRIPLET "anchor: f32, positive: f32, negative: f32"
PK_OP(triplet_margin_loss,
      {"triplet_margin_loss.forward(" TRIPLET "; margin: float, epsilon: float) -> (loss: f32)", forward},
      {"triplet_margin_loss.backward_anchor(" TRIPLET ", dloss: f32; margin: float, epsilon: float) -> (danchor: f32)",
       backward_anchor},
      {"triplet_margin_loss.backward_positive(" TRIPLET ", dloss: f32; margin: float, epsilon: float) -> "
       "(dpositive: f32)", backward_positive},
      {"triplet_margin_loss.backward_negative(" TRIPLET ", dloss: f32; margin: float, epsilon: float) -> "
       "(dnegative: f32)", backward_negative});
