/* Debug level 4: slots are filled with bytes that are NaN in every float type before they are written, and every float
 * output must be finite. */
#include <math.h>
#include <string.h>

#include "core.h"

static double half_value(uint16_t h) {
    const int exponent = (h >> 10) & 31, fraction = h & 1023;
    const double magnitude = exponent == 0    ? ldexp(fraction, -24)
                             : exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
                                              : ldexp(1024 + fraction, exponent - 25);
    return h & 0x8000 ? -magnitude : magnitude;
}

double pk_value(const void *data, int32_t dtype) {
    union {
        float f32; double f64; uint16_t u16; int64_t i64; int32_t i32; int16_t i16; int8_t i8; uint8_t u8; uint32_t u32;
    } v;
    v.i64 = 0;
    memcpy(&v, data, pk_dtype_bytes[dtype]);
    switch (dtype) {
    case PK_F32: return v.f32;
    case PK_F64: return v.f64;
    case PK_F16: return half_value(v.u16);
    case PK_BF16: v.u32 = (uint32_t)v.u16 << 16; return v.f32;
    case PK_I64: return (double)v.i64;
    case PK_I32: return v.i32;
    case PK_I16: return v.i16;
    case PK_I8: return v.i8;
    default: return v.u8;
    }
}

pk_status pk_poison_start(pk_session *s, pk_error *error) {
    pk_status status = pk_backend_table.copy(s->device, s->arena, NULL, 0xff, (uint64_t)s->arena_bytes);
    return status == PK_OK ? PK_OK : pk_error_at(error, status, -1, -1, "the slots could not be filled");
}

static pk_status check_finite(const pk_call *call, int32_t out, pk_error *error) {
    const pk_view *v = &call->out[out];
    if (!v->data || v->dtype > PK_BF16 || !pk_backend_table.unified) return PK_OK;
    const int64_t count = pk_count(v), row = pk_inner(v, v->ndim ? 1 : 0);
    const uint8_t *data = v->data;
    for (int64_t i = 0; i < count; i++) {
        const double value = pk_value(data + i * pk_dtype_bytes[v->dtype], v->dtype);
        if (isfinite(value)) continue;
        if (error) error->row = row ? i / row : 0;
        return pk_error_at(error, PK_BAD_DATA, -1, -1, "output %d is %g at element %lld of %lld", out, value, (long long)i,
                           (long long)count);
    }
    return PK_OK;
}

pk_status pk_poison_check(const pk_session *s, int32_t node, const pk_call *call, pk_error *error) {
    for (int32_t k = 0; k < call->n_out; k++) {
        if (k < 64 && (s->plan->node_info[node].work >> k) & 1u) continue;
        pk_status status = check_finite(call, k, error);
        if (status != PK_OK) return status;
    }
    return PK_OK;
}

/* ---- dead slots ---- */
typedef struct life {
    int32_t first, last; /* nodes of the entry; first INT32_MAX: not used */
} life;

/* Everything that uses tensor t also uses what it lies in; a use inside a loop lasts as long as the loop. */
static void live(const pk_plan *plan, life *lives, int32_t t, int32_t from, int32_t to) {
    while (plan->tensors[t].storage >= PK_AT_ALIAS) {
        if (plan->tensors[t].storage == PK_AT_PREVIOUS) live(plan, lives, plan->tensors[t].part, from, to);
        t = plan->tensors[t].place;
    }
    if (from < lives[t].first) lives[t].first = from;
    if (to > lives[t].last) lives[t].last = to;
}

static void find_lives(const pk_plan *plan, int32_t entry, life *lives) {
    const pk_plan_entry *e = &plan->entries[entry];
    const pk_entry_info *info = &plan->entry_info[entry];
    for (int32_t t = 0; t < PK_COUNT(plan, TENSORS); t++) lives[t] = (life){INT32_MAX, -1};
    int32_t from = 0, to = -1;
    for (int32_t at = 0; at < (int32_t)e->nodes; at++) {
        if (at > to) {
            from = at;
            to = at + (int32_t)plan->nodes[e->first_node + (uint32_t)at].body;
        }
        const int32_t end = at + 1 < (int32_t)e->nodes ? info->node_use[at + 1] : info->fetch_use;
        for (int32_t u = info->node_use[at]; u < end; u++)
            if (info->use[u] >= 0) live(plan, lives, info->use[u], from, to);
    }
    for (int32_t u = info->fetch_use; u < info->uses; u++) live(plan, lives, info->use[u], (int32_t)e->nodes, (int32_t)e->nodes);
}

/* A slot's bytes stay as they are while any other of its tensors is alive. */
static int dies(const pk_plan *plan, const life *lives, int32_t t, int32_t node) {
    if (plan->tensors[t].storage != PK_AT_SLOT || lives[t].last != node || lives[t].first == INT32_MAX) return 0;
    for (int32_t u = 0; u < PK_COUNT(plan, TENSORS); u++)
        if (u != t && plan->tensors[u].storage == PK_AT_SLOT && plan->tensors[u].place == plan->tensors[t].place &&
            lives[u].first <= node && lives[u].last > node)
            return 0;
    return 1;
}

int pk_poison_create(pk_session *s) {
    const pk_plan *plan = s->plan;
    const int32_t tensors = PK_COUNT(plan, TENSORS);
    life *lives = pk_host_zeros((uint64_t)tensors, sizeof *lives);
    s->deaths = pk_host_zeros((uint64_t)PK_COUNT(plan, ENTRIES), sizeof *s->deaths);
    int ok = lives && s->deaths;
    for (int32_t i = 0; ok && i < PK_COUNT(plan, ENTRIES); i++) {
        const int32_t nodes = (int32_t)plan->entries[i].nodes;
        pk_deaths *d = &s->deaths[i];
        d->tensor = pk_host_zeros((uint64_t)tensors, sizeof *d->tensor);
        d->first = pk_host_zeros((uint64_t)nodes + 1, sizeof *d->first);
        if (!(ok = d->tensor && d->first)) break;
        find_lives(plan, i, lives);
        int32_t count = 0;
        for (int32_t at = 0; at < nodes; at++) {
            d->first[at] = count;
            for (int32_t t = 0; t < tensors; t++)
                if (dies(plan, lives, t, at)) d->tensor[count++] = t;
        }
        d->first[nodes] = count;
    }
    pk_release(lives);
    return ok;
}

void pk_poison_free(pk_session *s) {
    for (int32_t i = 0; s->deaths && i < s->binding_count / PK_BINDINGS; i++) {
        pk_release(s->deaths[i].tensor);
        pk_release(s->deaths[i].first);
    }
    pk_release(s->deaths);
    s->deaths = NULL;
}

pk_status pk_poison_dead(pk_session *s, int32_t entry, int32_t node, pk_error *error) {
    const pk_deaths *d = &s->deaths[entry];
    const int32_t at = node - (int32_t)s->plan->entries[entry].first_node;
    for (int32_t k = d->first[at]; k < d->first[at + 1]; k++) {
        const pk_plan_tensor *t = &s->plan->tensors[d->tensor[k]];
        const int64_t bytes = pk_tensor_bytes(t, s->symbols);
        pk_status status = pk_backend_table.copy(s->device, s->slot[t->place] + t->offset, NULL, 0xff, (uint64_t)bytes);
        if (status != PK_OK) return pk_error_at(error, status, node, -1, "a slot could not be filled");
    }
    return PK_OK;
}
