/* Reads a kernel's signature text: "op.kernel(x: f32, b?: f32, xs*: any; axis: int) -> (y: f32)". */
#include <string.h>

#include "core.h"

static const char *skip(const char *p) {
    while (*p == ' ') p++;
    return p;
}

/* "name[?|*]: type" up to , ; or ).  Returns the end, or NULL when it is not one. */
static const char *port(const char *p, char *mark, const char **type, size_t *length) {
    p = skip(p);
    const char *name = p;
    while (*p && !strchr(":?*,;()", *p)) p++;
    if (p == name) return NULL;
    *mark = *p == '?' || *p == '*' ? *p++ : 0;
    p = skip(p);
    if (*p++ != ':') return NULL;
    p = skip(p);
    *type = p;
    while (*p && !strchr(" ,;()", *p)) p++;
    *length = (size_t)(p - *type);
    return *length ? skip(p) : NULL;
}

static int find(const char *const *names, int32_t count, const char *text, size_t length) {
    for (int32_t i = 0; i < count; i++)
        if (strlen(names[i]) == length && memcmp(names[i], text, length) == 0) return i;
    return -1;
}

static const char *ports(const char *p, int32_t *count, uint8_t *types, uint64_t *optional, uint64_t *work, int32_t *many) {
    char mark;
    const char *type;
    size_t length;
    *count = 0;
    *many = 0;
    if (strchr(";)", *skip(p))) return skip(p);
    for (;;) {
        const uint64_t bit = (uint64_t)1 << *count;
        if (strncmp(skip(p), "work", 4) == 0) *work |= bit;
        if (*count >= PK_MAX_PORTS || *many || !(p = port(p, &mark, &type, &length))) return NULL;
        int dtype = length == 3 && memcmp(type, "any", 3) == 0 ? PK_ANY : find(pk_dtype_names, 10, type, length);
        if (dtype < 0) return NULL;
        if (mark == '?') *optional |= bit;
        *many = mark == '*';
        types[(*count)++] = (uint8_t)dtype;
        if (*p != ',') return p;
        p++;
    }
}

static const char *attributes(const char *p, pk_signature *s) {
    static const char *const names[] = {"int", "bool", "float", "list"};
    static const uint8_t kinds[] = {PK_ATTR_INT, PK_ATTR_INT, PK_ATTR_FLOAT, PK_ATTR_LIST};
    char mark;
    const char *type;
    size_t length;
    for (;;) {
        if (s->attrs >= PK_MAX_PORTS || !(p = port(p, &mark, &type, &length)) || mark) return NULL;
        int kind = find(names, 4, type, length);
        if (kind < 0) return NULL;
        s->attr_kind[s->attrs++] = kinds[kind];
        if (*p != ',') return p;
        p++;
    }
}

int pk_signature_parse(const char *text, pk_signature *s) {
    memset(s, 0, sizeof *s);
    const char *p = strchr(text, '(');
    if (!p || p == text || !memchr(text, '.', (size_t)(p - text))) return 0;
    p = ports(p + 1, &s->inputs, s->in_type, &s->optional, &s->work, &s->many_inputs);
    s->work = 0; /* only outputs are scratch */
    if (p && *p == ';') p = attributes(p + 1, s);
    if (!p || *p != ')') return 0;
    p = skip(p + 1);
    if (strncmp(p, "->", 2) != 0 || *(p = skip(p + 2)) != '(') return 0;
    p = ports(p + 1, &s->outputs, s->out_type, &s->optional_out, &s->work, &s->many_outputs);
    return p && *p == ')' && p[1] == 0;
}
