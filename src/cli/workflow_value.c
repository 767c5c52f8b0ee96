/* workflow_value.c -- takes an instance's encodings apart (docs/IR.md, "Values"). */
#include "cli/workflow_value.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 16 };

typedef struct reading {
    hd_pool *pool;
    hd_value objects; /* by number */
} reading;

static hd_value readable(const reading *r, hd_value v, int depth);

static hd_value read_ref(const reading *r, hd_value number, int depth) {
    char name[24];
    snprintf(name, sizeof name, "%" PRId64, hd_value_as_int(number, 0));
    return readable(r, hd_value_at(r->objects, name), depth + 1);
}

static hd_value read_error(const reading *r, hd_value error) {
    const char *what = hd_value_as_text(hd_value_at(error, "$error"), "an exception");
    const char *message = hd_value_as_text(hd_value_at(error, "message"), "");
    return hd_string_f(r->pool, *message ? "%s: %s" : "%s", what, message);
}

/* From the element `from` on. */
static hd_value read_array(const reading *r, hd_value v, int64_t from, int depth) {
    hd_value all = hd_array();
    for (hd_iter it = hd_iter_of(v); hd_iter_next(&it);)
        if (from-- <= 0) all = hd_array_append(r->pool, all, readable(r, it.value, depth + 1));
    return all;
}

/* Without the holes that deleted elements have left: no element of a set, and no pair of a dict, is an empty array. */
static hd_value read_entries(const reading *r, hd_value v, int depth) {
    hd_value all = hd_array();
    for (hd_iter it = hd_iter_of(v); hd_iter_next(&it);)
        if (hd_value_kind(it.value) != HD_KIND_ARRAY || hd_value_count(it.value))
            all = hd_array_append(r->pool, all, readable(r, it.value, depth + 1));
    return all;
}

static hd_value read_list(const reading *r, hd_value v, int depth) {
    return read_array(r, hd_value_at(v, "$list"), hd_value_as_int(hd_value_at(v, "from"), 0),
                      depth);
}

static hd_value read_object(const reading *r, hd_value v, int depth) {
    hd_value all = hd_object(), number = hd_value_at(v, "$ref"), tuple = hd_value_at(v, "$tuple");
    hd_value set = hd_value_at(v, "$set"), pairs = hd_value_at(v, "$dict");
    if (hd_value_exists(number)) return read_ref(r, number, depth);
    if (hd_value_exists(hd_value_at(v, "$error"))) return read_error(r, v);
    if (hd_value_exists(tuple)) return read_array(r, tuple, 0, depth);
    if (hd_value_exists(hd_value_at(v, "$list"))) return read_list(r, v, depth);
    if (hd_value_exists(set)) return read_entries(r, set, depth);
    if (hd_value_exists(pairs))
        return hd_object_set(r->pool, all, "$dict", read_entries(r, pairs, depth));
    for (hd_iter it = hd_iter_of(v); hd_iter_next(&it);)
        if (strcmp(it.key, "$keys") != 0) /* the order, for programs */
            all = hd_object_set(r->pool, all, it.key, readable(r, it.value, depth + 1));
    return all;
}

static hd_value readable(const reading *r, hd_value v, int depth) {
    if (depth > DEPTH_MAX) return hd_string(r->pool, "...");
    if (hd_value_kind(v) == HD_KIND_ARRAY) return read_array(r, v, 0, depth);
    return hd_value_kind(v) == HD_KIND_OBJECT ? read_object(r, v, depth) : v;
}

hd_value flow_readable(hd_pool *pool, hd_value v, hd_value document) {
    reading r = { pool, hd_value_at(document, "objects") };
    return readable(&r, v, 0);
}

/* Temporaries begin with "%"; what was caught stands under "except:" and its node. */
hd_value flow_variables(hd_pool *pool, hd_value document) {
    hd_value all = hd_object(), vars = hd_value_at(document, "vars");
    if (!hd_value_exists(vars)) return vars;
    for (hd_iter it = hd_iter_of(vars); hd_iter_next(&it);)
        if (*it.key != '%' && !strchr(it.key, ':'))
            all = hd_object_set(pool, all, it.key, flow_readable(pool, it.value, document));
    return all;
}
