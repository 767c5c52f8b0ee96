/* test_schema.c -- schemas: what is refused, what matches, within which bounds. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include "schema_world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What is refused --------------------------------------------------------------------- */

static void a_wrong_schema_is_refused_with_its_path(void **state) {
    static const struct {
        const char *text, *path, *message;
    } cases[] = {
        { "3", "", "must be an object or a boolean, not int" },
        { "{'typo': 1}", "/typo", "unknown keyword \"typo\"" },
        { "{'properties': {'a': {'minimum': 1}}}", "/properties/a/minimum", "unknown keyword" },
        { "{'type': 'text'}", "/type", "unknown type \"text\"" },
        { "{'type': ['null', 'int']}", "/type/1", "unknown type \"int\"" },
        { "{'type': [7]}", "/type/0", "must be a string, not int" },
        { "{'type': []}", "/type", "at least one" },
        { "{'type': 7}", "/type", "must be a string or an array of strings, not int" },
        { "{'properties': []}", "/properties", "must be an object of schemas, not array" },
        { "{'properties': {'a/b': 1}}", "/properties/a~1b", "an object or a boolean" },
        { "{'required': 'a'}", "/required", "must be an array of strings" },
        { "{'required': ['a', 1]}", "/required/1", "must be a string, not int" },
        { "{'items': []}", "/items", "must be a schema or a boolean" },
        { "{'items': {'items': {'x': 1}}}", "/items/items/x", "unknown keyword" },
        { "{'prefixItems': [true, 1]}", "/prefixItems/1", "an object or a boolean" },
        { "{'additionalProperties': 'no'}", "/additionalProperties", "a schema or a boolean" },
        { "{'anyOf': []}", "/anyOf", "at least one" },
        { "{'anyOf': [{'type': 'x'}]}", "/anyOf/0/type", "unknown type" },
        { "{'enum': []}", "/enum", "at least one" },
        { "{'asCell': 1}", "/asCell", "must be a boolean" },
        { "{'asCell': true, 'asStream': true}", "/asStream", "exclude each other" },
        { "{'title': null}", "/title", "must be a string" },
        { "{'$defs': {'a': {'type': 1}}}", "/$defs/a/type", "must be" },
        { "{'$ref': '#/$defs/a'}", "/$ref", "there is no schema at \"#/$defs/a\"" },
        { "{'items': {'$ref': 'other.json'}}", "/items/$ref", "there is no schema" },
        { "{'$ref': '#x'}", "/$ref", "there is no schema" },
        { "{'$ref': '#/$defs', '$defs': {'a': true}}", "/$ref", "there is no schema" },
        { "{'$ref': '#/type', 'title': 'x'}", "/$ref", "there is no schema" },
        { "{'$ref': '#', 'type': 'null'}", "/type", "cannot stand beside $ref" },
        { "{'anyOf': [true], 'items': true}", "/items", "cannot stand beside anyOf" },
        { "{'$ref': '#'}", "", "without consuming any input" },
        { "{'items': {'anyOf': [{'type': 'null'}, {'$ref': '#/items'}]}}", "/items",
          "without consuming any input" },
        { "{'$ref': '#/$defs/a', '$defs': {'a': {'$ref': '#/$defs/b'}, 'b': {'$ref': "
          "'#/$defs/a'}}}",
          "/$defs/a", "without consuming any input" },
    };
    world w = world_open();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hd_schema *schema;
        hd_error error;
        hd_value source = json(&w, cases[i].text);
        assert_int_equal(hd_schema_compile(w.heap, source, &schema, &error), HD_SCHEMA);
        assert_null(schema);
        assert_int_equal(error.status, HD_SCHEMA);
        assert_string_equal(error.path, cases[i].path);
        if (!strstr(error.message, cases[i].message))
            fail_msg("%s: %s", cases[i].text, error.message);
        assert_int_equal(hd_schema_compile(w.heap, source, &schema, NULL), HD_SCHEMA);
    }
    world_close(&w);
}

static void what_is_no_value_is_no_schema(void **state) {
    world w = world_open();
    hd_schema *schema;
    hd_error error;
    assert_int_equal(hd_schema_compile(w.heap, (hd_value){ 0 }, &schema, &error), HD_SCHEMA);
    assert_int_equal(hd_schema_compile(w.heap, hd_failed(HD_RANGE), &schema, &error), HD_RANGE);
    assert_int_equal(error.status, HD_RANGE);
    hd_schema_close(NULL);
    world_close(&w);
}

/* {"items": {"items": ... }} */
static hd_value nest(world *w, const char *key, size_t levels, hd_value inner) {
    for (size_t i = 0; i < levels; i++) {
        if (key) inner = hd_object_set(w->pool, hd_object(), key, inner);
        else inner = hd_array_append(w->pool, hd_array(), inner);
    }
    return inner;
}

static void a_schema_nested_too_deep_is_refused(void **state) {
    world w = world_open();
    hd_schema *schema = NULL;
    hd_error error;
    hd_value deep = nest(&w, "items", 500, hd_object());
    assert_int_equal(hd_schema_compile(w.heap, deep, &schema, &error), HD_OK);
    hd_schema_close(schema);
    deep = nest(&w, "items", SCHEMA_DEPTH_MAX + 1, hd_object());
    if (hd_value_exists(deep)) {
        assert_int_equal(hd_schema_compile(w.heap, deep, &schema, &error), HD_SCHEMA);
        assert_string_equal(error.message, "nested too deep");
        assert_int_equal(strlen(error.path), sizeof error.path - 1);
        assert_string_equal(error.path + sizeof error.path - 4, "...");
    }
    world_close(&w);
}

/* Shared parts make a small value into a schema of 2^40 places. */
static void a_schema_with_too_many_parts_is_refused(void **state) {
    world w = world_open();
    hd_schema *schema;
    hd_error error;
    hd_value v = hd_object();
    for (int i = 0; i < 40; i++) {
        hd_value pair[2] = { v, v };
        v = hd_object_set(w.pool, hd_object(), "prefixItems", hd_array_of(w.pool, pair, 2));
    }
    assert_int_equal(hd_schema_compile(w.heap, v, &schema, &error), HD_SCHEMA);
    assert_string_equal(error.message, "too many schemas");
    world_close(&w);
}

/* ---- What matches ------------------------------------------------------------------------ */

/* Values, by what a schema makes of them: each either matches or fails at a path. */
struct expectation {
    const char *value, *path, *message; /* path NULL: matches */
};

static void assert_validates(const char *text, const struct expectation *cases, size_t count) {
    world w = world_open();
    hd_schema *schema = compile(&w, text);
    for (size_t i = 0; i < count; i++) {
        hd_error error = { 0 };
        hd_value v = json(&w, cases[i].value);
        hd_status status = hd_schema_validate(schema, v, &error);
        assert_int_equal(hd_schema_validate(schema, v, NULL), status);
        if (status != (cases[i].path ? HD_MISMATCH : HD_OK))
            fail_msg("%s on %s: %s", text, cases[i].value, hd_status_name(status));
        if (!cases[i].path) continue;
        assert_int_equal(error.status, HD_MISMATCH);
        assert_string_equal(error.path, cases[i].path);
        if (!strstr(error.message, cases[i].message))
            fail_msg("%s on %s: %s", text, cases[i].value, error.message);
    }
    hd_schema_close(schema);
    world_close(&w);
}
#define VALIDATES(text, ...)                                                                       \
    assert_validates(text, (const struct expectation[]){ __VA_ARGS__ },                            \
                     sizeof((const struct expectation[]){ __VA_ARGS__ }) /                         \
                         sizeof(struct expectation))

static void each_type_matches_its_own_kind(void **state) {
    static const char *const types[] = { "null",   "boolean", "integer", "number",
                                         "string", "bytes",   "array",   "object" };
    static const struct {
        const char *value;
        unsigned matches; /* bit i: types[i] */
    } values[] = {
        { "null", 1 },  { "true", 2 },       { "7", 12 },    { "9223372036854775807", 12 },
        { "2.0", 12 },  { "2.5", 8 },        { "1e300", 8 }, { "'s'", 16 },
        { "[1]", 64 },  { "{'a': 1}", 128 }, { "[]", 64 },   { "{'$link': {'id': 'x'}}", 255 },
        { "-0.0", 12 },
    };
    world w = world_open();
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        char text[64];
        snprintf(text, sizeof text, "{'type': '%s'}", types[t]);
        hd_schema *schema = compile(&w, text);
        for (size_t i = 0; i < sizeof values / sizeof *values; i++)
            assert_int_equal(hd_schema_validate(schema, json(&w, values[i].value), NULL) == HD_OK,
                             values[i].matches >> t & 1);
        hd_value bytes = hd_bytes(w.pool, "b", 1);
        assert_int_equal(hd_schema_validate(schema, bytes, NULL) == HD_OK, t == 5);
        hd_schema_close(schema);
    }
    world_close(&w);
}

static void a_type_list_is_named_in_the_message(void **state) {
    VALIDATES("{'type': ['string', 'null', 'number']}", { "'x'", NULL, "" }, { "null", NULL, "" },
              { "1.5", NULL, "" }, { "[]", "", "expected null, number or string, found array" });
    VALIDATES("{'type': 'link'}", { "{'$link': {'id': 'a'}}", NULL, "" },
              { "1", "", "expected link, found int" });
    VALIDATES("true", { "1", NULL, "" }, { "{}", NULL, "" });
    VALIDATES("false", { "1", "", "expected nothing, found int" },
              { "{'$link': {'id': 'a'}}", "", "expected nothing" });
}

static void properties_are_checked_and_required_ones_must_be_there(void **state) {
    const char *text = "{'type': 'object', 'properties': {'a': {'type': 'integer'}, 'b': {'type': "
                       "'string'}}, 'required': ['a', 'z']}";
    VALIDATES(text, { "{'a': 1, 'z': null}", NULL, "" },
              { "{'a': 1, 'b': 's', 'c': [], 'z': 1}", NULL, "" },
              { "{'b': 's', 'z': 1}", "", "\"a\" is missing" },
              { "{'a': 1}", "", "\"z\" is missing" },
              { "{'a': 1, 'b': 2, 'z': 1}", "/b", "expected string, found int" });
}

static void other_properties_follow_their_own_schema(void **state) {
    VALIDATES("{'properties': {'a': true}, 'additionalProperties': false}",
              { "{'a': 1}", NULL, "" },
              { "{'a': 1, 'x/y': 2}", "/x~1y", "\"x/y\" is not among the properties" });
    VALIDATES("{'properties': {'a': true}, 'additionalProperties': {'type': 'null'}}",
              { "{'a': 1, 'b': null}", NULL, "" },
              { "{'a': 1, 'b': 2}", "/b", "expected null, found int" });
    VALIDATES("{'required': ['q'], 'additionalProperties': {'type': 'null'}}",
              { "{'q': null}", NULL, "" }, { "{'q': 1}", "/q", "expected null" });
}

static void elements_are_checked_by_place(void **state) {
    VALIDATES("{'items': {'type': 'integer'}}", { "[1, 2]", NULL, "" }, { "{}", NULL, "" },
              { "[1, 'x']", "/1", "expected integer, found string" });
    VALIDATES("{'prefixItems': [{'type': 'string'}, {'type': 'null'}], 'items': false}",
              { "['a']", NULL, "" }, { "['a', null]", NULL, "" },
              { "['a', 1]", "/1", "expected null" },
              { "['a', null, 1]", "/2", "expected nothing" });
    VALIDATES("{'prefixItems': [{'type': 'string'}]}", { "['a', 1, {}]", NULL, "" },
              { "[[]]", "/0", "expected string, found array" });
}

static void enum_and_const_compare_values(void **state) {
    VALIDATES("{'enum': [1, 'a', {'k': [null]}]}", { "1", NULL, "" }, { "{'k': [null]}", NULL, "" },
              { "1.0", "", "is none of the 3 values allowed" });
    VALIDATES("{'properties': {'k': {'const': 'v'}}}", { "{'k': 'v'}", NULL, "" },
              { "{'k': 'w'}", "/k", "is not the one value allowed" });
}

static void one_alternative_is_enough(void **state) {
    VALIDATES("{'items': {'anyOf': [{'type': 'string'}, {'properties': {'n': {'type': 'null'}}, "
              "'required': ['n'], 'type': 'object'}]}}",
              { "['a', {'n': null}]", NULL, "" },
              { "['a', 1]", "/1", "matches none of the 2 alternatives" },
              /* only one alternative is for objects: it says what is wrong */
              { "[{'n': 1}]", "/0/n", "expected null, found int" },
              { "[{}]", "/0", "\"n\" is missing" });
    VALIDATES("{'type': 'string', 'anyOf': [{'const': 'a'}, {'const': 1}]}", { "'a'", NULL, "" },
              { "1", "", "expected string" });
}

static void recursive_schemas_match_recursive_values(void **state) {
    const char *tree =
        "{'$ref': '#/$defs/tree', '$defs': {'tree': {'type': 'object', 'properties': "
        "{'left': {'$ref': '#/$defs/tree'}, 'right': {'$ref': '#/$defs/tree'}, 'v': "
        "{'$ref': '#/$defs/n~1m'}}, 'required': ['v']}, 'n/m': {'type': 'integer'}}}";
    VALIDATES(
        tree, { "{'v': 1}", NULL, "" },
        { "{'v': 1, 'left': {'v': 2, 'right': {'v': 3}}}", NULL, "" },
        { "{'v': 1, 'left': {'v': 2, 'right': {'v': 'x'}}}", "/left/right/v", "expected integer" },
        { "{'v': 1, 'left': {'right': {'v': 1}}}", "/left", "\"v\" is missing" });
    VALIDATES("{'properties': {'a': {'items': {'type': 'null'}}, 'b': {'$ref': "
              "'#/properties/a/items'}}}",
              { "{'b': null}", NULL, "" }, { "{'b': 1}", "/b", "expected null" });
}

static void boundaries_are_checked_streams_are_not(void **state) {
    VALIDATES("{'properties': {'c': {'type': 'null', 'asCell': true}, 's': {'type': 'null', "
              "'asStream': true}}, 'required': ['s']}",
              { "{'c': {'$link': {'id': 'a'}}, 's': 7}", NULL, "" }, { "{}", NULL, "" },
              { "{'c': 1}", "/c", "expected null" });
    VALIDATES("{'properties': {'d': {'type': 'integer', 'default': 3}}, 'required': ['d']}",
              { "{}", NULL, "" }, { "{'d': 's'}", "/d", "expected integer" });
}

static void what_is_no_value_does_not_match(void **state) {
    world w = world_open();
    hd_schema *schema = compile(&w, "{'type': 'null'}");
    hd_error error;
    assert_int_equal(hd_schema_validate(schema, (hd_value){ 0 }, &error), HD_MISMATCH);
    assert_string_equal(error.message, "there is no value");
    assert_int_equal(hd_schema_validate(schema, hd_failed(HD_RANGE), &error), HD_RANGE);
    assert_int_equal(error.status, HD_RANGE);
    assert_int_equal(hd_value_kind(hd_schema_project(w.pool, schema, hd_failed(HD_RANGE))),
                     HD_KIND_FAILED);
    hd_schema_close(schema);
    world_close(&w);
}

/* ---- Bounds ------------------------------------------------------------------------------ */

/* Each level is tried with two alternatives that fail only at the bottom: 2^300 tries without a
 * memory of what was decided. */
static void alternatives_do_not_multiply(void **state) {
    const char *text =
        "{'anyOf': [{'type': 'object', 'properties': {'a': {'$ref': '#'}}, 'required': ['a']}, "
        "{'type': 'object', 'properties': {'a': {'$ref': '#'}, 'b': true}, 'required': ['a']}, "
        "{'type': 'integer'}]}";
    world w = world_open();
    hd_schema *schema = compile(&w, text);
    hd_value good = nest(&w, "a", 300, hd_int(w.pool, 1));
    hd_value bad = nest(&w, "a", 300, hd_string(w.pool, "x"));
    assert_int_equal(hd_schema_validate(schema, good, NULL), HD_OK);
    assert_int_equal(hd_schema_project(w.pool, schema, good).bits, good.bits);
    hd_error error;
    assert_int_equal(hd_schema_validate(schema, bad, &error), HD_MISMATCH);
    assert_false(hd_value_exists(hd_schema_project(w.pool, schema, bad)));
    hd_schema_close(schema);
    world_close(&w);
}

/* Nor do alternatives of alternatives, where there is nothing inside of the value to remember. */
static void alternatives_of_a_number_do_not_multiply(void **state) {
    char text[8192];
    size_t n = (size_t)snprintf(text, sizeof text, "{'$ref': '#/$defs/a0', '$defs': {");
    for (int i = 0; i < 60; i++)
        n += (size_t)snprintf(
            text + n, sizeof text - n,
            "'a%d': {'anyOf': [{'$ref': '#/$defs/a%d'}, {'$ref': '#/$defs/a%d'}]}, ", i, i + 1,
            i + 1);
    snprintf(text + n, sizeof text - n, "'a60': {'type': 'string'}}}");
    world w = world_open();
    hd_schema *schema = compile(&w, text);
    assert_int_equal(hd_schema_validate(schema, hd_int(w.pool, 5), NULL), HD_MISMATCH);
    assert_int_equal(hd_schema_validate(schema, json(&w, "'x'"), NULL), HD_OK);
    assert_true(value_is_absent(hd_schema_project(w.pool, schema, json(&w, "[]"))));
    hd_schema_close(schema);
    world_close(&w);
}

static void values_as_deep_as_they_come_are_matched(void **state) {
    world w = world_open();
    hd_schema *schema =
        compile(&w, "{'anyOf': [{'type': 'array', 'items': {'$ref': '#'}}, {'type': 'null'}]}");
    hd_value v = nest(&w, NULL, 511, hd_null());
    assert_true(hd_value_exists(v));
    assert_int_equal(hd_schema_validate(schema, v, NULL), HD_OK);
    assert_int_equal(hd_schema_project(w.pool, schema, v).bits, v.bits);
    hd_schema_close(schema);
    world_close(&w);
}

/* A chain of alternatives that consume nothing: legal, but longer than the matcher goes. */
static void a_chain_of_alternatives_beyond_the_limit_says_so(void **state) {
    world w = world_open();
    hd_value defs = hd_object();
    const int links = SCHEMA_FRAMES_MAX + 10;
    for (int i = 0; i < links; i++) {
        char name[16];
        hd_value ref = hd_string_f(w.pool, "#/$defs/d%d", i + 1);
        hd_value alternative = hd_object_set(w.pool, hd_object(), "$ref", ref);
        hd_value any = hd_array_append(w.pool, hd_array(), alternative);
        snprintf(name, sizeof name, "d%d", i);
        hd_value def = i + 1 < links ? hd_object_set(w.pool, hd_object(), "anyOf", any)
                                     : json(&w, "{'type': 'null'}");
        defs = hd_object_set(w.pool, defs, name, def);
    }
    hd_value source = json(&w, "{'$ref': '#/$defs/d0'}");
    source = hd_object_set(w.pool, source, "$defs", defs);
    hd_schema *schema;
    hd_error error;
    assert_int_equal(hd_schema_compile(w.heap, source, &schema, &error), HD_OK);
    assert_int_equal(hd_schema_validate(schema, hd_null(), &error), HD_LIMIT);
    assert_int_equal(error.status, HD_LIMIT);
    assert_int_equal(hd_value_status(hd_schema_project(w.pool, schema, hd_null())), HD_LIMIT);
    hd_schema_close(schema);
    world_close(&w);
}

/* ---- No memory --------------------------------------------------------------------------- */

static hd_status use_schema(hd_heap *heap, hd_pool *pool) {
    static const char schema_text[] =
        "{\"properties\": {\"a\": {\"anyOf\": [{\"items\": {\"$$ref\": \"#\"}, \"type\": "
        "\"array\"}, "
        "{\"properties\": {\"b\": {\"default\": 1}}, \"type\": \"object\"}]}}, \"required\": "
        "[\"q\"], "
        "\"$$defs\": {\"x\": {\"prefixItems\": [true, {\"asCell\": true}]}}}";
    static const char value_text[] =
        "{\"a\": [{\"q\": 1, \"a\": {}}, {\"q\": 2, \"z\": 1}], \"q\": 3}";
    hd_value source = hd_json_parse(pool, schema_text, sizeof schema_text - 1, NULL);
    hd_value v = hd_json_parse(pool, value_text, sizeof value_text - 1, NULL);
    if (!hd_value_exists(source)) return hd_value_status(source);
    if (!hd_value_exists(v)) return hd_value_status(v);
    hd_schema *schema;
    hd_error error;
    hd_status status = hd_schema_compile(heap, source, &schema, &error);
    if (!status) status = hd_schema_validate(schema, v, &error);
    if (!status) status = hd_value_status(hd_schema_project(pool, schema, v));
    hd_schema_close(schema);
    return status;
}

static void schema_in_little_memory(lab_env *env, void *ctx) {
    hd_heap *heap = NULL;
    hd_pool *pool = NULL;
    hd_status status = hd_heap_open(lab_env_of(env), NULL, &heap);
    if (!status) status = hd_pool_open(heap, &pool);
    if (!status) status = use_schema(heap, pool);
    assert_int_equal(status, lab_env_failed(env) ? status : HD_OK);
    assert_true(status == HD_OK || status == HD_NOMEM);
    if (pool) hd_pool_close(pool);
    if (heap) hd_heap_close(heap);
}

static void every_failed_allocation_is_survived(void **state) {
    assert_true(lab_each_allocation_failure(schema_in_little_memory, NULL) > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_schema_is_refused_with_its_path),
        cmocka_unit_test(what_is_no_value_is_no_schema),
        cmocka_unit_test(a_schema_nested_too_deep_is_refused),
        cmocka_unit_test(a_schema_with_too_many_parts_is_refused),
        cmocka_unit_test(each_type_matches_its_own_kind),
        cmocka_unit_test(a_type_list_is_named_in_the_message),
        cmocka_unit_test(properties_are_checked_and_required_ones_must_be_there),
        cmocka_unit_test(other_properties_follow_their_own_schema),
        cmocka_unit_test(elements_are_checked_by_place),
        cmocka_unit_test(enum_and_const_compare_values),
        cmocka_unit_test(one_alternative_is_enough),
        cmocka_unit_test(recursive_schemas_match_recursive_values),
        cmocka_unit_test(boundaries_are_checked_streams_are_not),
        cmocka_unit_test(what_is_no_value_does_not_match),
        cmocka_unit_test(alternatives_do_not_multiply),
        cmocka_unit_test(alternatives_of_a_number_do_not_multiply),
        cmocka_unit_test(values_as_deep_as_they_come_are_matched),
        cmocka_unit_test(a_chain_of_alternatives_beyond_the_limit_says_so),
        cmocka_unit_test(every_failed_allocation_is_survived),
    };
    return cmocka_run_group_tests_name("schema", tests, NULL, NULL);
}
