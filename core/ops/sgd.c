/* sgd: p -= rate * d. */
#include "updates.h"

/* p, g [n] */
static void sgd_piece(const void *settings, const pk_update *update, float *restrict p, const float *restrict g,
                      float *const *slots, int64_t n) {
    (void)settings, (void)slots;
    const pk_update u = *update;
    PK_UPDATE_EACH(u, p, g, n, i, d, p[i] -= u.rate * d;);
}

static const pk_rule sgd = {.slots = 0, .piece = sgd_piece};

static pk_status sgd_update(const pk_call *call) { return pk_update_flat(call, &sgd, NULL); }

/* A row without a gradient stays as it is. */
static pk_status sgd_update_rows(const pk_call *call) { return pk_update_rows(call, &sgd, NULL, 0); }

PK_OP(sgd,
      {"sgd.update(p: f32, g: f32, " PK_FLAT_PORTS ") -> (p_out: f32)", sgd_update},
      {"sgd.update_rows(p: f32, ids: i64, values: f32, rows: i64, " PK_ROWS_PORTS ") -> (p_out: f32)",
       sgd_update_rows});
