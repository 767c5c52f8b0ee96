/* test_schema_read.c -- reading through a schema: what is kept, where the boundaries are. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include "schema_collect.h"
#include "schema_world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What a read keeps ------------------------------------------------------------------- */

struct projection {
    const char *value, *result; /* result NULL: absent */
};

static void assert_projects(const char *text, const struct projection *cases, size_t count) {
    world w = world_open();
    hd_schema *schema = compile(&w, text);
    for (size_t i = 0; i < count; i++) {
        hd_value v = cases[i].value ? json(&w, cases[i].value) : (hd_value){ 0 };
        hd_value got = hd_schema_project(w.pool, schema, v);
        hd_value want = cases[i].result ? json(&w, cases[i].result) : (hd_value){ 0 };
        const char *shown = hd_json_print(w.pool, got, HD_JSON_COMPACT, NULL);
        if (!hd_value_equal(got, want))
            fail_msg("%s on %s: %s", text, cases[i].value, shown ? shown : "absent");
        /* What stays the same is the same. */
        if (hd_value_exists(v) && hd_value_equal(got, v)) assert_int_equal(got.bits, v.bits);
    }
    hd_schema_close(schema);
    world_close(&w);
}
#define PROJECTS(text, ...)                                                                        \
    assert_projects(text, (const struct projection[]){ __VA_ARGS__ },                              \
                    sizeof((const struct projection[]){ __VA_ARGS__ }) /                           \
                        sizeof(struct projection))

static void a_read_keeps_the_named_properties(void **state) {
    PROJECTS("{'properties': {'a': true, 'b': {'type': 'integer'}}}",
             { "{'a': 1, 'b': 2, 'c': 3}", "{'a': 1, 'b': 2}" },
             { "{'a': 1, 'b': 2}", "{'a': 1, 'b': 2}" }, { "{'b': 'x', 'c': 3}", "{}" },
             { "{}", "{}" }, { "5", "5" });
    PROJECTS("{'properties': {'a': true}, 'additionalProperties': false}",
             { "{'a': 1, 'b': 2}", "{'a': 1}" });
    PROJECTS("{'type': 'object'}", { "{'a': 1, 'b': 2}", "{'a': 1, 'b': 2}" }, { "5", NULL });
    PROJECTS("{'type': 'object', 'properties': {}}", { "{'a': 1}", "{}" });
}

static void a_missing_required_property_fails_the_object(void **state) {
    PROJECTS("{'properties': {'a': {'type': 'integer'}}, 'required': ['a']}", { "{'b': 1}", NULL },
             { "{'a': 's'}", NULL }, { "{'a': 1, 'b': 1}", "{'a': 1}" });
    PROJECTS("{'properties': {'o': {'properties': {'a': true}, 'required': ['a']}, 'p': true}}",
             { "{'o': {'b': 1}, 'p': 2}", "{'p': 2}" });
    PROJECTS("{'required': ['a']}", { "{'a': 1, 'b': 2}", "{'a': 1, 'b': 2}" },
             { "{'b': 2}", NULL });
    PROJECTS("{'properties': {'b': true}, 'required': ['a']}", { "{'a': 1, 'b': 2}", "{'b': 2}" },
             { "{'b': 2}", NULL });
}

static void other_properties_are_kept_where_allowed(void **state) {
    PROJECTS("{'properties': {'a': {'type': 'integer'}}, 'additionalProperties': true}",
             { "{'a': 1, 'b': 2}", "{'a': 1, 'b': 2}" }, { "{'a': 'x', 'b': 2}", "{'b': 2}" });
    PROJECTS("{'additionalProperties': {'type': 'integer'}}",
             { "{'a': 1, 'b': 'x', 'c': 3}", "{'a': 1, 'c': 3}" }, { "{'a': 1}", "{'a': 1}" });
    PROJECTS("{'additionalProperties': {'properties': {'k': true}}}",
             { "{'a': {'k': 1, 'l': 2}, 'b': {'k': 3}}", "{'a': {'k': 1}, 'b': {'k': 3}}" });
    PROJECTS("{'required': ['q'], 'additionalProperties': {'type': 'integer'}}",
             { "{'q': 1, 'r': 's'}", "{'q': 1}" }, { "{'q': 's'}", NULL });
}

static void elements_are_projected_and_all_must_fit(void **state) {
    PROJECTS("{'items': {'properties': {'p': {'type': 'number'}}, 'required': ['p']}}",
             { "[{'p': 1, 'q': 2}, {'p': 3}]", "[{'p': 1}, {'p': 3}]" },
             { "[{'p': 1}, {'q': 3}]", NULL }, { "[]", "[]" });
    PROJECTS("{'prefixItems': [{'properties': {}}], 'items': {'type': 'integer'}}",
             { "[{'a': 1}, 2, 3]", "[{}, 2, 3]" }, { "[{}, 'x']", NULL });
    PROJECTS("{'prefixItems': [true], 'items': false}", { "[1]", "[1]" }, { "[1, 2]", NULL });
}

static void defaults_fill_what_is_missing(void **state) {
    PROJECTS("{'properties': {'n': {'type': 'integer', 'default': 7}, 'o': {'default': {'deep': "
             "[1]}}}, 'required': ['n']}",
             { "{}", "{'n': 7, 'o': {'deep': [1]}}" },
             { "{'n': 1, 'o': null}", "{'n': 1, 'o': null}" }, { "{'n': 'x'}", NULL });
    PROJECTS("{'default': [1]}", { NULL, "[1]" }, { "2", "2" });
    PROJECTS(
        "{'$ref': '#/$defs/n', 'default': 2, '$defs': {'n': {'type': 'integer', 'default': 1}}}",
        { NULL, "2" });
    PROJECTS("{'$ref': '#/$defs/n', '$defs': {'n': {'type': 'integer', 'default': 1}}}",
             { NULL, "1" }, { "'x'", NULL });
    PROJECTS("{'type': 'null'}", { NULL, NULL });
}

static void boundaries_and_shallow_places_are_not_looked_into(void **state) {
    PROJECTS("{'properties': {'c': {'type': 'integer', 'asCell': true}, 's': {'asStream': true}, "
             "'h': {'shallow': true, 'type': 'object', 'properties': {'x': true}}}, 'required': "
             "['c', 's']}",
             { "{'c': 'any', 'h': {'y': 1}, 'z': 1}", "{'c': 'any', 'h': {'y': 1}}" },
             { "{'c': 1, 'h': 5}", "{'c': 1}" }, { "{'h': {}}", NULL });
    PROJECTS("{'properties': {'a': {'type': 'integer'}}}",
             { "{'a': {'$link': {'id': 'x'}}}", "{'a': {'$link': {'id': 'x'}}}" });
}

static void the_first_alternative_that_fits_is_read(void **state) {
    PROJECTS("{'anyOf': [{'properties': {'t': {'const': 'a'}, 'x': true}, 'required': ['t', 'x']}, "
             "{'properties': {'t': true, 'y': true}}]}",
             { "{'t': 'a', 'x': 1, 'y': 2}", "{'t': 'a', 'x': 1}" },
             { "{'t': 'b', 'x': 1, 'y': 2}", "{'t': 'b', 'y': 2}" },
             { "{'t': 'a', 'y': 2}", "{'t': 'a', 'y': 2}" });
    PROJECTS("{'anyOf': [{'type': 'string'}, {'type': 'null'}]}", { "'s'", "'s'" }, { "1", NULL });
    PROJECTS("{'properties': {'a': {'anyOf': [{'anyOf': [{'type': 'null'}, {'items': {'type': "
             "'integer'}, "
             "'type': 'array'}]}, {'type': 'string'}]}}}",
             { "{'a': [1]}", "{'a': [1]}" }, { "{'a': ['x']}", "{}" },
             { "{'a': 'x'}", "{'a': 'x'}" });
}

static void the_pool_holds_the_result(void **state) {
    world w = world_open();
    hd_schema *schema =
        compile(&w, "{'properties': {'a': {'default': 'long enough for a block'}}}");
    hd_pool *other;
    assert_int_equal(hd_pool_open(w.heap, &other), HD_OK);
    hd_value text = hd_schema_project(other, schema, hd_object());
    hd_schema_close(schema);
    hd_pool_clear(w.pool);
    assert_string_equal(hd_value_as_text(hd_value_at(text, "a"), ""), "long enough for a block");
    hd_pool_close(other);
    world_close(&w);
}

/* ---- Walking ----------------------------------------------------------------------------- */

static void a_walk_asks_each_node_what_to_read(void **state) {
    world w = world_open();
    hd_schema *schema = compile(
        &w, "{'properties': {'cell': {'asCell': true}, 'shape': {'shallow': true}, 'all': true, "
            "'list': {'prefixItems': [{'type': 'null'}], 'items': {'$ref': '#'}}, 'n': {'type': "
            "'integer', 'default': 4}}, 'required': ['n', 'x']}");
    const schema_node *root = schema_root(schema);
    assert_ptr_equal(hd_schema_source(schema).bits, schema->source.bits);
    assert_int_equal(root->flags & SCHEMA_BOUNDARY, 0);
    assert_int_equal(root->property_count, 6);
    assert_true(schema_node_property(root, "cell", 4)->flags & SCHEMA_CELL);
    assert_true(schema_node_property(root, "shape", 5)->flags & SCHEMA_SHALLOW);
    assert_true(schema_node_property(root, "all", 3)->flags & SCHEMA_ANYTHING);
    assert_null(schema_node_property(root, "other", 5));
    assert_null(schema_node_property(root, "x", 1)); /* only required: checked, not read */
    assert_true(schema_property_needed(schema_node_find(root, "x", 1)));
    assert_false(schema_property_needed(schema_node_find(root, "n", 1)));
    assert_int_equal(hd_value_as_int(schema_node_property(root, "n", 1)->default_value, 0), 4);
    const schema_node *items = schema_node_property(root, "list", 4);
    assert_int_equal(schema_node_items(items, 0)->types, SCHEMA_NULL);
    assert_ptr_equal(schema_node_items(items, 1)->body, root);
    hd_schema_close(schema);
    world_close(&w);
}

static void the_alternative_of_a_value_is_chosen(void **state) {
    world w = world_open();
    hd_schema *schema = compile(
        &w, "{'anyOf': [{'anyOf': [{'type': 'null'}, {'type': 'string'}]}, {'type': 'array'}]}");
    const schema_node *node;
    assert_int_equal(schema_choose(schema, schema_root(schema), json(&w, "'s'"), &node), HD_OK);
    assert_int_equal(node->types, SCHEMA_STRING);
    assert_int_equal(schema_choose(schema, schema_root(schema), json(&w, "[1]"), &node), HD_OK);
    assert_int_equal(node->types, SCHEMA_ARRAY);
    assert_int_equal(schema_choose(schema, node, json(&w, "3"), &node), HD_OK);
    assert_int_equal(node->types, SCHEMA_ARRAY); /* nothing to choose */
    assert_int_equal(schema_choose(schema, schema_root(schema), json(&w, "3"), &node), HD_OK);
    assert_null(node);
    hd_schema_close(schema);
    world_close(&w);
}

/* ---- Collecting -------------------------------------------------------------------------- */

struct collected {
    char text[1024];
    size_t most;
};

static bool collect_text(void *ctx, const schema_step *path, size_t depth,
                         const schema_node *node) {
    struct collected *c = ctx;
    for (size_t i = 0; i < depth; i++) {
        size_t used = strlen(c->text);
        char *out = c->text + used;
        size_t room = sizeof c->text - used;
        switch (path[i].kind) {
        case SCHEMA_STEP_KEY: snprintf(out, room, "/%s", path[i].key); break;
        case SCHEMA_STEP_INDEX: snprintf(out, room, "/%zu", path[i].index); break;
        case SCHEMA_STEP_EVERY_KEY: snprintf(out, room, "/*"); break;
        case SCHEMA_STEP_EVERY_INDEX: snprintf(out, room, "/%zu..", path[i].index); break;
        }
    }
    strcat(c->text, " ");
    return --c->most > 0;
}

static void assert_collects(const char *text, schema_flag brand, const char *paths) {
    world w = world_open();
    hd_schema *schema = compile(&w, text);
    struct collected c = { .most = 100 };
    assert_int_equal(schema_collect(schema, brand, collect_text, &c), HD_OK);
    assert_string_equal(c.text, paths);
    hd_schema_close(schema);
    world_close(&w);
}

/* C76: every cell-branded path is collected, stream-branded ones are not. */
static void cells_are_collected_in_every_shape(void **state) {
    const char *shapes =
        "{'properties': {'tuple': {'prefixItems': [{'asCell': true}, true, {'asStream': true}], "
        "'items': {'asCell': true}}, 'each': {'items': {'properties': {'c': {'asCell': true}}}}, "
        "'either': {'anyOf': [{'type': 'null'}, {'properties': {'x': {'asCell': true}}}]}, "
        "'extra': {'properties': {'plain': true}, 'additionalProperties': {'asCell': true}}, "
        "'stream': {'asStream': true}, 'plain': {'type': 'integer'}, 'ref': {'$ref': "
        "'#/$defs/cell'}, 'inner': {'asCell': true, 'properties': {'hidden': {'asCell': true}}}}, "
        "'$defs': {'cell': {'type': 'null', 'asCell': true}}}";
    assert_collects(shapes, SCHEMA_CELL,
                    "/each/0../c /either/x /extra/* /inner /ref /tuple/0 /tuple/3.. ");
    assert_collects(shapes, SCHEMA_STREAM, "/stream /tuple/2 ");
    assert_collects("{'asCell': true}", SCHEMA_CELL, " ");
}

/* C77: only streams are named: no cells, but it can be told that streams are there. */
static void streams_alone_give_no_cells(void **state) {
    const char *text =
        "{'properties': {'a': {'asStream': true}, 'b': {'items': {'asStream': true}}}}";
    assert_collects(text, SCHEMA_CELL, "");
    assert_collects(text, SCHEMA_STREAM, "/a /b/0.. ");
}

static void a_repeating_schema_gives_finitely_many_paths(void **state) {
    const char *text =
        "{'properties': {'child': {'$ref': '#'}, 'v': {'asCell': true}, 'w': {'$ref': "
        "'#/$defs/list'}}, '$defs': {'list': {'items': {'$ref': '#/$defs/list'}}}}";
    assert_collects(text, SCHEMA_CELL, "/child /v ");
    assert_collects(text, SCHEMA_STREAM, "");
}

static void a_collection_stops_when_told_or_when_there_is_too_much(void **state) {
    world w = world_open();
    hd_schema *schema =
        compile(&w, "{'properties': {'a': {'asCell': true}, 'b': {'asCell': true}}}");
    struct collected c = { .most = 1 };
    assert_int_equal(schema_collect_cells(schema, collect_text, &c), HD_OK);
    assert_string_equal(c.text, "/a ");
    hd_schema_close(schema);

    char text[4096] = "{'$ref': '#/$defs/d0', '$defs': {";
    for (int i = 0; i < 30; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "'d%d': {'prefixItems': [{'$ref': '#/$defs/d%d'}, {'$ref': '#/$defs/d%d'}]}, ", i,
                 i + 1, i + 1);
    strcat(text, "'d30': {'properties': {'s': {'asStream': true}}}}}");
    schema = compile(&w, text);
    c = (struct collected){ .most = 1 };
    assert_int_equal(schema_collect_cells(schema, collect_text, &c), HD_OK);
    assert_string_equal(c.text, "");
    c.most = 10;
    assert_int_equal(schema_collect_streams(schema, collect_text, &c), HD_OK);
    hd_schema_close(schema);
    world_close(&w);
}

static bool collect_nothing(void *ctx, const schema_step *path, size_t depth,
                            const schema_node *node) {
    return true;
}

static void too_many_paths_are_refused(void **state) {
    world w = world_open();
    char text[4096] = "{'$ref': '#/$defs/d0', '$defs': {";
    for (int i = 0; i < 30; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "'d%d': {'prefixItems': [{'$ref': '#/$defs/d%d'}, {'$ref': '#/$defs/d%d'}]}, ", i,
                 i + 1, i + 1);
    strcat(text, "'d30': {'asCell': true}}}");
    hd_schema *schema = compile(&w, text);
    assert_int_equal(schema_collect_cells(schema, collect_nothing, NULL), HD_LIMIT);
    hd_schema_close(schema);
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_read_keeps_the_named_properties),
        cmocka_unit_test(a_missing_required_property_fails_the_object),
        cmocka_unit_test(other_properties_are_kept_where_allowed),
        cmocka_unit_test(elements_are_projected_and_all_must_fit),
        cmocka_unit_test(defaults_fill_what_is_missing),
        cmocka_unit_test(boundaries_and_shallow_places_are_not_looked_into),
        cmocka_unit_test(the_first_alternative_that_fits_is_read),
        cmocka_unit_test(the_pool_holds_the_result),
        cmocka_unit_test(a_walk_asks_each_node_what_to_read),
        cmocka_unit_test(the_alternative_of_a_value_is_chosen),
        cmocka_unit_test(cells_are_collected_in_every_shape),
        cmocka_unit_test(streams_alone_give_no_cells),
        cmocka_unit_test(a_repeating_schema_gives_finitely_many_paths),
        cmocka_unit_test(a_collection_stops_when_told_or_when_there_is_too_much),
        cmocka_unit_test(too_many_paths_are_refused),
    };
    return cmocka_run_group_tests_name("schema, reading", tests, NULL, NULL);
}
