/* Schemas: what is refused, what matches, what a read keeps, where its boundaries are.
 *
 * Schemas and values are written with ' for ". A key of the schema that begins with $ is written
 * so, and doubled on the way to the parser. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include "lab.h"
#include "value/schema.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- A small world ----------------------------------------------------------------------- */

struct world {
    lab_env *env;
    hd_heap *heap;
    hd_pool *pool;
};

static void world_open(struct world *w) {
    w->env = lab_env_open();
    assert_int_equal(hd_heap_open(lab_env_of(w->env), NULL, &w->heap), HD_OK);
    assert_int_equal(hd_pool_open(w->heap, &w->pool), HD_OK);
}

static void world_close(struct world *w) {
    hd_pool_close(w->pool);
    hd_heap_close(w->heap);
    lab_env_close(w->env);
}

static hd_value json(struct world *w, const char *text) {
    char out[8192];
    size_t n = 0;
    for (const char *c = text; *c; c++) {
        assert_true(n + 2 < sizeof out);
        out[n++] = *c == '\'' ? '"' : *c;
        if (c[0] == '\'' && c[1] == '$' && strncmp(c, "'$link'", 7) != 0) out[n++] = '$';
    }
    hd_error error;
    hd_value v = hd_json_parse(w->pool, out, n, &error);
    if (!hd_value_exists(v)) fail_msg("%s: %s", text, error.message);
    return v;
}

static hd_schema *compile(struct world *w, const char *text) {
    hd_schema *schema;
    hd_error error;
    if (hd_schema_compile(w->heap, json(w, text), &schema, &error))
        fail_msg("%s: %s: %s", text, error.path, error.message);
    return schema;
}

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
    struct world w;
    world_open(&w);
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
    struct world w;
    world_open(&w);
    hd_schema *schema;
    hd_error error;
    assert_int_equal(hd_schema_compile(w.heap, (hd_value){ 0 }, &schema, &error), HD_SCHEMA);
    assert_int_equal(hd_schema_compile(w.heap, hd_failed(HD_RANGE), &schema, &error), HD_RANGE);
    assert_int_equal(error.status, HD_RANGE);
    hd_schema_free(NULL);
    world_close(&w);
}

/* {"items": {"items": ... }} */
static hd_value nest(struct world *w, const char *key, size_t levels, hd_value inner) {
    for (size_t i = 0; i < levels; i++) {
        if (key) inner = hd_object_set(w->pool, hd_object(), key, inner);
        else inner = hd_array_append(w->pool, hd_array(), inner);
    }
    return inner;
}

static void a_schema_nested_too_deep_is_refused(void **state) {
    struct world w;
    world_open(&w);
    hd_schema *schema = NULL;
    hd_error error;
    hd_value deep = nest(&w, "items", 500, hd_object());
    assert_int_equal(hd_schema_compile(w.heap, deep, &schema, &error), HD_OK);
    hd_schema_free(schema);
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
    struct world w;
    world_open(&w);
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
    struct world w;
    world_open(&w);
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
    hd_schema_free(schema);
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
    struct world w;
    world_open(&w);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        char text[64];
        snprintf(text, sizeof text, "{'type': '%s'}", types[t]);
        hd_schema *schema = compile(&w, text);
        for (size_t i = 0; i < sizeof values / sizeof *values; i++)
            assert_int_equal(hd_schema_validate(schema, json(&w, values[i].value), NULL) == HD_OK,
                             values[i].matches >> t & 1);
        hd_value bytes = hd_bytes(w.pool, "b", 1);
        assert_int_equal(hd_schema_validate(schema, bytes, NULL) == HD_OK, t == 5);
        hd_schema_free(schema);
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
    struct world w;
    world_open(&w);
    hd_schema *schema = compile(&w, "{'type': 'null'}");
    hd_error error;
    assert_int_equal(hd_schema_validate(schema, (hd_value){ 0 }, &error), HD_MISMATCH);
    assert_string_equal(error.message, "there is no value");
    assert_int_equal(hd_schema_validate(schema, hd_failed(HD_RANGE), &error), HD_RANGE);
    assert_int_equal(error.status, HD_RANGE);
    assert_int_equal(hd_value_kind(hd_schema_project(w.pool, schema, hd_failed(HD_RANGE))),
                     HD_KIND_FAILED);
    hd_schema_free(schema);
    world_close(&w);
}

/* ---- What a read keeps ------------------------------------------------------------------- */

struct projection {
    const char *value, *result; /* result NULL: absent */
};

static void assert_projects(const char *text, const struct projection *cases, size_t count) {
    struct world w;
    world_open(&w);
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
    hd_schema_free(schema);
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
    struct world w;
    world_open(&w);
    hd_schema *schema =
        compile(&w, "{'properties': {'a': {'default': 'long enough for a block'}}}");
    hd_pool *other;
    assert_int_equal(hd_pool_open(w.heap, &other), HD_OK);
    hd_value text = hd_schema_project(other, schema, hd_object());
    hd_schema_free(schema);
    hd_pool_clear(w.pool);
    assert_string_equal(hd_value_as_text(hd_value_at(text, "a"), ""), "long enough for a block");
    hd_pool_close(other);
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
    struct world w;
    world_open(&w);
    hd_schema *schema = compile(&w, text);
    hd_value good = nest(&w, "a", 300, hd_int(w.pool, 1));
    hd_value bad = nest(&w, "a", 300, hd_string(w.pool, "x"));
    assert_int_equal(hd_schema_validate(schema, good, NULL), HD_OK);
    assert_int_equal(hd_schema_project(w.pool, schema, good).bits, good.bits);
    hd_error error;
    assert_int_equal(hd_schema_validate(schema, bad, &error), HD_MISMATCH);
    assert_false(hd_value_exists(hd_schema_project(w.pool, schema, bad)));
    hd_schema_free(schema);
    world_close(&w);
}

static void values_as_deep_as_they_come_are_matched(void **state) {
    struct world w;
    world_open(&w);
    hd_schema *schema =
        compile(&w, "{'anyOf': [{'type': 'array', 'items': {'$ref': '#'}}, {'type': 'null'}]}");
    hd_value v = nest(&w, NULL, 511, hd_null());
    assert_true(hd_value_exists(v));
    assert_int_equal(hd_schema_validate(schema, v, NULL), HD_OK);
    assert_int_equal(hd_schema_project(w.pool, schema, v).bits, v.bits);
    hd_schema_free(schema);
    world_close(&w);
}

/* A chain of alternatives that consume nothing: legal, but longer than the matcher goes. */
static void a_chain_of_alternatives_beyond_the_limit_says_so(void **state) {
    struct world w;
    world_open(&w);
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
    hd_schema_free(schema);
    world_close(&w);
}

/* ---- Walking ----------------------------------------------------------------------------- */

static void a_walk_asks_each_node_what_to_read(void **state) {
    struct world w;
    world_open(&w);
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
    assert_true(items->reach & SCHEMA_CELL);
    assert_false(root->reach & SCHEMA_STREAM);
    hd_schema_free(schema);
    world_close(&w);
}

static void the_alternative_of_a_value_is_chosen(void **state) {
    struct world w;
    world_open(&w);
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
    hd_schema_free(schema);
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
    struct world w;
    world_open(&w);
    hd_schema *schema = compile(&w, text);
    struct collected c = { .most = 100 };
    assert_int_equal(schema_collect(schema, brand, collect_text, &c), HD_OK);
    assert_string_equal(c.text, paths);
    hd_schema_free(schema);
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
    struct world w;
    world_open(&w);
    hd_schema *schema =
        compile(&w, "{'properties': {'a': {'asCell': true}, 'b': {'asCell': true}}}");
    struct collected c = { .most = 1 };
    assert_int_equal(schema_collect_cells(schema, collect_text, &c), HD_OK);
    assert_string_equal(c.text, "/a ");
    hd_schema_free(schema);

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
    hd_schema_free(schema);
    world_close(&w);
}

static bool collect_nothing(void *ctx, const schema_step *path, size_t depth,
                            const schema_node *node) {
    return true;
}

static void too_many_paths_are_refused(void **state) {
    struct world w;
    world_open(&w);
    char text[4096] = "{'$ref': '#/$defs/d0', '$defs': {";
    for (int i = 0; i < 30; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "'d%d': {'prefixItems': [{'$ref': '#/$defs/d%d'}, {'$ref': '#/$defs/d%d'}]}, ", i,
                 i + 1, i + 1);
    strcat(text, "'d30': {'asCell': true}}}");
    hd_schema *schema = compile(&w, text);
    assert_int_equal(schema_collect_cells(schema, collect_nothing, NULL), HD_LIMIT);
    hd_schema_free(schema);
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
    hd_schema_free(schema);
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

/* ---- Against a naive reading of the schema ----------------------------------------------- */

/* The model works on the source itself, tries everything, and remembers nothing. */

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

static hd_value random_value(struct world *w, lab_random *r, int depth) {
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

static hd_value random_schema(struct world *w, lab_random *r, int depth, bool may_refer);

static hd_value random_map(struct world *w, lab_random *r, int depth) {
    hd_value map = hd_object();
    for (uint64_t i = lab_random_below(r, 4); i > 0; i--)
        map = hd_object_set(w->pool, map, names[lab_random_below(r, 4)],
                            random_schema(w, r, depth, true));
    return map;
}

static hd_value random_array(struct world *w, lab_random *r, int depth, bool may_refer) {
    hd_value array = hd_array();
    for (uint64_t i = lab_random_below(r, 3) + 1; i > 0; i--)
        array = hd_array_append(w->pool, array, random_schema(w, r, depth, may_refer));
    return array;
}

static hd_value set(struct world *w, hd_value s, const char *key, hd_value v) {
    return hd_object_set(w->pool, s, key, v);
}

static hd_value random_brands(struct world *w, lab_random *r, hd_value s) {
    if (lab_random_once_in(r, 12)) s = set(w, s, "asCell", hd_bool(true));
    else if (lab_random_once_in(r, 20)) s = set(w, s, "asStream", hd_bool(true));
    if (lab_random_once_in(r, 20)) s = set(w, s, "shallow", hd_bool(true));
    if (lab_random_once_in(r, 8)) s = set(w, s, "default", random_value(w, r, 1));
    return s;
}

static hd_value random_object_part(struct world *w, lab_random *r, int depth, hd_value s) {
    if (lab_random_below(r, 3)) s = set(w, s, "properties", random_map(w, r, depth - 1));
    if (lab_random_once_in(r, 3))
        s = set(w, s, "additionalProperties", random_schema(w, r, depth - 1, true));
    hd_value required = hd_array();
    while (lab_random_once_in(r, 3))
        required =
            hd_array_append(w->pool, required, hd_string(w->pool, names[lab_random_below(r, 4)]));
    return hd_value_count(required) ? set(w, s, "required", required) : s;
}

static hd_value random_array_part(struct world *w, lab_random *r, int depth, hd_value s) {
    if (lab_random_once_in(r, 2)) s = set(w, s, "items", random_schema(w, r, depth - 1, true));
    if (lab_random_once_in(r, 3)) s = set(w, s, "prefixItems", random_array(w, r, depth - 1, true));
    return s;
}

/* Only a schema that consumes something may refer to the root, or there would be empty cycles. */
static hd_value random_schema(struct world *w, lab_random *r, int depth, bool may_refer) {
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

static hd_value random_root(struct world *w, lab_random *r) {
    hd_value root = random_schema(w, r, 3, false);
    if (hd_value_kind(root) != HD_KIND_OBJECT) return root;
    hd_value defs = set(w, hd_object(), "a", random_schema(w, r, 2, false));
    defs = set(w, defs, "b", random_schema(w, r, 2, false));
    return set(w, root, "$defs", defs);
}

static void compare_with_model(struct world *w, const hd_schema *schema, hd_value root,
                               hd_value v) {
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
    struct world w;
    world_open(&w);
    lab_random r = lab_random_of(lab_seed());
    for (int round = 0; round < 6000; round++) {
        hd_schema *schema;
        hd_error error;
        hd_value root = random_root(&w, &r);
        if (hd_schema_compile(w.heap, root, &schema, &error))
            fail_msg("%s: %s in %s", error.path, error.message,
                     hd_json_print(w.pool, root, HD_JSON_COMPACT, NULL));
        for (int i = 0; i < 20; i++) compare_with_model(&w, schema, root, random_value(&w, &r, 3));
        hd_schema_free(schema);
        hd_pool_clear(w.pool);
    }
    world_close(&w);
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
        cmocka_unit_test(a_read_keeps_the_named_properties),
        cmocka_unit_test(a_missing_required_property_fails_the_object),
        cmocka_unit_test(other_properties_are_kept_where_allowed),
        cmocka_unit_test(elements_are_projected_and_all_must_fit),
        cmocka_unit_test(defaults_fill_what_is_missing),
        cmocka_unit_test(boundaries_and_shallow_places_are_not_looked_into),
        cmocka_unit_test(the_first_alternative_that_fits_is_read),
        cmocka_unit_test(the_pool_holds_the_result),
        cmocka_unit_test(alternatives_do_not_multiply),
        cmocka_unit_test(values_as_deep_as_they_come_are_matched),
        cmocka_unit_test(a_chain_of_alternatives_beyond_the_limit_says_so),
        cmocka_unit_test(a_walk_asks_each_node_what_to_read),
        cmocka_unit_test(the_alternative_of_a_value_is_chosen),
        cmocka_unit_test(cells_are_collected_in_every_shape),
        cmocka_unit_test(streams_alone_give_no_cells),
        cmocka_unit_test(a_repeating_schema_gives_finitely_many_paths),
        cmocka_unit_test(a_collection_stops_when_told_or_when_there_is_too_much),
        cmocka_unit_test(too_many_paths_are_refused),
        cmocka_unit_test(every_failed_allocation_is_survived),
        cmocka_unit_test(random_schemas_agree_with_a_naive_reading),
    };
    return cmocka_run_group_tests_name("schema", tests, NULL, NULL);
}
