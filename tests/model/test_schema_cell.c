/* test_schema_cell.c -- reading a cell through a random schema, against hd_schema_project of the whole value.
 *
 * An effect reads a document through the schema. The document changes at random; when everything has settled,
 * what the effect saw last is what the schema makes of the document now: so it reads right, and it has run
 * whenever that changed. What it runs for in vain is counted: with everything the schema looks at being a
 * dependency, and nothing else, that is seldom.
 *
 * Cells, streams and shallow parts are left out: they are dependencies of another kind. HD_SEED repeats. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include "lab.h"
#include <heddle/scheduler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 400, STEPS = 30 };

static const char *const names[] = { "a", "b", "c", "d" };

static lab_random r;
static hd_pool *pool; /* of a round */
static uint32_t below(uint32_t n) { return (uint32_t)lab_random_below(&r, n); }

/* ---- random schemas and values */

static hd_value random_value(int depth) {
    hd_value v;
    switch (below(depth > 0 ? 11 : 6)) {
    case 0: return hd_null();
    case 1: return hd_bool(true);
    case 2: return hd_int(pool, (int64_t)below(2));
    case 3: return hd_double(below(2) ? 2.0 : 2.5);
    case 4:
    case 5: return hd_string(pool, names[below(2)]);
    case 6:
    case 7:
        v = hd_array();
        for (uint32_t i = below(4); i > 0; i--)
            v = hd_array_append(pool, v, random_value(depth - 1));
        return v;
    default:
        v = hd_object();
        for (uint32_t i = below(5); i > 0; i--)
            v = hd_object_set(pool, v, names[below(4)], random_value(depth - 1));
        return v;
    }
}

static hd_value set(hd_value s, const char *key, hd_value v) {
    return hd_object_set(pool, s, key, v);
}

static hd_value random_schema(int depth, bool may_refer);

static hd_value random_list(int depth, bool may_refer) {
    hd_value array = hd_array();
    for (uint32_t i = below(3) + 1; i > 0; i--)
        array = hd_array_append(pool, array, random_schema(depth, may_refer));
    return array;
}

static hd_value random_object_part(int depth, hd_value s) {
    if (below(3)) {
        hd_value map = hd_object();
        for (uint32_t i = below(4); i > 0; i--)
            map = set(map, names[below(4)], random_schema(depth - 1, true));
        s = set(s, "properties", map);
    }
    if (!below(3)) s = set(s, "additionalProperties", random_schema(depth - 1, true));
    hd_value required = hd_array();
    while (!below(2)) required = hd_array_append(pool, required, hd_string(pool, names[below(4)]));
    return hd_value_count(required) ? set(s, "required", required) : s;
}

static hd_value random_schema(int depth, bool may_refer) {
    static const char *const types[] = { "null",   "boolean", "integer", "number",
                                         "string", "array",   "object" };
    if (!below(10)) return hd_bool(below(3) > 0);
    hd_value s = hd_object();
    if (!below(5)) s = set(s, "default", random_value(1));
    if (may_refer && !below(6)) {
        static const char *const targets[] = { "#", "#/$defs/a", "#/$defs/b" };
        return set(s, "$ref", hd_string(pool, targets[below(3)]));
    }
    if (!below(3)) s = set(s, "type", hd_string(pool, types[below(7)]));
    if (!below(15)) s = set(s, "const", random_value(1));
    if (depth <= 0) return s;
    if (!below(3)) return set(s, "anyOf", random_list(depth - 1, false));
    s = random_object_part(depth, s);
    if (!below(2)) s = set(s, "items", random_schema(depth - 1, true));
    if (!below(3)) s = set(s, "prefixItems", random_list(depth - 1, true));
    return s;
}

static hd_value random_root(void) {
    hd_value root = random_schema(3, false);
    if (hd_value_kind(root) != HD_KIND_OBJECT) return root;
    hd_value defs = set(hd_object(), "a", random_schema(2, false));
    return set(root, "$defs", set(defs, "b", random_schema(2, false)));
}

/* ---- the reader */

static hd_cell typed, plain;
static char seen[4096], was[4096];
static unsigned runs, vain, changes;

static void print_value(hd_value v, char *out) {
    const char *text = hd_value_exists(v) ? hd_json_print(pool, v, HD_JSON_COMPACT, NULL) : "-";
    assert_true(strlen(text) < sizeof seen);
    strcpy(out, text);
}

static hd_status look(hd_tx *tx, void *ctx) {
    (void)ctx;
    hd_value v = hd_tx_get(tx, typed);
    if (hd_value_status(v)) return hd_value_status(v);
    print_value(v, seen);
    runs++;
    return HD_OK;
}

/* ---- a round */

/* A place somewhere below the document, or the document itself. */
static hd_cell random_place(hd_runtime *rt, hd_value v) {
    hd_cell at = plain;
    while (below(3) && (hd_value_kind(v) == HD_KIND_OBJECT || hd_value_kind(v) == HD_KIND_ARRAY)) {
        size_t count = hd_value_count(v);
        if (hd_value_kind(v) == HD_KIND_OBJECT) {
            const char *name = names[below(4)];
            at = hd_cell_child(rt, at, name);
            v = hd_value_at(v, name);
        } else if (count) {
            size_t i = below((uint32_t)count);
            char text[16];
            snprintf(text, sizeof text, "%zu", i);
            at = hd_cell_child(rt, at, text);
            v = hd_value_index(v, i);
        } else break;
    }
    return at;
}

static void change(hd_runtime *rt) {
    hd_tx *tx;
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    hd_cell at = random_place(rt, hd_tx_get(tx, plain));
    hd_value v = random_value(2);
    if (!below(6)) (void)hd_tx_remove(tx, at);
    else (void)hd_tx_set(tx, at, v);
    hd_status status = hd_tx_commit(tx, NULL, NULL);
    assert_true(status == HD_OK || status == HD_KIND || status == HD_RANGE);
}

static void check(hd_runtime *rt, const hd_schema *schema, hd_value root, unsigned before) {
    hd_tx *tx;
    char want[4096], whole[4096];
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    hd_value v = hd_tx_get(tx, plain);
    print_value(v, whole);
    print_value(hd_schema_project(pool, schema, v), want);
    hd_tx_abort(tx);
    if (strcmp(want, seen))
        lab_fail("%s run: schema %s\nvalue %s\nseen %s\nwant %s", runs == before ? "no" : "a",
                 hd_json_print(pool, root, HD_JSON_COMPACT, NULL), whole, seen, want);
    if (runs != before && !strcmp(was, seen)) vain++;
    strcpy(was, seen);
}

static void run_round(lab_env *env) {
    hd_runtime *rt;
    hd_schema *schema;
    hd_error error;
    assert_int_equal(hd_open(NULL, &(hd_options){ .env = lab_env_of(env) }, &rt, NULL), HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    hd_value root = random_root();
    if (hd_schema_compile(hd_runtime_heap(rt), root, &schema, &error))
        fail_msg("%s: %s", error.path, error.message);
    plain = hd_cell_at(rt, "main/doc");
    typed = hd_cell_with_schema(rt, plain, schema);
    strcpy(was, "?");
    assert_true(hd_effect(rt, "look", look, NULL).id);
    for (int i = 0; i < STEPS; i++) {
        unsigned before = runs;
        change(rt);
        changes++;
        while (hd_runtime_pump(rt) == HD_PENDING) continue;
        check(rt, schema, root, before);
    }
    hd_pool_close(pool);
    hd_schema_close(schema);
    hd_close(rt);
}

static void a_cell_reads_as_the_schema_projects(void **state) {
    const char *rounds = getenv("HD_STEPS");
    lab_env *env = lab_env_open();
    (void)state;
    r = lab_random_of(lab_seed());
    for (long i = 0; i < (rounds ? atol(rounds) : ROUNDS); i++) run_round(env);
    print_message("%u changes, %u runs, %u of them in vain\n", changes, runs, vain);
    lab_env_close(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cell_reads_as_the_schema_projects),
    };
    return cmocka_run_group_tests_name("schema, cell", tests, NULL, NULL);
}
