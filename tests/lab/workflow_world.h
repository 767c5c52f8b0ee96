/* workflow_world.h -- a store, an engine and short words for tests of workflows. Each test program includes it once. */
#ifndef WORKFLOW_WORLD_H
#define WORKFLOW_WORLD_H

#include "lab.h"
#include <heddle/workflow.h>

#include <setjmp.h>
#include <stdarg.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define UNUSED_OK __attribute__((unused))

static lab_env *env;
static hd_runtime *rt;
static hd_engine *engine;
static hd_pool *pool;
static const char *where; /* the store: NULL in memory */
/* The store has the machine's clock: on a server a lease is held by real time, whatever a lab's clock says. */
static bool real_time;
static char id[HD_INSTANCE_ID_SIZE];

/* What each program registers when an engine is opened. */
static void register_actions(hd_engine *e);

UNUSED_OK static void open_engine(hd_memory *memory, hd_runtime **out, hd_engine **out_engine) {
    hd_error error = { 0 };
    hd_options options = { .env = real_time ? NULL : lab_env_of(env), .memory = memory };
    if (hd_open(where, &options, out, &error)) fail_msg("%s", error.message);
    if (hd_engine_open(*out, NULL, out_engine, &error)) fail_msg("%s", error.message);
    register_actions(*out_engine);
}

UNUSED_OK static void open_store(void) {
    open_engine(NULL, &rt, &engine);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
}

UNUSED_OK static void close_store(void) {
    hd_pool_close(pool);
    assert_int_equal(hd_close(rt), HD_OK);
}

UNUSED_OK static int set_up_world(void **state) {
    env = lab_env_open();
    where = NULL;
    open_store();
    return 0;
}

UNUSED_OK static int tear_down_world(void **state) {
    close_store();
    lab_env_close(env);
    return 0;
}

/* JSON with ' in place of ". */
UNUSED_OK static hd_value parse(const char *json) {
    hd_error error = { 0 };
    size_t length = strlen(json);
    char *copy = malloc(length + 1);
    for (size_t i = 0; i <= length; i++) copy[i] = json[i] == '\'' ? '"' : json[i];
    hd_value v = hd_json_parse(pool, copy, length, &error);
    if (!hd_value_exists(v)) fail_msg("%s at %zu of %s", error.message, error.offset, copy);
    free(copy);
    return v;
}

UNUSED_OK static void register_ir(const char *json) {
    hd_error error = { 0 };
    if (hd_workflow_register(engine, parse(json), NULL, &error)) fail_msg("%s", error.message);
}

/* A workflow of one function, without inputs, with these nodes (an ENTRY "in" before them) and edges. */
UNUSED_OK static void register_nodes(const char *name, const char *nodes, const char *edges) {
    static char json[20000];
    snprintf(json, sizeof json,
             "{'heddle':1,'name':'%s','functions':[{'name':'run','nodes':[{'id':'in','kind':'ENTRY'"
             "},%s],"
             "'edges':[%s]}]}",
             name, nodes, edges);
    register_ir(json);
}

UNUSED_OK static void start(const char *name, const char *input) {
    hd_status status = hd_workflow_start(engine, name, parse(input), NULL, id);
    if (status) fail_msg("%s: %s", hd_status_name(status), hd_runtime_error(rt)->message);
}

UNUSED_OK static void start_keyed(const char *name, const char *key, const char *input) {
    hd_start_options o = { .key = key };
    assert_int_equal(hd_workflow_start(engine, name, parse(input), &o, id), HD_OK);
}

UNUSED_OK static hd_status await(hd_value *result) {
    return hd_workflow_await(engine, id, pool, result);
}

UNUSED_OK static const char *printed(hd_value v) {
    const char *json = hd_json_print(pool, v, HD_JSON_COMPACT, NULL);
    return json ? json : "-";
}

UNUSED_OK static void assert_result(const char *json) {
    hd_value result;
    hd_status status = await(&result);
    if (status) fail_msg("%s: %s", hd_status_name(status), printed(result));
    assert_string_equal(printed(result), json);
}

UNUSED_OK static void assert_raised(const char *class_name) {
    hd_value result;
    assert_int_equal(await(&result), HD_FAILED);
    assert_string_equal(hd_value_as_text(hd_value_at(result, "$error"), ""), class_name);
}

UNUSED_OK static void pump(void) {
    for (hd_status status = HD_PENDING; status == HD_PENDING;) status = hd_runtime_pump(rt);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    for (hd_status status = HD_PENDING; status == HD_PENDING;) status = hd_runtime_pump(rt);
}

/* Pumps until the condition holds: how many pumps that takes depends on the threads of stores in files, and on how
 * busy the machine is. The bound ends a test that would wait for ever, and no other. */
#define PUMP_UNTIL(runtime, condition)                                                             \
    for (int turn_ = 0; !(condition); turn_++) {                                                   \
        if (turn_ == 100000) fail_msg("it never holds: %s", #condition);                           \
        (void)hd_runtime_pump(runtime);                                                            \
        assert_int_equal(hd_runtime_sync(runtime), HD_OK);                                         \
        if (real_time) poll(NULL, 0, 1);                                                           \
        else sched_yield(); /* to a thread that the condition waits for */                         \
    }

UNUSED_OK static void advance(uint64_t ms) {
    lab_env_advance_ms(env, ms);
    pump();
}

UNUSED_OK static hd_value document(void) { return hd_read(rt, pool, hd_workflow_cell(engine, id)); }

UNUSED_OK static const char *field(const char *key) {
    return hd_value_as_text(hd_value_at(document(), key), "");
}

UNUSED_OK static hd_engine_stats stats_now(void) {
    hd_engine_stats s;
    hd_engine_stat(engine, &s);
    return s;
}

#endif
