/* test_skipped.c -- commits that a node does not hear of: its own, and those of its change group (P5). What it
 * reads may be elsewhere after such a commit; it must hear of what changes there. From the public headers. */
#include <heddle.h>
#include <heddle/lab.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { OWN = 7 };

static hd_lab *lab;
static hd_runtime *rt;
static char shown[256];

static int start(void **state) {
    lab = hd_lab_open(NULL);
    rt = hd_lab_runtime(lab, "main");
    shown[0] = 0;
    return 0;
}
static int finish(void **state) {
    hd_lab_close(lab);
    return 0;
}
#define T(name) cmocka_unit_test_setup_teardown(name, start, finish)

static hd_cell at(const char *name) { return hd_cell_at(rt, name); }

static void note(const char *text) {
    size_t length = strlen(shown);
    snprintf(shown + length, sizeof shown - length, "%s%s", length ? " " : "", text);
}
static void show(hd_value v, void *ctx) {
    hd_pool *pool;
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    note(hd_value_exists(v) ? hd_json_print(pool, v, HD_JSON_COMPACT, NULL) : "-");
    hd_pool_close(pool);
}
static void expect_shown(const char *text) {
    hd_lab_settle(lab);
    assert_string_equal(shown, text);
    shown[0] = 0;
}

/* Writes in a group: JSON, or with `to` a link. */
static void write_in(uint64_t group, const char *cell, const char *json, const char *to) {
    hd_tx *tx;
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    hd_tx_set_group(tx, group);
    if (to)
        assert_int_equal(hd_tx_set(tx, at(cell), hd_cell_link(rt, hd_tx_pool(tx), at(to))), HD_OK);
    else assert_int_equal(hd_tx_set_json(tx, at(cell), json), HD_OK);
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
}

static void sink_in_group(const char *cell) {
    hd_sink_spec spec = { .name = "editor", .cell = at(cell), .fn = show, .group = OWN };
    assert_int_equal(hd_sink_register(rt, &spec, NULL), HD_OK);
}

/* C367: the group's own link leads elsewhere: the sink is told what changes there, by others. */
static void a_link_of_the_group_leads_the_sink_elsewhere(void **state) {
    hd_lab_set(rt, "main/a", "{\"v\": 1}");
    hd_lab_set(rt, "main/b", "{\"v\": 2}");
    hd_lab_set(rt, "main/c", "{\"v\": 3}");
    sink_in_group("main/a#/v");
    expect_shown("1");
    write_in(OWN, "main/a", NULL, "main/b");
    expect_shown("");
    hd_lab_set(rt, "main/b", "{\"v\": 20}");
    expect_shown("20");
    write_in(OWN, "main/b#/v", "21", NULL);
    expect_shown("");
    write_in(OWN, "main/a", NULL, "main/c");
    expect_shown("");
    hd_lab_set(rt, "main/c#/v", "30");
    expect_shown("30");
    write_in(OWN, "main/c#/v", NULL, "main/d");
    expect_shown("");
    hd_lab_set(rt, "main/d", "4");
    expect_shown("4");
    write_in(OWN, "main/a", "{\"v\": 5}", NULL);
    expect_shown("");
    hd_lab_set(rt, "main/d", "40");
    expect_shown("");
    write_in(OWN, "main/a", "{\"v\": 6}", NULL);
    expect_shown("");
    hd_lab_set(rt, "main/a#/v", "7");
    expect_shown("7");
}

/* Another's change is told also where the group's commits have marked the sink before. */
static void what_others_write_is_told_beside_own_edits(void **state) {
    hd_lab_set(rt, "main/a", "{\"v\": 1}");
    sink_in_group("main/a#/v");
    expect_shown("1");
    write_in(OWN, "main/a#/v", "2", NULL);
    hd_lab_set(rt, "main/a#/v", "3");
    expect_shown("3");
    hd_lab_set(rt, "main/a#/v", "4");
    write_in(OWN, "main/a#/v", "5", NULL);
    expect_shown("5");
    write_in(OWN, "main/a#/v", "6", NULL);
    expect_shown("");
}

static hd_status show_v(hd_tx *tx, void *ctx) {
    hd_value v = hd_tx_get(tx, at("main/a#/v"));
    if (hd_value_status(v)) return hd_value_status(v);
    show(v, NULL);
    return HD_OK;
}

/* C367: an effect of the group runs when the group puts a link on its way, and for nothing else of it. */
static void a_link_of_the_group_leads_an_effect_elsewhere(void **state) {
    hd_lab_set(rt, "main/a", "{\"v\": 1}");
    hd_lab_set(rt, "main/b", "{\"v\": 2}");
    hd_node_spec spec = { .name = "editor", .fn = show_v, .effect = true, .group = OWN };
    assert_int_equal(hd_node_register(rt, &spec, NULL), HD_OK);
    expect_shown("1");
    write_in(OWN, "main/a", "{\"v\": 9}", NULL);
    expect_shown("");
    write_in(OWN, "main/a", NULL, "main/b");
    expect_shown("2");
    hd_lab_set(rt, "main/b#/v", "3");
    expect_shown("3");
    write_in(OWN, "main/a", "{\"v\": 4}", NULL);
    expect_shown("4");
    hd_lab_set(rt, "main/a#/v", "5");
    expect_shown("5");
}

/* ---- its own commit */

static hd_status link_then_copy(hd_tx *tx, void *ctx) {
    hd_value v = hd_tx_get(tx, at("main/a#/v")), go = hd_tx_get(tx, at("main/go"));
    if (hd_value_status(v)) return hd_value_status(v);
    show(v, NULL);
    hd_status status = HD_OK;
    if (hd_value_as_int(go, 0) == 1)
        status = hd_tx_set(tx, at("main/a"), hd_cell_link(rt, hd_tx_pool(tx), at("main/b")));
    if (status || !hd_value_exists(v)) return status;
    return hd_tx_set(tx, at("main/out"), v);
}

/* C367: an effect that puts the link itself runs once more, and follows it from then on. */
static void a_link_of_its_own_leads_the_effect_elsewhere(void **state) {
    hd_lab_set(rt, "main/a", "{\"v\": 1}");
    hd_lab_set(rt, "main/b", "{\"v\": 2}");
    hd_effect(rt, "copy", link_then_copy, NULL);
    expect_shown("1");
    hd_lab_set(rt, "main/go", "1");
    expect_shown("1 2");
    hd_lab_expect_cell(rt, "main/out", "2");
    hd_lab_set(rt, "main/b#/v", "3");
    expect_shown("3");
    hd_lab_expect_cell(rt, "main/out", "3");
}

static hd_cell causes[8];
static size_t cause_count;
static hd_status ask_why(hd_tx *tx, void *ctx) {
    cause_count = hd_tx_causes(tx, causes, 8);
    return link_then_copy(tx, ctx);
}

/* C367: the cause of that run is the place whose way has changed, also after the effect's first run. */
static void the_cause_is_what_it_read(void **state) {
    hd_lab_set(rt, "main/a", "{\"v\": 1}");
    hd_lab_set(rt, "main/go", "1");
    hd_effect(rt, "copy", ask_why, NULL);
    hd_lab_settle(lab);
    assert_string_equal(shown, "1 -");
    assert_int_equal(cause_count, 1);
    assert_int_equal(causes[0].id, at("main/a#/v").id);
}

/* ---- what a schema reads */

static const char list_schema[] = "{\"type\": \"array\", \"items\": {\"type\": \"object\", "
                                  "\"properties\": {\"n\": {\"type\": \"number\"}}}}";

/* C368: a sink that reads through a schema reads new parts after an edit of its group: others' changes of
 * those are told, the edit itself is not. */
static void what_the_group_added_is_read_from_then_on(void **state) {
    hd_pool *pool;
    hd_schema *schema;
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    hd_value source = hd_json_parse(pool, list_schema, strlen(list_schema), NULL);
    assert_int_equal(hd_schema_compile(hd_runtime_heap(rt), source, &schema, NULL), HD_OK);
    hd_lab_set(rt, "main/list", "[{\"n\": 1}]");
    hd_cell list = hd_cell_with_schema(rt, at("main/list"), schema);
    hd_schema_close(schema);
    hd_pool_close(pool);
    hd_sink_spec spec = { .cell = list, .fn = show, .group = OWN };
    assert_int_equal(hd_sink_register(rt, &spec, NULL), HD_OK);
    expect_shown("[{\"n\":1}]");
    write_in(OWN, "main/list", "[{\"n\": 1}, {\"n\": 2}]", NULL);
    expect_shown("");
    hd_lab_set(rt, "main/list#/1/n", "3");
    expect_shown("[{\"n\":1},{\"n\":3}]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(a_link_of_the_group_leads_the_sink_elsewhere),
        T(what_others_write_is_told_beside_own_edits),
        T(a_link_of_the_group_leads_an_effect_elsewhere),
        T(a_link_of_its_own_leads_the_effect_elsewhere),
        T(the_cause_is_what_it_read),
        T(what_the_group_added_is_read_from_then_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
