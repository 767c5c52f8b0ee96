/* test_schema_naive.c -- random schemas and values against a naive reading of the schema.
 *
 * The model works on the source itself, tries everything, and remembers nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include "schema_world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The model --------------------------------------------------------------------------- */

/* The keys that random schemas and values use. */
static const char *const names[] = { "a", "b", "c", "d" };

static bool has(hd_value s, const char *keyword) {
    return hd_value_exists(hd_value_at(s, keyword));
}
static bool is_true(hd_value s, const char *keyword) {
    return hd_value_as_bool(hd_value_at(s, keyword), false);
}

static hd_value model_target(hd_value root, hd_value s) {
    const char *name = hd_value_as_text(hd_value_at(s, "$ref"), NULL);
    if (!name) return s;
    if (strcmp(name, "#") == 0) return root;
    return hd_value_at(hd_value_at(root, "$defs"), name + strlen("#/$defs/"));
}

/* A reference's own brand goes before that of its target. */
static bool model_branded(hd_value root, hd_value s, const char *brand) {
    bool own = is_true(s, "asCell") || is_true(s, "asStream");
    return is_true(own ? s : model_target(root, s), brand);
}

static bool model_type(hd_value s, hd_value v) {
    static const char *const kinds[] = { "?",      "?",     "null",  "boolean", "integer", "number",
                                         "string", "bytes", "array", "object",  "link" };
    hd_value type = hd_value_at(s, "type");
    if (!hd_value_exists(type)) return true;
    const char *want = hd_value_as_text(type, "");
    const char *is = kinds[hd_value_kind(v)];
    bool whole = hd_value_kind(v) == HD_KIND_DOUBLE && hd_value_number(v) == 2.0;
    return strcmp(want, is) == 0 || (strcmp(want, "number") == 0 && strcmp(is, "integer") == 0) ||
           (strcmp(want, "integer") == 0 && whole);
}

static bool model_requires(hd_value s, const char *key) {
    for (hd_iter it = hd_iter_of(hd_value_at(s, "required")); hd_iter_next(&it);)
        if (strcmp(hd_value_as_text(it.value, ""), key) == 0) return true;
    return false;
}

static hd_value model_part(hd_value s, const char *key) {
    hd_value named = hd_value_at(hd_value_at(s, "properties"), key);
    if (hd_value_exists(named)) return named;
    return has(s, "additionalProperties") ? hd_value_at(s, "additionalProperties") : hd_bool(true);
}

static bool model_match(hd_value root, hd_value s, hd_value v, bool reading);

static hd_value model_default(hd_value root, hd_value s) {
    hd_value own = hd_value_at(s, "default");
    return hd_value_exists(own) ? own : hd_value_at(model_target(root, s), "default");
}

static bool model_missing(hd_value root, hd_value s, const char *key) {
    hd_value part = model_part(s, key);
    return !model_branded(root, part, "asStream") && !hd_value_exists(model_default(root, part));
}

static bool model_match_object(hd_value root, hd_value s, hd_value v, bool reading) {
    for (hd_iter it = hd_iter_of(hd_value_at(s, "required")); hd_iter_next(&it);) {
        const char *key = hd_value_as_text(it.value, "");
        if (!hd_value_exists(hd_value_at(v, key)) && model_missing(root, s, key)) return false;
    }
    for (hd_iter it = hd_iter_of(v); hd_iter_next(&it);) {
        if (reading && !model_requires(s, it.key)) continue;
        if (!model_match(root, model_part(s, it.key), it.value, reading)) return false;
    }
    return true;
}

static hd_value model_element(hd_value s, size_t index) {
    hd_value prefix = hd_value_index(hd_value_at(s, "prefixItems"), index);
    if (hd_value_exists(prefix)) return prefix;
    return has(s, "items") ? hd_value_at(s, "items") : hd_bool(true);
}

static bool model_match(hd_value root, hd_value s, hd_value v, bool reading) {
    if (hd_value_kind(s) == HD_KIND_BOOL) return hd_value_as_bool(s, false);
    if (model_branded(root, s, "asStream")) return true;
    if (reading && model_branded(root, s, "asCell")) return true;
    bool shallow = is_true(s, "shallow");
    s = model_target(root, s);
    if (hd_value_kind(s) == HD_KIND_BOOL) return hd_value_as_bool(s, false);
    if (!model_type(s, v)) return false;
    if (has(s, "const") && !hd_value_equal(hd_value_at(s, "const"), v)) return false;
    if (reading && (shallow || is_true(s, "shallow"))) return true;
    if (has(s, "anyOf")) {
        for (hd_iter it = hd_iter_of(hd_value_at(s, "anyOf")); hd_iter_next(&it);)
            if (model_match(root, it.value, v, reading)) return true;
        return false;
    }
    if (hd_value_kind(v) == HD_KIND_OBJECT) return model_match_object(root, s, v, reading);
    if (hd_value_kind(v) != HD_KIND_ARRAY) return true;
    for (hd_iter it = hd_iter_of(v); hd_iter_next(&it);)
        if (!model_match(root, model_element(s, it.index), it.value, reading)) return false;
    return true;
}

static hd_value model_project(hd_pool *pool, hd_value root, hd_value s, hd_value v);

static hd_value model_project_object(hd_pool *pool, hd_value root, hd_value s, hd_value v) {
    hd_value result = hd_object();
    bool named_only = (has(s, "properties") && !has(s, "additionalProperties")) ||
                      hd_value_equal(hd_value_at(s, "additionalProperties"), hd_bool(false));
    for (hd_iter it = hd_iter_of(v); hd_iter_next(&it);) {
        bool named = has(hd_value_at(s, "properties"), it.key);
        if (!named && named_only) continue;
        hd_value part = model_project(pool, root, model_part(s, it.key), it.value);
        if (hd_value_exists(part)) result = hd_object_set(pool, result, it.key, part);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        bool named = has(hd_value_at(s, "properties"), names[i]);
        if (has(v, names[i]) || (!named && (named_only || !model_requires(s, names[i])))) continue;
        hd_value filler = model_default(root, model_part(s, names[i]));
        if (hd_value_exists(filler)) result = hd_object_set(pool, result, names[i], filler);
    }
    return result;
}

static hd_value model_project(hd_pool *pool, hd_value root, hd_value s, hd_value v) {
    if (!model_match(root, s, v, true)) return (hd_value){ 0 };
    bool opaque = is_true(s, "asCell") || is_true(s, "asStream") || is_true(s, "shallow");
    s = model_target(root, s);
    opaque |= is_true(s, "asCell") || is_true(s, "asStream") || is_true(s, "shallow");
    if (opaque) return v;
    for (hd_iter it = hd_iter_of(hd_value_at(s, "anyOf")); hd_iter_next(&it);)
        if (model_match(root, it.value, v, true)) return model_project(pool, root, it.value, v);
    if (hd_value_kind(v) == HD_KIND_OBJECT) return model_project_object(pool, root, s, v);
    if (hd_value_kind(v) != HD_KIND_ARRAY) return v;
    hd_value result = hd_array();
    for (hd_iter it = hd_iter_of(v); hd_iter_next(&it);)
        result = hd_array_append(pool, result,
                                 model_project(pool, root, model_element(s, it.index), it.value));
    return result;
}

/* ---- Random schemas and values ----------------------------------------------------------- */

static hd_value random_value(world *w, lab_random *r, int depth) {
    hd_value v;
    switch (lab_random_below(r, depth > 0 ? 11 : 6)) {
    case 0: return hd_null();
    case 1: return hd_bool(true);
    case 2: return hd_int(w->pool, (int64_t)lab_random_below(r, 2));
    case 3: return hd_double(lab_random_once_in(r, 2) ? 2.0 : 2.5);
    case 4:
    case 5: return hd_string(w->pool, names[lab_random_below(r, 2)]);
    case 6:
    case 7:
        v = hd_array();
        for (uint64_t i = lab_random_below(r, 4); i > 0; i--)
            v = hd_array_append(w->pool, v, random_value(w, r, depth - 1));
        return v;
    default:
        v = hd_object();
        for (uint64_t i = lab_random_below(r, 5); i > 0; i--)
            v = hd_object_set(w->pool, v, names[lab_random_below(r, 4)],
                              random_value(w, r, depth - 1));
        return v;
    }
}

static hd_value random_schema(world *w, lab_random *r, int depth, bool may_refer);

static hd_value random_map(world *w, lab_random *r, int depth) {
    hd_value map = hd_object();
    for (uint64_t i = lab_random_below(r, 4); i > 0; i--)
        map = hd_object_set(w->pool, map, names[lab_random_below(r, 4)],
                            random_schema(w, r, depth, true));
    return map;
}

static hd_value random_array(world *w, lab_random *r, int depth, bool may_refer) {
    hd_value array = hd_array();
    for (uint64_t i = lab_random_below(r, 3) + 1; i > 0; i--)
        array = hd_array_append(w->pool, array, random_schema(w, r, depth, may_refer));
    return array;
}

static hd_value set(world *w, hd_value s, const char *key, hd_value v) {
    return hd_object_set(w->pool, s, key, v);
}

static hd_value random_brands(world *w, lab_random *r, hd_value s) {
    if (lab_random_once_in(r, 12)) s = set(w, s, "asCell", hd_bool(true));
    else if (lab_random_once_in(r, 20)) s = set(w, s, "asStream", hd_bool(true));
    if (lab_random_once_in(r, 20)) s = set(w, s, "shallow", hd_bool(true));
    if (lab_random_once_in(r, 8)) s = set(w, s, "default", random_value(w, r, 1));
    return s;
}

static hd_value random_object_part(world *w, lab_random *r, int depth, hd_value s) {
    if (lab_random_below(r, 3)) s = set(w, s, "properties", random_map(w, r, depth - 1));
    if (lab_random_once_in(r, 3))
        s = set(w, s, "additionalProperties", random_schema(w, r, depth - 1, true));
    hd_value required = hd_array();
    while (lab_random_once_in(r, 3))
        required =
            hd_array_append(w->pool, required, hd_string(w->pool, names[lab_random_below(r, 4)]));
    return hd_value_count(required) ? set(w, s, "required", required) : s;
}

static hd_value random_array_part(world *w, lab_random *r, int depth, hd_value s) {
    if (lab_random_once_in(r, 2)) s = set(w, s, "items", random_schema(w, r, depth - 1, true));
    if (lab_random_once_in(r, 3)) s = set(w, s, "prefixItems", random_array(w, r, depth - 1, true));
    return s;
}

/* Only a schema that consumes something may refer to the root, or there would be empty cycles. */
static hd_value random_schema(world *w, lab_random *r, int depth, bool may_refer) {
    static const char *const types[] = { "null",   "boolean", "integer", "number",
                                         "string", "array",   "object" };
    if (lab_random_once_in(r, 10)) return hd_bool(lab_random_below(r, 3) > 0);
    hd_value s = random_brands(w, r, hd_object());
    if (may_refer && lab_random_once_in(r, 6)) {
        static const char *const targets[] = { "#", "#/$defs/a", "#/$defs/b" };
        return set(w, s, "$ref", hd_string(w->pool, targets[lab_random_below(r, 3)]));
    }
    if (lab_random_once_in(r, 4))
        s = set(w, s, "type", hd_string(w->pool, types[lab_random_below(r, 7)]));
    if (lab_random_once_in(r, 15)) s = set(w, s, "const", random_value(w, r, 1));
    if (depth <= 0) return s;
    if (lab_random_once_in(r, 4)) return set(w, s, "anyOf", random_array(w, r, depth - 1, false));
    s = random_object_part(w, r, depth, s);
    return random_array_part(w, r, depth, s);
}

static hd_value random_root(world *w, lab_random *r) {
    hd_value root = random_schema(w, r, 3, false);
    if (hd_value_kind(root) != HD_KIND_OBJECT) return root;
    hd_value defs = set(w, hd_object(), "a", random_schema(w, r, 2, false));
    defs = set(w, defs, "b", random_schema(w, r, 2, false));
    return set(w, root, "$defs", defs);
}

static void compare_with_model(world *w, const hd_schema *schema, hd_value root, hd_value v) {
    hd_error error;
    bool valid = hd_schema_validate(schema, v, &error) == HD_OK;
    hd_value got = hd_schema_project(w->pool, schema, v);
    hd_value want = model_project(w->pool, root, root, v);
    bool right = valid == model_match(root, root, v, false) && hd_value_equal(got, want) &&
                 (!valid || hd_value_exists(got));
    if (right) return;
    fail_msg("schema %s\nvalue %s\nvalid %d\ngot %s\nwant %s",
             hd_json_print(w->pool, root, HD_JSON_COMPACT, NULL),
             hd_json_print(w->pool, v, HD_JSON_COMPACT, NULL), valid,
             hd_json_print(w->pool, got, HD_JSON_COMPACT, NULL),
             hd_json_print(w->pool, want, HD_JSON_COMPACT, NULL));
}

/* Booleans have no $defs, so a reference to one cannot be asked of them: the generator puts none. */
static void random_schemas_agree_with_a_naive_reading(void **state) {
    world w = world_open();
    lab_random r = lab_random_of(lab_seed());
    for (int round = 0; round < 6000; round++) {
        hd_schema *schema;
        hd_error error;
        hd_value root = random_root(&w, &r);
        if (hd_schema_compile(w.heap, root, &schema, &error))
            fail_msg("%s: %s in %s", error.path, error.message,
                     hd_json_print(w.pool, root, HD_JSON_COMPACT, NULL));
        for (int i = 0; i < 20; i++) compare_with_model(&w, schema, root, random_value(&w, &r, 3));
        hd_schema_close(schema);
        hd_pool_clear(w.pool);
    }
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_schemas_agree_with_a_naive_reading),
    };
    return cmocka_run_group_tests_name("schema, naive", tests, NULL, NULL);
}
