/* test_workflow_large.c -- results, inputs and payloads that are too long: the step or the call that made one is told,
 * and no other instance notices.
 *
 * What a program may give at once is bounded by the engine (hd_engine_options.value_max). What an instance has put
 * together may still be longer than a row of the store: then it alone is written off. */
#define _GNU_SOURCE
#include "folder.h"

#include <heddle.h>
#include <sqlite3.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define ROW_MAX ((size_t)8 << 20)

static hd_runtime *rt;
static hd_engine *engine;
static hd_pool *pool;
static int calls; /* of the action */

/* Returns a list of so many texts of so many bytes. */
static hd_status make(hd_action *a, hd_value args, void *ctx) {
    (void)ctx;
    size_t count = (size_t)hd_value_as_int(hd_value_at(args, "count"), 0);
    size_t bytes = (size_t)hd_value_as_int(hd_value_at(args, "bytes"), 0);
    hd_pool *own = hd_action_pool(a);
    hd_value all = hd_array();
    char *text = malloc(bytes + 1);
    assert_non_null(text);
    memset(text, 'x', bytes);
    calls++;
    for (size_t i = 0; i < count; i++)
        all = hd_array_append(own, all, hd_string_n(own, text, bytes));
    free(text);
    return hd_action_return(a, all);
}

static void register_make(const char *name, const char *nodes, const char *edges) {
    char text[2000];
    hd_error error = { 0 };
    snprintf(text, sizeof text,
             "{'heddle':1,'name':'%s','inputs':[{'name':'count','default':1},{'name':'bytes',"
             "'default':1}],'functions':[{'name':'run','params':['count','bytes'],'nodes':[{'id':"
             "'in','kind':'ENTRY'},%s],'edges':[%s]}]}",
             name, nodes, edges);
    for (char *c = text; *c; c++)
        if (*c == '\'') *c = '"';
    hd_value ir = hd_json_parse(pool, text, strlen(text), &error);
    if (hd_workflow_register(engine, ir, NULL, &error)) fail_msg("%s", error.message);
}

#define MAKE(id)                                                                                   \
    "{'id':'" id "','kind':'ACTION','action':'make','args':{'count':['name','count'],'bytes':["    \
    "'name','bytes']},'into':['name','" id "']}"

/* Scales the sizes down: SQLite holds rows of a billion bytes, and on these connections of 8 MiB. */
static int lower_limit(sqlite3 *db, char **error, const struct sqlite3_api_routines *api) {
    (void)error, (void)api;
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, (int)ROW_MAX);
    return SQLITE_OK;
}

static int open_world(void **state) {
    char file[100];
    if (folder_make(state)) return -1;
    assert_int_equal(sqlite3_auto_extension((void (*)(void))lower_limit), SQLITE_OK);
    folder_file(file, sizeof file, "large.db");
    assert_int_equal(hd_open(file, NULL, &rt, NULL), HD_OK);
    hd_engine_options options = { .value_max = (uint64_t)1 << 20 };
    assert_int_equal(hd_engine_open(rt, &options, &engine, NULL), HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    hd_action_spec spec = { .name = "make", .fn = make, .here = true };
    assert_int_equal(hd_action_register(engine, &spec), HD_OK);
    register_make("once",
                  MAKE("a") ",{'id':'out','kind':'RETURN','value':['call','len',[['name','a'"
                            "]]]}",
                  "['in','a'],['a','out']");
    register_make("caught",
                  MAKE("a") ",{'id':'h','kind':'HANDLER','clauses':[{'classes':['ValueError'],'as':"
                            "'e'}]},{'id':'no','kind':'RETURN','value':'caught'},{'id':'out','kind'"
                            ":'RETURN'}",
                  "['in','a'],['a','out'],['a','h','EXCEPT'],['h','no','GUARD',0]");
    /* Each result fits, and all of them together do not. */
    register_make(
        "gather",
        "{'id':'f','kind':'FAN_HEAD','over':['call','range',[20]],'into':['name','i']}," MAKE(
            "a") ",{'id':'j','kind':'BARRIER','give':['name','a'],'into':['name','all']},"
                 "{'id':'b','kind':'WAIT','signal':'go','into':['name','s']},{'id':'out',"
                 "'kind':'RETURN'}",
        "['in','f'],['f','a','ELEM'],['a','j','JOIN'],['j','b'],['b','out']");
    calls = 0;
    return 0;
}

static int close_world(void **state) {
    hd_pool_close(pool);
    assert_int_equal(hd_close(rt), HD_OK);
    (void)sqlite3_cancel_auto_extension((void (*)(void))lower_limit);
    return folder_remove(state);
}

static hd_value sized(int64_t count, int64_t bytes) {
    hd_value v = hd_object_set(pool, hd_object(), "count", hd_int(pool, count));
    return hd_object_set(pool, v, "bytes", hd_int(pool, bytes));
}

static void start(const char *name, int64_t count, int64_t bytes, char id[HD_INSTANCE_ID_SIZE]) {
    assert_int_equal(hd_workflow_start(engine, name, sized(count, bytes), NULL, id), HD_OK);
}

static hd_status end_of(const char *id, hd_value *result) {
    return hd_workflow_await(engine, id, pool, result);
}

static void a_result_over_the_limit_is_an_exception(void **state) {
    (void)state;
    char large[HD_INSTANCE_ID_SIZE], small[HD_INSTANCE_ID_SIZE], caught[HD_INSTANCE_ID_SIZE];
    hd_value result;
    start("once", 20, 60000, large);
    start("once", 10, 60000, small);
    start("caught", 20, 60000, caught);
    assert_int_equal(end_of(small, &result), HD_OK);
    assert_int_equal(hd_value_as_int(result, 0), 10);
    assert_int_equal(end_of(large, &result), HD_FAILED);
    assert_string_equal(hd_value_as_text(hd_value_at(result, "$error"), ""), "ValueError");
    assert_string_equal(hd_value_as_text(hd_value_at(result, "message"), ""),
                        "the result of make is longer than 1048576 bytes");
    assert_int_equal(end_of(caught, &result), HD_OK);
    assert_string_equal(hd_value_as_text(result, ""), "caught");
    assert_int_equal(calls, 3);
}

/* What a child returns is a result, too. */
static void a_result_of_a_child_over_the_limit_is_an_exception(void **state) {
    (void)state;
    char id[HD_INSTANCE_ID_SIZE];
    hd_value result;
    register_make(
        "inner",
        "{'id':'out','kind':'RETURN','value':['*',['call','str',[['name','bytes']]],['name',"
        "'count']]}",
        "['in','out']");
    register_make("outer",
                  "{'id':'c','kind':'CHILD','workflow':'inner','args':{'count':['name','count'],"
                  "'bytes':['name','bytes']},'into':['name','r']},{'id':'out','kind':'RETURN',"
                  "'value':['call','len',[['name','r']]]}",
                  "['in','c'],['c','out']");
    start("outer", 1000, 1, id);
    assert_int_equal(end_of(id, &result), HD_OK);
    assert_int_equal(hd_value_as_int(result, 0), 1000);
    start("outer", 2 << 20, 1, id);
    assert_int_equal(end_of(id, &result), HD_FAILED);
    assert_string_equal(hd_value_as_text(hd_value_at(result, "$error"), ""), "ValueError");
}

static void an_input_or_payload_over_the_limit_is_refused(void **state) {
    (void)state;
    char id[HD_INSTANCE_ID_SIZE];
    char *text = malloc(2 << 20);
    assert_non_null(text);
    memset(text, 'x', 2 << 20);
    hd_value large = hd_string_n(pool, text, 2 << 20);
    free(text);
    hd_value input = hd_object_set(pool, hd_object(), "count", large);
    assert_int_equal(hd_workflow_start(engine, "once", input, NULL, id), HD_LIMIT);
    assert_string_equal(hd_runtime_error(rt)->message,
                        "the input of once is longer than 1048576 bytes");
    start("gather", 1, 1, id);
    assert_int_equal(hd_workflow_signal(engine, id, "go", large), HD_LIMIT);
    assert_string_equal(hd_runtime_error(rt)->message,
                        "the payload of \"go\" is longer than 1048576 bytes");
    assert_int_equal(hd_workflow_signal(engine, id, "go", hd_null()), HD_OK);
    hd_value result;
    assert_int_equal(end_of(id, &result), HD_OK);
}

/* The limit is of bytes as JSON: no number of small values is taken for more than it is, and escapes count. */
static void the_limit_counts_bytes_of_json(void **state) {
    (void)state;
    enum { MOST = 1 << 20 };
    char id[HD_INSTANCE_ID_SIZE];
    char *text = malloc(MOST);
    assert_non_null(text);
    memset(text, 'x', MOST);
    start("gather", 1, 1, id);
    assert_int_equal(hd_workflow_signal(engine, id, "go", hd_string_n(pool, text, MOST - 1)),
                     HD_LIMIT);
    memset(text, 1, MOST / 6 + 1);
    assert_int_equal(hd_workflow_signal(engine, id, "go", hd_string_n(pool, text, MOST / 6 + 1)),
                     HD_LIMIT);
    free(text);
    hd_builder *b;
    assert_int_equal(hd_builder_open(pool, HD_KIND_ARRAY, &b), HD_OK);
    for (int i = 0; i < MOST / 2 - 1; i++) hd_builder_add(b, hd_int(pool, i % 10));
    hd_value numbers = hd_builder_close(b); /* one digit and a comma each */
    assert_int_equal(hd_workflow_signal(engine, id, "go",
                                        hd_array_append(pool, numbers, hd_string(pool, "three"))),
                     HD_LIMIT);
    assert_int_equal(hd_workflow_signal(engine, id, "go", numbers), HD_OK);
    hd_value result;
    assert_int_equal(end_of(id, &result), HD_OK);
}

static void note_end(const char *id, hd_status status, hd_value result, void *ctx) {
    (void)id, (void)result;
    *(hd_status *)ctx = status;
}

/* Its completions, which come together, are longer than a row: the others in their commit are stored, and it is
 * marked. */
static void an_instance_that_no_row_holds_is_written_off(void **state) {
    (void)state;
    enum { OTHERS = 5 };
    char large[HD_INSTANCE_ID_SIZE], small[OTHERS][HD_INSTANCE_ID_SIZE];
    hd_value result;
    start("gather", 10, 60000, large);
    hd_status told = HD_PENDING;
    assert_int_equal(hd_workflow_then(engine, large, note_end, &told), HD_OK);
    for (int i = 0; i < OTHERS; i++) start("once", 1, 100, small[i]);
    for (int i = 0; i < OTHERS; i++) {
        assert_int_equal(end_of(small[i], &result), HD_OK);
        assert_int_equal(hd_value_as_int(result, 0), 1);
    }
    assert_int_equal(end_of(large, &result), HD_FAILED);
    assert_string_equal(hd_value_as_text(hd_value_at(result, "$error"), ""), "SystemError");
    assert_string_equal(hd_value_as_text(hd_value_at(result, "message"), ""),
                        "what it has changed at once is longer than the store takes");
    start("once", 1, 100, small[0]);
    assert_int_equal(end_of(small[0], &result), HD_OK);
    assert_int_equal(told, HD_FAILED);
}

/* Writes more than a row holds. */
static hd_status write_long(hd_action *a, hd_value args, void *ctx) {
    (void)args, (void)ctx;
    hd_tx *tx = hd_action_tx(a);
    char *text = malloc(ROW_MAX + 1);
    assert_non_null(text);
    memset(text, 'x', ROW_MAX);
    calls++;
    hd_status status =
        hd_tx_set(tx, hd_cell_at(rt, "main/long"), hd_string_n(hd_action_pool(a), text, ROW_MAX));
    free(text);
    return status;
}

static void a_transaction_that_no_row_holds_fails_its_step(void **state) {
    (void)state;
    char ids[2][HD_INSTANCE_ID_SIZE];
    hd_value result;
    hd_action_spec spec = { .name = "write", .fn = write_long, .transaction = true };
    assert_int_equal(hd_action_register(engine, &spec), HD_OK);
    register_make("writes",
                  "{'id':'w','kind':'ACTION','action':'write'},{'id':'out','kind':'RETURN',"
                  "'value':['const',1]}",
                  "['in','w'],['w','out']");
    calls = 0;
    for (int i = 0; i < 2; i++) start("writes", 1, 1, ids[i]);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(end_of(ids[i], &result), HD_FAILED);
        assert_string_equal(hd_value_as_text(hd_value_at(result, "$error"), ""), "RuntimeError");
    }
    assert_int_equal(calls, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_result_over_the_limit_is_an_exception),
        TEST(a_result_of_a_child_over_the_limit_is_an_exception),
        TEST(an_input_or_payload_over_the_limit_is_refused),
        TEST(the_limit_counts_bytes_of_json),
        TEST(an_instance_that_no_row_holds_is_written_off),
        TEST(a_transaction_that_no_row_holds_fails_its_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
