/* fuzz_plan: mutated plans against the core.  Usage: fuzz_plan COUNT SEED PLAN...
 *
 * Each round takes one of the plans, changes a few bytes (mostly behind the section table), and gives the result to
 * pk_plan_create.  What is accepted runs: every entry, with batches of 0 to 4 samples, on params of small numbers, once plain and
 * once poisoned.  A timer interrupts what runs long.  Sanitizers find what is wrong; this program only counts. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "../../core/src/core.h"

#define SMALL_BYTES (32 << 20) /* what needs more memory than this is not run */

static uint64_t state;
static uint64_t next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}
static uint64_t below(uint64_t n) { return n ? next() % n : 0; }

typedef struct bytes {
    uint8_t *data;
    uint64_t size;
} bytes;

static bytes read_file(const char *path) {
    bytes b = {NULL, 0};
    FILE *file = fopen(path, "rb");
    if (!file) return b;
    fseek(file, 0, SEEK_END);
    b.size = (uint64_t)ftell(file);
    rewind(file);
    b.data = malloc(b.size + 1);
    if (b.data && fread(b.data, 1, b.size, file) != b.size) b.size = 0;
    fclose(file);
    return b;
}

/* ---- mutation ---- */
static uint64_t interesting(void) {
    static const uint64_t values[] = {0, 1, 2, 3, 7, 8, 63, 64, 255, 65535, INT32_MAX, (uint64_t)INT32_MAX + 1, UINT32_MAX,
                                      INT64_MAX, UINT64_MAX, (uint64_t)1 << 40, ((uint64_t)1 << 40) + 1, (uint64_t)1 << 50};
    const uint64_t pick = below(sizeof values / sizeof *values + 8);
    return pick < sizeof values / sizeof *values ? values[pick] : below(40);
}

/* Writes a number of 1, 2, 4 or 8 bytes at a multiple of its size. */
static void poke(uint8_t *data, uint64_t from, uint64_t size) {
    const uint64_t width = (uint64_t)1 << below(4);
    const uint64_t places = (size - from) / width;
    if (!places) return;
    uint64_t value = interesting();
    uint8_t *at = data + from + width * below(places);
    if (below(4) == 0) { /* a neighbour of what is there */
        value = 0;
        memcpy(&value, at, width);
        value += below(2) ? 1 : (uint64_t)-1;
    }
    memcpy(at, &value, width);
}

/* One 4-byte word over another of the same section: likely a valid index of another kind. */
static void shuffle(uint8_t *data, const pk_plan_section *s, uint64_t size) {
    const uint64_t words = s->count * s->record / 4;
    if (words < 2 || s->offset + words * 4 > size) return;
    memcpy(data + s->offset + 4 * below(words), data + s->offset + 4 * below(words), 4);
}

static bytes mutate(const bytes *from) {
    bytes b = {malloc(from->size), from->size};
    if (!b.data) return b;
    memcpy(b.data, from->data, from->size);
    const pk_plan_header *h = (const pk_plan_header *)from->data;
    const uint64_t body = sizeof *h + h->sections * sizeof(pk_plan_section);
    const pk_plan_section *sections = (const pk_plan_section *)(from->data + sizeof *h);
    for (uint64_t i = 1 + below(3); i > 0; i--) {
        const uint64_t way = below(24);
        const pk_plan_section *s = &sections[below(h->sections)];
        if (way == 0) poke(b.data, 0, b.size);
        else if (way == 1) poke(b.data, sizeof *h, body);
        else if (way == 2) b.size = below(b.size + 1);
        else if (way < 8) shuffle(b.data, s, b.size);
        else if (s->count && s->offset + s->count * s->record <= b.size) poke(b.data, s->offset, s->offset + s->count * s->record);
    }
    bytes exact = {malloc(b.size ? b.size : 1), b.size}; /* so that a read behind the end is seen */
    if (exact.data) memcpy(exact.data, b.data, b.size);
    free(b.data);
    return exact;
}

/* ---- running what was accepted ---- */
static pk_session *running;
static void on_timer(int signal) {
    (void)signal;
    if (running) pk_interrupt(running, 1);
}

static void arm(int milliseconds) {
    struct itimerval timer = {{0, 20000}, {0, milliseconds * 1000}};
    if (!milliseconds) memset(&timer, 0, sizeof timer);
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* Offsets of n sequences of 0 to 3 rows. */
static int64_t *make_offsets(int64_t n) {
    int64_t *offsets = malloc((size_t)(n + 1) * sizeof *offsets);
    if (!offsets) return NULL;
    offsets[0] = 0;
    for (int64_t i = 0; i < n; i++) offsets[i + 1] = offsets[i] + (int64_t)below(4);
    return offsets;
}

static int fill_columns(const pk_plan *plan, const pk_plan_entry *e, int64_t n, pk_column *columns, int64_t **offsets) {
    int64_t *rows = calloc((size_t)PK_COUNT(plan, AXES) + 1, sizeof *rows);
    int ok = rows != NULL;
    for (int32_t a = 0; ok && a < PK_COUNT(plan, AXES); a++) {
        const int64_t sequences = plan->axes[a].parent < 0 ? n : rows[plan->axes[a].parent];
        ok = (offsets[a] = make_offsets(sequences)) != NULL;
        if (ok) rows[a] = offsets[a][sequences];
    }
    for (uint32_t k = 0; ok && k < e->inputs; k++) {
        const pk_plan_tensor *t = &plan->tensors[plan->inputs[plan->refs[e->first_input + k]].tensor];
        pk_column *c = &columns[k];
        const int64_t row = pk_row_bytes(t, NULL);
        c->rows = t->axis >= 0 ? rows[t->axis] : t->dim[0].coefficient * (t->dim[0].symbol < 0 ? 1 : n);
        if (t->axis >= 0) {
            c->offsets = offsets[t->axis];
            c->sequences = plan->axes[t->axis].parent < 0 ? n : rows[plan->axes[t->axis].parent];
        }
        /* Input rows have a fixed size (checked), the coefficient counted once. */
        const int64_t each = t->dim[0].coefficient ? row / t->dim[0].coefficient : 0;
        if (each < 0 || c->rows < 0 || c->rows > SMALL_BYTES || each > SMALL_BYTES || c->rows * each > SMALL_BYTES) ok = 0;
        if (!ok) break;
        uint8_t *data = calloc(1, (size_t)(c->rows * each) + 1);
        ok = data != NULL;
        for (int64_t i = 0; ok && i < c->rows * each; i += 8) data[i] = (uint8_t)below(5);
        c->data = data;
    }
    free(rows);
    return ok;
}

static void run_entry(pk_session *session, const pk_plan *plan, int32_t entry, int64_t n) {
    const pk_plan_entry *e = &plan->entries[entry];
    pk_column *columns = calloc((size_t)e->inputs + 1, sizeof *columns);
    int64_t **offsets = calloc((size_t)PK_COUNT(plan, AXES) + 1, sizeof *offsets);
    double *results = calloc((size_t)e->fetches + 1, sizeof *results);
    double *args = calloc((size_t)PK_COUNT(plan, ARGUMENTS) + 1, sizeof *args);
    if (columns && offsets && results && args && fill_columns(plan, e, n, columns, offsets)) {
        pk_step step = {.entry = entry, .n_columns = (int32_t)e->inputs, .n = n, .columns = columns, .args = args,
                        .results = results};
        int32_t done;
        pk_error error;
        running = session;
        arm(50);
        pk_session_run(session, &step, 1, &done, &error);
        arm(0);
        running = NULL;
    }
    for (uint32_t k = 0; columns && k < e->inputs; k++) free((void *)(uintptr_t)columns[k].data);
    for (int32_t a = 0; offsets && a < PK_COUNT(plan, AXES); a++) free(offsets[a]);
    free(columns);
    free(offsets);
    free(results);
    free(args);
}

/* Work that a kernel may be asked for without an interrupt, by the sizes of its tensors. */
static int is_small(const pk_plan *plan) {
    uint64_t ranges = 0;
    for (int32_t i = 0; i < PK_COUNT(plan, RANGES); i++) ranges += plan->ranges[i].bytes < SMALL_BYTES ? plan->ranges[i].bytes
                                                                                                 : SMALL_BYTES;
    return ranges < SMALL_BYTES;
}

static int run_plan(const pk_plan *plan, int32_t flags) {
    pk_params *params = NULL;
    pk_session *session = NULL;
    pk_error error;
    int ran = 0;
    int64_t *values = calloc((size_t)PK_COUNT(plan, SYMBOLS) + 1, sizeof *values);
    for (int32_t i = 0; values && i < PK_COUNT(plan, SYMBOLS); i++) values[i] = 64;
    if (values && is_small(plan) && pk_params_create(plan, &params, &error) == PK_OK &&
        pk_session_create(plan, params, 1, flags, &session, &error) == PK_OK &&
        pk_session_reserve(session, values, PK_COUNT(plan, SYMBOLS), &error) == PK_OK &&
        pk_session_bytes(session) < SMALL_BYTES) {
        for (int32_t i = 0; i < PK_COUNT(plan, ENTRIES) && i < 8; i++) run_entry(session, plan, i, (int64_t)below(5));
        ran = 1;
    }
    pk_session_free(session);
    pk_params_free(params);
    free(values);
    return ran;
}

static int past_header(const bytes *b) {
    pk_plan plan = {.bytes = malloc(b->size ? b->size : 1)};
    if (!plan.bytes) return 0;
    memcpy(plan.bytes, b->data, b->size);
    const int ok = pk_plan_read(&plan, b->size, NULL) == PK_OK;
    free(plan.bytes);
    return ok;
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: fuzz_plan COUNT SEED PLAN...\n");
        return 2;
    }
    const long count = atol(argv[1]);
    state = strtoull(argv[2], NULL, 10) * 0x9e3779b97f4a7c15u + 88172645463325252u;
    const struct sigaction action = {.sa_handler = on_timer}; /* signal() may fall back after the first alarm */
    sigaction(SIGALRM, &action, NULL);
    bytes *plans = calloc((size_t)(argc - 3), sizeof *plans);
    for (int i = 3; plans && i < argc; i++) {
        plans[i - 3] = read_file(argv[i]);
        pk_plan *plan;
        pk_error error;
        if (pk_plan_create(plans[i - 3].data, plans[i - 3].size, &plan, &error) != PK_OK) {
            fprintf(stderr, "%s is not a valid plan: %s\n", argv[i], error.message);
            return 2;
        }
        run_plan(plan, 0);
        pk_plan_free(plan);
    }
    long past = 0, valid = 0, ran = 0;
    for (long i = 0; plans && i < count; i++) {
        bytes b = mutate(&plans[below((uint64_t)(argc - 3))]);
        pk_plan *plan = NULL;
        pk_error error;
        if (getenv("FUZZ_SAVE")) { /* keep what is about to be tried */
            FILE *file = fopen(getenv("FUZZ_SAVE"), "wb");
            if (file) {
                fwrite(b.data, 1, b.size, file);
                fclose(file);
            }
        }
        past += past_header(&b);
        if (pk_plan_create(b.data, b.size, &plan, &error) == PK_OK) {
            valid++;
            ran += run_plan(plan, i % 2 ? 4 | 2 : 1);
        }
        pk_plan_free(plan);
        free(b.data);
    }
    printf("plans %ld past_header %ld valid %ld ran %ld\n", count, past, valid, ran);
    for (int i = 0; plans && i < argc - 3; i++) free(plans[i].data);
    free(plans);
    return 0;
}
