/* cos_sim: cos = x.y/(|x||y|) for each row, each squared norm held at 1e-8 or above.
 *
 * Gradient: dx = d*(y/(|x||y|) - cos*x/|x|^2); where |x| is held its own change counts for nothing and the second term
 * falls away. */
#include "elementwise.h"

#define LEAST 1e-8f
#define CHUNK 64   /* rows of a partial sum of dy */

typedef struct task_data {
    float *out, *inverse_out;      /* cos [rows, 1], inverse [rows, 2]; or the gradient */
    const float *x, *y;            /* [rows, size]; the other operand, y_stride 0 when it has one row */
    const float *cos, *inverse, *dcos;
    int64_t rows, size, x_stride, y_stride;
    int mine;                      /* column of inverse that belongs to x: 0, or 1 when x and y changed places */
    int add, add_inverse;
} task_data;

static float inverse_of(const float *v, int64_t size) {
    const float squared = pk_row_dot(v, v, size);
    return 1.0f / __builtin_sqrtf(squared < LEAST ? LEAST : squared);
}
static int is_held(float inverse) { return inverse >= 1.0f / __builtin_sqrtf(LEAST); }
static void put(float *out, float v, int add) { *out = add ? *out + v : v; }

static void forward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const task_data k = *(const task_data *)context;
    for (int64_t r = begin; r < end; r++) {
        const float *x = k.x + r * k.x_stride, *y = k.y + r * k.y_stride;
        const float a = inverse_of(x, k.size), b = inverse_of(y, k.size);
        put(k.out + r, pk_row_dot(x, y, k.size) * a * b, k.add);
        put(k.inverse_out + 2 * r, a, k.add_inverse);
        put(k.inverse_out + 2 * r + 1, b, k.add_inverse);
    }
}

/* Factors of y and of x in row r of the gradient. */
static void factors(const task_data *k, int64_t r, float *of_y, float *of_x) {
    const float mine = k->inverse[2 * r + k->mine], other = k->inverse[2 * r + 1 - k->mine];
    *of_y = k->dcos[r] * mine * other;
    *of_x = is_held(mine) ? 0.0f : k->dcos[r] * k->cos[r] * mine * mine;
}

static void rows_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const task_data k = *(const task_data *)context;
    for (int64_t r = begin; r < end; r++) {
        float of_y, of_x;
        factors(&k, r, &of_y, &of_x);
        const float *x = k.x + r * k.x_stride, *y = k.y + r * k.y_stride;
        PK_FOR16(i, c, k.size) {
            const pk_vec v = pk_mul(pk_load_n(y + i, c), pk_set1(of_y));
            pk_put(k.out + r * k.size + i, pk_fnma(pk_load_n(x + i, c), pk_set1(of_x), v), c, k.add);
        }
    }
}

/* The gradient of an operand of one row: sixteen columns of the sum over all rows. */
static void sum_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const task_data k = *(const task_data *)context;
    for (int64_t block = begin; block < end; block++) {
        const int64_t i = block * 16, c = pk_min_i64(16, k.size - i);
        pk_vec total = pk_zero();
        for (int64_t first = 0; first < k.rows; first += CHUNK) {
            pk_vec part = pk_zero();
            for (int64_t r = first; r < pk_min_i64(first + CHUNK, k.rows); r++) {
                float of_y, of_x;
                factors(&k, r, &of_y, &of_x);
                const pk_vec v = pk_mul(pk_load_n(k.y + r * k.y_stride + i, c), pk_set1(of_y));
                part = pk_add(part, pk_fnma(pk_load_n(k.x + i, c), pk_set1(of_x), v));
            }
            total = pk_add(total, part);
        }
        pk_put(k.out + i, total, c, k.add);
    }
}

static pk_status shape_of(const pk_call *call, task_data *k) {
    const pk_view *x = &call->in[0], *y = &call->in[1];
    if (x->ndim != 2 || y->ndim != 2 || x->dim[1] != y->dim[1] || (y->dim[0] != x->dim[0] && y->dim[0] != 1))
        return pk_fail(call, PK_BAD_SHAPE, -1, "x is [%lld, %lld], y is [%lld, %lld]", (long long)x->dim[0],
                       (long long)x->dim[1], (long long)y->dim[0], (long long)y->dim[1]);
    *k = (task_data){.out = pk_f32(&call->out[0]), .x = pk_f32(x), .y = pk_f32(y), .rows = x->dim[0], .size = x->dim[1],
                     .x_stride = x->dim[1], .y_stride = y->dim[0] == x->dim[0] ? y->dim[1] : 0, .add = pk_adds(call, 0)};
    return PK_OK;
}

/* x [rows, size], y [rows or 1, size] -> cos [rows, 1], inverse [rows, 2] */
static pk_status forward(const pk_call *call) {
    task_data k;
    const pk_status status = shape_of(call, &k);
    if (status != PK_OK) return status;
    k.inverse_out = pk_f32(&call->out[1]), k.add_inverse = pk_adds(call, 1);
    pk_parallel(call, k.rows, pk_max_i64(1, 4096 / pk_max_i64(1, k.size)), forward_task, &k);
    return PK_OK;
}

/* x, y, cos, inverse, dcos [rows, 1] -> the gradient of x, or of y */
static pk_status backward(const pk_call *call, int of_y) {
    task_data k;
    const pk_status status = shape_of(call, &k);
    if (status != PK_OK) return status;
    k.cos = pk_f32(&call->in[2]), k.inverse = pk_f32(&call->in[3]), k.dcos = pk_f32(&call->in[4]);
    const int one_row = of_y && call->in[1].dim[0] == 1;
    if (of_y) {
        const float *x = k.x;
        k.x = k.y, k.y = x, k.mine = 1;
        k.x_stride = k.y_stride, k.y_stride = k.size;
    }
    if (one_row)
        pk_parallel(call, pk_ceil_div(k.size, 16), 1, sum_task, &k);
    else
        pk_parallel(call, k.rows, pk_max_i64(1, 4096 / pk_max_i64(1, k.size)), rows_task, &k);
    return PK_OK;
}
static pk_status backward_x(const pk_call *call) { return backward(call, 0); }
static pk_status backward_y(const pk_call *call) { return backward(call, 1); }

PK_OP(cos_sim,
      {"cos_sim.forward(x: f32, y: f32) -> (cos: f32, inverse: f32)", forward},
      {"cos_sim.backward_x(x: f32, y: f32, cos: f32, inverse: f32, dcos: f32) -> (dx: f32)", backward_x},
      {"cos_sim.backward_y(x: f32, y: f32, cos: f32, inverse: f32, dcos: f32) -> (dy: f32)", backward_y});
