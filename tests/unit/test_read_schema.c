/* test_read_schema.c -- reads by schema: what comes out, and exactly what is journaled. */
#include "lab_store.h"
#include "store/runtime.h"
#include "store/tx.h"
#include "value/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "store_world.h"

static hd_schema *schemas[16];
static size_t schema_count;

static int close_schemas(void **state) {
    while (schema_count) hd_schema_close(schemas[--schema_count]);
    return close_all(state);
}

/* A cell of b read through a schema, in JSON with single quotes. */
static hd_cell typed(lab_runtime *r, const char *cell, const char *text) {
    char json[1024];
    snprintf(json, sizeof json, "%s", text);
    for (char *at = json; *at; at++)
        if (*at == '\'') *at = '"';
    hd_pool *pool;
    hd_error error;
    assert_status(hd_pool_open(hd_runtime_heap(lab_rt(r)), &pool), HD_OK);
    hd_value v = hd_json_parse(pool, json, strlen(json), &error);
    hd_schema **schema = &schemas[schema_count];
    if (hd_schema_compile(hd_runtime_heap(lab_rt(r)), v, schema, &error))
        fail_msg("%s: %s", text, error.message);
    schema_count++;
    hd_pool_close(pool);
    return hd_cell_with_schema(lab_rt(r), lab_cell(r, cell), *schema);
}

static int by_name(const void *x, const void *y) { return strcmp(x, y); }

/* The journal, sorted: "n/a n/b~" (~ for shape). */
static const char *journal(hd_tx *tx) {
    static char text[2048];
    char names[64][64];
    assert_status(tx_reads_complete(tx), HD_OK);
    uint32_t n = tx->reads.count;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t key = tx->reads.items[i];
        char name[64];
        hd_cell_print(tx->rt, (hd_cell){ key & KEY_PLACE }, name, sizeof name);
        snprintf(names[i], sizeof names[i], "%s%s", name + strlen("main/"),
                 key & KEY_SHAPE ? "~" : "");
    }
    qsort(names, n, sizeof *names, by_name);
    text[0] = 0;
    for (uint32_t i = 0; i < n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "", names[i]);
    return text;
}

static void assert_reads(hd_cell cell, const char *json, const char *keys) {
    hd_tx *tx;
    assert_status(hd_tx_begin(lab_rt(b), &tx), HD_OK);
    hd_value v = hd_tx_get(tx, cell);
    assert_status(hd_value_status(v), HD_OK);
    if (!strcmp(json, "-")) assert_false(hd_value_exists(v));
    else assert_string_equal(hd_json_print(hd_tx_pool(tx), v, HD_JSON_COMPACT, NULL), json);
    assert_string_equal(journal(tx), keys);
    hd_tx_abort(tx);
    replica_check(lab_replica(b));
}

static void given(const char *script) {
    lab_do(a, script);
    lab_settle(l);
}

static void an_object_is_read_by_its_named_properties(void **state) {
    given("set n {\"a\":1,\"b\":{\"c\":2,\"d\":3},\"e\":4}");
    hd_cell n = typed(b, "n",
                      "{'type':'object','properties':{'a':{'type':'integer'},'b':{'type':'object',"
                      "'properties':{'c':{'type':'integer'}}}}}");
    assert_reads(n, "{\"a\":1,\"b\":{\"c\":2}}", "n#/a n#/b/c n#/b~ n~");
}

static void an_open_schema_reads_the_whole(void **state) {
    given("set n {\"a\":1,\"b\":{\"c\":2}}");
    assert_reads(typed(b, "n", "true"), "{\"a\":1,\"b\":{\"c\":2}}", "n");
    assert_reads(typed(b, "n", "{}"), "{\"a\":1,\"b\":{\"c\":2}}", "n");
}

static void a_missing_required_property_fails_the_object(void **state) {
    given("set n {\"a\":1}");
    hd_cell n =
        typed(b, "n",
              "{'type':'object','properties':{'a':{'type':'integer'},'b':{'type':'integer'}},"
              "'required':['b']}");
    assert_reads(n, "-", "n#/a n#/b n~");
    given("set n#/b 2");
    assert_reads(n, "{\"a\":1,\"b\":2}", "n#/a n#/b n~");
}

static void a_mismatching_optional_property_is_left_out_and_defaults_apply(void **state) {
    given("set n {\"a\":\"text\"}");
    hd_cell n = typed(b, "n",
                      "{'type':'object','properties':{'a':{'type':'integer'},"
                      "'b':{'type':'integer','default':7}}}");
    assert_reads(n, "{\"b\":7}", "n#/a n#/b n~");
}

/* As hd_schema_project: a default stands for nothing, not for what does not match. */
static void a_required_property_must_match_although_it_has_a_default(void **state) {
    given("set n {\"a\":\"text\"}");
    hd_cell n = typed(b, "n",
                      "{'type':'object','properties':{'a':{'type':'integer','default':7}},"
                      "'required':['a']}");
    assert_reads(n, "-", "n#/a n~");
    given("remove n#/a");
    assert_reads(n, "{\"a\":7}", "n#/a n~");
}

/* Why an alternative does not hold is a dependency; the rest of what it would read is none. */
static void what_keeps_an_alternative_from_matching_is_read(void **state) {
    given("set n {\"a\":\"text\",\"b\":1,\"c\":2}");
    hd_cell n = typed(b, "n",
                      "{'anyOf':[{'type':'object','properties':{'a':{'type':'integer'},'c':{}},"
                      "'required':['a']},{'type':'object','properties':{'b':{}},"
                      "'required':['x']},{'type':'object','properties':{'b':{}}}]}");
    assert_reads(n, "{\"b\":1}", "n#/a n#/b n~");
    given("set n#/a 3");
    assert_reads(n, "{\"a\":3,\"c\":2}", "n#/a n#/c n~");
}

static void arrays_are_walked_element_by_element(void **state) {
    given("set n {\"l\":[{\"x\":1,\"y\":1},{\"x\":2}]}");
    hd_cell n = typed(b, "n#/l",
                      "{'type':'array','items':{'type':'object','properties':{'x':{'type':"
                      "'integer'}}}}");
    assert_reads(n, "[{\"x\":1},{\"x\":2}]", "n#/l/0/x n#/l/0~ n#/l/1/x n#/l/1~ n#/l~");
}

static void links_are_followed_and_each_hop_is_journaled(void **state) {
    given("set n {\"l\":{\"$link\":{\"id\":\"m\",\"path\":\"/p\"}}}; set m "
          "{\"p\":{\"x\":1,\"y\":2}}");
    hd_cell n = typed(b, "n",
                      "{'type':'object','properties':{'l':{'type':'object','properties':{'x':"
                      "{'type':'integer'}}}}}");
    assert_reads(n, "{\"l\":{\"x\":1}}", "m#/p/x m#/p~ n#/l~ n~");
}

static void at_a_cell_boundary_the_link_is_read_and_not_its_target(void **state) {
    given("set n {\"l\":{\"$link\":{\"id\":\"m\"}},\"k\":5}; set m 1");
    hd_cell n = typed(b, "n",
                      "{'type':'object','properties':{'l':{'asCell':true},"
                      "'k':{'asCell':true}}}");
    assert_reads(n,
                 "{\"k\":{\"$link\":{\"id\":\"n\",\"path\":\"/k\",\"scope\":\"space\",\"space\":"
                 "\"main\"}},\"l\":{\"$link\":{\"id\":\"m\"}}}",
                 "n#/k~ n#/l~ n~");
}

static void preflight_walks_through_boundaries(void **state) {
    given("set n {\"l\":{\"$link\":{\"id\":\"m\"}}}; set m {\"x\":1}");
    hd_cell n = typed(b, "n",
                      "{'type':'object','properties':{'l':{'asCell':true,'type':'object',"
                      "'properties':{'x':{'type':'integer'}}}}}");
    hd_tx *tx;
    assert_status(hd_tx_begin(lab_rt(b), &tx), HD_OK);
    tx->flags |= TX_PREFLIGHT;
    hd_tx_get(tx, n);
    assert_string_equal(journal(tx), "m#/x m~ n#/l~ n~");
    hd_tx_abort(tx);
}

static void a_shallow_place_is_read_by_shape(void **state) {
    given("set n {\"a\":{\"b\":1}}");
    hd_cell n = typed(b, "n", "{'type':'object','properties':{'a':{'shallow':true}}}");
    assert_reads(n, "{\"a\":{\"b\":1}}", "n#/a~ n~");
}

static void a_cycle_of_links_ends(void **state) {
    given("set n {\"next\":{\"$link\":{\"id\":\"n\"}}}");
    hd_cell n = typed(b, "n",
                      "{'$$ref':'#/$defs/node','$$defs':{'node':{'type':'object','properties':"
                      "{'next':{'$$ref':'#/$defs/node'}}}}}");
    hd_tx *tx;
    assert_status(hd_tx_begin(lab_rt(b), &tx), HD_OK);
    hd_value v = hd_tx_get(tx, n);
    assert_status(hd_value_status(v), HD_LIMIT);
    assert_status(hd_tx_commit(tx, NULL, NULL), HD_LIMIT);
    replica_check(lab_replica(b));
}

static void own_writes_are_seen(void **state) {
    given("set n {\"a\":1}");
    hd_cell n = typed(b, "n", "{'type':'object','properties':{'a':{'type':'integer'}}}");
    hd_tx *tx;
    assert_status(hd_tx_begin(lab_rt(b), &tx), HD_OK);
    assert_status(lab_script(b, tx, "set n#/a 2", NULL), HD_OK);
    hd_value v = hd_tx_get(tx, n);
    assert_int_equal(hd_value_as_int(hd_value_at(v, "a"), 0), 2);
    hd_tx_abort(tx);
}

/* ---- as claims: what was touched, and nothing else. The places are nobody else's: they must be
 * kept by the journal and by the commit. */

static hd_status fate_of(hd_cell cell, const char *change) {
    hd_tx *tx;
    assert_status(hd_tx_begin(lab_rt(b), &tx), HD_OK);
    assert_true(hd_value_exists(hd_tx_get(tx, cell)));
    for (int i = 0; i < 8; i++) { /* other places take the records of freed ones */
        char name[32];
        snprintf(name, sizeof name, "noise%d#/x", i);
        lab_cell(b, name);
    }
    assert_status(hd_tx_set_int(tx, lab_cell(b, "copy"), 1), HD_OK);
    assert_status(hd_tx_commit(tx, NULL, NULL), HD_OK);
    lab_do(a, change);
    lab_pump(a);
    lab_settle(l);
    hd_status told = strcmp(lab_read_cell(b, "copy"), "-") ? HD_OK : HD_STALE;
    lab_do(a, "remove copy");
    lab_settle(l);
    return told;
}

static void claims_are_what_was_touched(void **state) {
    given("set n {\"a\":1,\"b\":{\"c\":2,\"d\":3},\"e\":4}");
    hd_cell n = typed(b, "n",
                      "{'type':'object','properties':{'a':{'type':'integer'},'b':{'type':'object',"
                      "'properties':{'c':{'type':'integer'}}}}}");
    assert_status(fate_of(n, "set n#/e 5"), HD_OK);
    assert_status(fate_of(n, "set n#/b/d 5"), HD_OK);
    assert_status(fate_of(n, "set n#/b/c 5"), HD_STALE);
    assert_status(fate_of(n, "set n#/a 5"), HD_STALE);
    assert_status(fate_of(n, "remove n#/e"), HD_STALE); /* the shape of n */
}

static void late_documents_are_pending(void **state) {
    lab *late = lab_open_with((lab_options){ .load_late = true });
    lab_runtime *x = lab_runtime_open(late, "x");
    hd_tx *tx;
    hd_cell n = typed(x, "n", "{'type':'object','properties':{'a':{'type':'integer'}}}");
    assert_status(hd_tx_begin(lab_rt(x), &tx), HD_OK);
    assert_status(hd_value_status(hd_tx_get(tx, n)), HD_PENDING);
    assert_int_equal(tx->missing, lab_cell(x, "n").id);
    hd_tx_abort(tx);
    lab_pump(x);
    assert_cell(x, "n", "-");
    hd_schema_close(schemas[--schema_count]);
    lab_close(late);
}

/* {"o": {"k0": "t", ..., "k39": "t"}}, made without a builder: that would leave its room to the read. */
static hd_value wide_object(hd_pool *pool) {
    hd_value inner = hd_object();
    for (int i = 0; i < 40; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        inner = hd_object_set(pool, inner, key, hd_string(pool, "a text of some length"));
    }
    return hd_object_set(pool, hd_object(), "o", inner);
}

static hd_value object_schema(hd_pool *pool, hd_value properties) {
    hd_value s = hd_object_set(pool, hd_object(), "type", hd_string(pool, "object"));
    return hd_object_set(pool, s, "properties", properties);
}

/* Names every property, so that each is read by itself. */
static hd_value wide_schema(hd_pool *pool, hd_value wide) {
    hd_value inner = hd_object();
    for (hd_iter it = hd_iter_of(hd_value_at(wide, "o")); hd_iter_next(&it);)
        inner = hd_object_set(pool, inner, it.key, hd_object());
    return object_schema(pool, hd_object_set(pool, hd_object(), "o", object_schema(pool, inner)));
}

static void read_wide(hd_runtime *rt, hd_pool *pool) {
    hd_schema *schema = NULL;
    hd_value wide = wide_object(pool);
    hd_status status =
        hd_schema_compile(hd_runtime_heap(rt), wide_schema(pool, wide), &schema, NULL);
    hd_cell cell = hd_cell_at(rt, "main/wide");
    if (!status) status = cell.id ? hd_write(rt, cell, wide) : HD_NOMEM;
    if (!status) cell = hd_cell_with_schema(rt, cell, schema);
    if (!status && cell.id) {
        hd_value got = hd_read(rt, pool, cell);
        assert_true(value_is_failed(got) || hd_value_count(hd_value_at(got, "o")) == 40);
    }
    hd_schema_close(schema);
}

static void read_wide_in(hd_lab_env *world, void *ctx) {
    hd_runtime *rt;
    hd_pool *pool;
    hd_options options = { .env = hd_lab_env_of(world) };
    (void)ctx;
    if (hd_open(NULL, &options, &rt, NULL)) return;
    if (!hd_pool_open(hd_runtime_heap(rt), &pool)) {
        read_wide(rt, pool);
        hd_pool_close(pool);
    }
    (void)hd_close(rt);
}

static void without_memory_a_read_of_a_wide_object_fails(void **state) {
    hd_lab_each_allocation_failure(read_wide_in, NULL);
}

#define T(name) cmocka_unit_test_setup_teardown(name, open_two, close_schemas)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(an_object_is_read_by_its_named_properties),
        T(an_open_schema_reads_the_whole),
        T(a_missing_required_property_fails_the_object),
        T(a_mismatching_optional_property_is_left_out_and_defaults_apply),
        T(a_required_property_must_match_although_it_has_a_default),
        T(what_keeps_an_alternative_from_matching_is_read),
        T(arrays_are_walked_element_by_element),
        T(links_are_followed_and_each_hop_is_journaled),
        T(at_a_cell_boundary_the_link_is_read_and_not_its_target),
        T(preflight_walks_through_boundaries),
        T(a_shallow_place_is_read_by_shape),
        T(a_cycle_of_links_ends),
        T(own_writes_are_seen),
        T(claims_are_what_was_touched),
        T(late_documents_are_pending),
        cmocka_unit_test(without_memory_a_read_of_a_wide_object_fails),
    };
    return cmocka_run_group_tests_name("read schema", tests, NULL, NULL);
}
