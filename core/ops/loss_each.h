/* loss_each.h: what the element-wise losses share.
 *
 * All inputs and the output have as many elements; a kernel is one function from sixteen lanes of the inputs to sixteen
 * lanes of the output, so an element's value depends on its own place alone and the cut into pieces is free. */
#ifndef PK_LOSS_EACH_H
#define PK_LOSS_EACH_H
#include "elementwise.h"

typedef struct loss_each {
    float *out;
    const float *in[4];
    float p[4];          /* parameters of the loss */
    int add;
} loss_each;

#define LOSS_GRAIN 4096

/* Lane values f(k, i, c) for elements i .. i + c - 1, stored or added. */
#define LOSS_TASK(name, f)                                                                         \
    static void name(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {   \
        (void)thread, (void)scratch;                                                               \
        const loss_each k = *(const loss_each *)context;                                           \
        for (int64_t i = begin; i < end; i += 16) {                                                \
            const int64_t c = pk_min_i64(end - i, 16);                                             \
            pk_put(k.out + i, f(&k, i, c), c, k.add);                                              \
        }                                                                                          \
    }

/* The i-th input's lanes. */
#define LOSS_IN(k, input, i, c) pk_load_n((k)->in[input] + (i), c)

/* Checks that the first `inputs` inputs have as many elements as output 0, then runs the task. */
static inline pk_status loss_run(const pk_call *call, int32_t inputs, pk_task task, loss_each k) {
    const int64_t n = pk_count(&call->out[0]);
    for (int32_t j = 0; j < inputs; j++) {
        const int64_t has = pk_count(&call->in[j]);
        if (has != n)
            return pk_fail(call, PK_BAD_SHAPE, -1, "input %d has %lld elements, the result has %lld", (int)j,
                           (long long)has, (long long)n);
        k.in[j] = pk_f32(&call->in[j]);
    }
    k.out = pk_f32(&call->out[0]);
    k.add = pk_adds(call, 0);
    pk_parallel(call, n, LOSS_GRAIN, task, &k);
    return PK_OK;
}
#endif
