/* random_normal: normally distributed numbers, a row of them for each row of another tensor.
 *
 * pk_random.h's pairs, sixteen at a time.  The angle 2*pi*v is cut to an eighth of a turn while it is still exact (v has 24
 * digits), so the result keeps float accuracy without double arithmetic. */
#include "elementwise.h"
#include "random_rows.h"

typedef struct task_data {
    float *out;
    pk_random random;
    uint64_t start;          /* element of the stream that out[0] is */
    int64_t count;
    float mean, std;
    int add;
} task_data;

/* Thirty-two normal numbers from thirty-two words of bits; bits[0] is of an even element. */
static void normals32(const uint32_t *bits, float *out) {
    float u[16], v[16], even[16], odd[16];
    for (int i = 0; i < 16; i++) u[i] = pk_uniform(bits[2 * i]), v[i] = pk_uniform(bits[2 * i + 1]);
    const pk_vec one = pk_set1(1.0f), turns = pk_mul(pk_load(v), pk_set1(4.0f)), n = pk_round(turns);
    const pk_vec angle = pk_mul(pk_sub(turns, n), pk_set1(1.57079633f));
    const pk_vec length = pk_sqrt(pk_mul(pk_set1(-2.0f), pk_log(pk_sub(one, pk_load(u)))));
    const pk_vec s = pk_sin(angle), c = pk_cos(angle);
    /* quarter q: (cos, sin) is (c, s), (-s, c), (-c, -s), (s, -c) */
    const pk_veci q = pk_to_int(n);
    const pk_mask swapped = pk_ne(pk_to_float(pk_andi(q, pk_set1i(1))), pk_zero());
    const pk_veci flip_sin = pk_shl(pk_andi(q, pk_set1i(2)), 30);
    const pk_veci flip_cos = pk_shl(pk_andi(pk_addi(q, pk_set1i(1)), pk_set1i(2)), 30);
    const pk_vec cosine = pk_from_bits(pk_xori(pk_bits(pk_select(swapped, s, c)), flip_cos));
    const pk_vec sine = pk_from_bits(pk_xori(pk_bits(pk_select(swapped, c, s)), flip_sin));
    pk_store(even, pk_mul(length, cosine)), pk_store(odd, pk_mul(length, sine));
    for (int i = 0; i < 16; i++) out[2 * i] = even[i], out[2 * i + 1] = odd[i];
}

static void fill_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const task_data k = *(const task_data *)context;
    uint32_t bits[RANDOM_PIECE + 32];
    float values[RANDOM_PIECE + 32];
    for (int64_t piece = begin; piece < end; piece++) {
        const int64_t first = piece * RANDOM_PIECE, n = pk_min_i64(RANDOM_PIECE, k.count - first);
        /* An odd first element is the second of its pair. */
        const uint64_t element = k.start + (uint64_t)first;
        const int64_t skip = (int64_t)(element % 2), drawn = pk_ceil_div(n + skip, 32) * 32;
        random_bits(&k.random, element - (uint64_t)skip, drawn, bits);
        for (int64_t i = 0; i < drawn; i += 32) normals32(bits + i, values + i);
        const pk_vec mean = pk_set1(k.mean), std = pk_set1(k.std);
        PK_FOR16(i, c, n) pk_put(k.out + first + i, pk_fma(pk_load_n(values + skip + i, c), std, mean), c, k.add);
    }
}

/* like [rows, ..] any type, y [rows, shape]; attributes shape, mean, std */
static pk_status forward(const pk_call *call) {
    const pk_view *y = &call->out[0];
    task_data k = {pk_f32(y), call->random, random_start(call, y), pk_count(y), (float)call->attr[1].f,
                   (float)call->attr[2].f, pk_adds(call, 0)};
    pk_parallel(call, pk_ceil_div(k.count, RANDOM_PIECE), 8, fill_task, &k);
    return PK_OK;
}

PK_OP(random_normal, {"random_normal.forward(like: any; shape: list, mean: float, std: float) -> (y: f32)", forward});
