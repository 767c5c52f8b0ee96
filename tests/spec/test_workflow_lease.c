/* test_workflow_lease.c -- several engines on one space: one is active, the others stand by, and reach it through
 * documents (POSTGRES.md, "Leases"; issue words: "several processes on one file need no arrangement"). */
#define _DEFAULT_SOURCE
#include "workflow_world.h"

#include <signal.h>
#include <sys/wait.h>

static hd_memory *memory;
static hd_runtime *rt2;
static hd_engine *engine2;
static int calls;

static hd_status count(hd_action *a, hd_value args, void *ctx) {
    return hd_action_return(a, hd_int(NULL, ++calls));
}

static void register_actions(hd_engine *e) {
    hd_action_spec spec = { .name = "count", .fn = count, .here = true };
    assert_int_equal(hd_action_register(e, &spec), HD_OK);
}

static int set_up(void **state) {
    env = lab_env_open();
    where = NULL;
    calls = 0;
    assert_int_equal(hd_memory_open(lab_env_of(env), &memory), HD_OK);
    open_engine(memory, &rt, &engine);
    open_engine(memory, &rt2, &engine2);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    return 0;
}

static int tear_down(void **state) {
    hd_pool_close(pool);
    if (rt) assert_int_equal(hd_close(rt), HD_OK);
    if (rt2) assert_int_equal(hd_close(rt2), HD_OK);
    hd_memory_close(memory);
    lab_env_close(env);
    return 0;
}

/* Both runtimes, until neither has anything to do. */
static void pump_both(void) {
    for (int i = 0; i < 12; i++) {
        if (rt) assert_int_equal(hd_runtime_sync(rt), HD_OK);
        if (rt2) assert_int_equal(hd_runtime_sync(rt2), HD_OK);
        if (rt) assert_in_range(hd_runtime_pump(rt), 0, HD_PENDING);
        if (rt2) assert_in_range(hd_runtime_pump(rt2), 0, HD_PENDING);
    }
}

static void register_wait(void) {
    register_nodes("w",
                   "{'id':'wait','kind':'WAIT','signal':'go','into':['name','p']},"
                   "{'id':'a','kind':'ACTION','action':'count'},"
                   "{'id':'out','kind':'RETURN','value':['name','p']}",
                   "['in','wait'],['wait','a'],['a','out']");
}

static const char *status_in(hd_engine *e, hd_runtime *r) {
    hd_value doc = hd_read(r, pool, hd_workflow_cell(e, id));
    return hd_value_as_text(hd_value_at(doc, "status"), "");
}

static int attempts;

static hd_status start_at_the_second_attempt(hd_tx *tx, void *ctx) {
    if (!attempts++) return HD_STALE;
    hd_start_options o = { .key = "late" };
    return hd_workflow_start_in(engine, tx, "w", hd_object(), &o, id);
}

static void note_verdict(hd_status status, void *ctx) { *(hd_status *)ctx = status; }

/* hd_close runs transactions of the program to their end: the engine that they name is still there. */
static void a_transaction_that_the_close_ends_starts_a_workflow(void **state) {
    hd_status status = HD_PENDING;
    register_wait();
    pump_both();
    attempts = 0;
    assert_int_equal(
        hd_transact_later(rt, start_at_the_second_attempt, NULL, note_verdict, &status), HD_OK);
    assert_int_equal(attempts, 1);
    hd_pool_close(pool);
    assert_int_equal(hd_close(rt), HD_OK);
    rt = NULL;
    assert_int_equal(status, HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt2), &pool), HD_OK);
    pump_both();
    assert_string_equal(status_in(engine2, rt2), "running");
}

static hd_status start_it(hd_tx *tx, const hd_event *event, void *ctx) {
    hd_start_options o = { .key = "one" };
    return hd_workflow_start_in(engine, tx, "w", hd_object(), &o, id);
}

/* A handler that starts a workflow has not read anything that it would have to declare. */
static void a_start_in_a_handler_is_no_read_of_the_handler(void **state) {
    hd_event_stats stats;
    register_wait();
    hd_cell stream = hd_cell_at(rt, "main/orders");
    hd_handler_spec spec = {
        .name = "start", .stream = stream, .fn = start_it, .reads_nothing = true
    };
    assert_int_equal(hd_handler_register(rt, &spec, NULL), HD_OK);
    assert_int_equal(hd_event_send(rt, stream, hd_null(), NULL), HD_OK);
    pump_both();
    assert_string_equal(status_in(engine, rt), "running");
    hd_runtime_event_stats(rt, &stats);
    assert_int_equal(stats.handled, 1);
    assert_int_equal(stats.outside_reads, 0);
}

static void the_first_engine_of_a_space_is_active(void **state) {
    assert_true(hd_engine_is_active(engine));
    assert_false(hd_engine_is_active(engine2));
    pump_both();
    assert_false(hd_engine_is_active(engine2));
}

static void what_one_that_stands_by_starts_runs_in_the_active_one(void **state) {
    hd_engine_stats stats;
    register_nodes("w",
                   "{'id':'a','kind':'ACTION','action':'count','into':['name','r']},{'id':'out','"
                   "kind':'RETURN','value':['name','r']}",
                   "['in','a'],['a','out']");
    pump_both();
    hd_start_options keyed = { .key = "one" };
    assert_int_equal(hd_workflow_start(engine2, "w", hd_object(), &keyed, id), HD_OK);
    assert_string_equal(status_in(engine2, rt2), "queued");
    assert_int_equal(hd_workflow_start(engine2, "w", hd_object(), &keyed, id), HD_EXISTS);
    assert_int_equal(hd_workflow_start(engine2, "none", hd_object(), NULL, id), HD_NOT_FOUND);
    snprintf(id, sizeof id, "w/one");
    pump_both();
    assert_string_equal(status_in(engine2, rt2), "done");
    assert_int_equal(calls, 1);
    hd_engine_stat(engine, &stats);
    assert_int_equal(stats.finished, 1);
    hd_engine_stat(engine2, &stats);
    assert_int_equal(stats.finished, 0);
}

/* Two programs start with one key at once: neither sees the other's start, and no sync fails for it (pump_both). */
static void race_of_starts(hd_engine *first, hd_engine *then) {
    register_nodes("w",
                   "{'id':'a','kind':'ACTION','action':'count','into':['name','r']},{'id':'out','"
                   "kind':'RETURN','value':['name','r']}",
                   "['in','a'],['a','out']");
    pump_both();
    hd_start_options keyed = { .key = "one" };
    assert_int_equal(hd_workflow_start(first, "w", hd_object(), &keyed, id), HD_OK);
    assert_int_equal(hd_workflow_start(then, "w", hd_object(), &keyed, id), HD_OK);
    pump_both();
    assert_string_equal(status_in(engine, rt), "done");
    assert_string_equal(status_in(engine2, rt2), "done");
    assert_int_equal(calls, 1);
}
static void the_active_one_wins_the_race_of_two_starts(void **state) {
    race_of_starts(engine, engine2);
}
static void one_that_stands_by_wins_the_race_of_two_starts(void **state) {
    hd_start_options keyed = { .key = "two" };
    race_of_starts(engine2, engine);
    assert_int_equal(hd_workflow_start(engine, "w", hd_object(), &keyed, id), HD_OK);
    assert_int_equal(hd_workflow_start(engine2, "w", hd_object(), &keyed, id), HD_OK);
    assert_int_equal(hd_runtime_sync(rt2), HD_OK); /* its commit reaches the store first */
    pump_both();
    assert_string_equal(status_in(engine, rt), "done");
    assert_int_equal(calls, 2);
}

static void messages_of_one_that_stands_by_reach_the_instance_once(void **state) {
    hd_value result;
    register_wait();
    start("w", "{}");
    pump_both();
    assert_int_equal(hd_workflow_signal(engine2, id, "stop", hd_null()), HD_USAGE);
    assert_int_equal(hd_workflow_signal(engine2, "w/none", "go", hd_null()), HD_NOT_FOUND);
    assert_int_equal(hd_workflow_pause(engine2, id), HD_OK);
    assert_int_equal(hd_workflow_signal(engine2, id, "go", hd_bool(true)), HD_OK);
    pump_both();
    assert_string_equal(status_in(engine2, rt2), "paused");
    assert_int_equal(calls, 0);
    assert_int_equal(hd_workflow_resume(engine2, id), HD_OK);
    pump_both();
    assert_int_equal(calls, 1);
    assert_string_equal(status_in(engine2, rt2), "done");
    assert_int_equal(hd_workflow_await(engine2, id, pool, &result), HD_OK);
    assert_string_equal(printed(result), "true");
    assert_int_equal(hd_workflow_cancel(engine2, id), HD_OK);
    assert_int_equal(hd_workflow_resume(engine2, id), HD_NOT_FOUND);
}

static bool none(const hd_listing *entry, void *ctx) { return ++*(int *)ctx, true; }

static void messages_are_gone_when_they_are_answered(void **state) {
    int left = 0;
    register_wait();
    start("w", "{}");
    pump_both();
    for (int i = 0; i < 5; i++)
        assert_int_equal(hd_workflow_signal(engine2, id, "go", hd_null()), HD_OK);
    pump_both();
    assert_int_equal(hd_workflow_cancel(engine2, id), HD_OK);
    pump_both();
    assert_int_equal(hd_runtime_list(rt2, "main", "workflow.inbox", NULL, none, &left), HD_OK);
    assert_int_equal(left, 0);
}

static void another_goes_on_when_the_active_one_is_closed(void **state) {
    register_wait();
    start("w", "{}");
    pump_both();
    hd_engine_close(engine);
    for (int i = 0; i < 3; i++) hd_runtime_pump(rt2);
    assert_true(hd_engine_is_active(engine2));
    assert_int_equal(hd_workflow_signal(engine2, id, "go", hd_bool(true)), HD_OK);
    pump_both();
    assert_string_equal(status_in(engine2, rt2), "done");
    assert_int_equal(calls, 1);
}

/* workflow.h, hd_workflow_signal: signals come in the order in which they were given, also if an engine rises in the
 * pump in which it hears of the last ones. */
static void signals_keep_their_order_when_another_engine_rises(void **state) {
    enum { SIGNALS = 8 };
    char nodes[1200] = "", edges[400] = "['in','w0']", name[16];
    for (int i = 0; i <= SIGNALS; i++) {
        size_t n = strlen(nodes), m = strlen(edges);
        snprintf(nodes + n, sizeof nodes - n,
                 "{'id':'w%d','kind':'WAIT','signal':'go','into':['name','p%d']},", i, i);
        snprintf(edges + m, sizeof edges - m, ",['w%d','%s%.0d']", i, i < SIGNALS ? "w" : "out",
                 i < SIGNALS ? i + 1 : 0);
    }
    snprintf(nodes + strlen(nodes), sizeof nodes - strlen(nodes), "{'id':'out','kind':'RETURN'}");
    register_nodes("w", nodes, edges);
    start("w", "{}");
    pump_both();
    hd_engine_close(engine);
    assert_int_equal(hd_engine_open(rt, &(hd_engine_options){ .observer = true }, &engine, NULL),
                     HD_OK);
    assert_int_equal(hd_workflow_signal(engine, id, "go", hd_int(NULL, 0)), HD_OK);
    for (int i = 1; i < SIGNALS; i++) {
        assert_int_equal(hd_workflow_signal(engine, id, "go", hd_int(NULL, i)), HD_OK);
        assert_int_equal(hd_runtime_sync(rt), HD_OK);
        assert_in_range(hd_runtime_pump(rt2), 0, HD_PENDING);
    }
    pump_both();
    assert_true(hd_engine_is_active(engine2));
    hd_value vars = hd_value_at(hd_read(rt2, pool, hd_workflow_cell(engine2, id)), "vars");
    for (int i = 0; i < SIGNALS; i++) {
        snprintf(name, sizeof name, "p%d", i);
        assert_int_equal(hd_value_as_int(hd_value_at(vars, name), -1), i);
    }
}

static void messages_wait_until_an_engine_is_active(void **state) {
    hd_error error;
    hd_engine_options observer = { .observer = true };
    register_wait();
    hd_engine_close(engine2);
    assert_int_equal(hd_engine_open(rt2, &observer, &engine2, &error), HD_OK);
    pump_both();
    hd_engine_close(engine);
    pump_both();
    assert_false(hd_engine_is_active(engine2));
    assert_int_equal(hd_workflow_start(engine2, "w", hd_object(), NULL, id), HD_OK);
    assert_int_equal(hd_workflow_signal(engine2, id, "go", hd_bool(true)), HD_OK);
    pump_both();
    assert_string_equal(status_in(engine2, rt2), "queued");
    assert_int_equal(hd_engine_open(rt, NULL, &engine, &error), HD_OK);
    register_actions(engine);
    pump_both();
    assert_string_equal(status_in(engine2, rt2), "done");
}

static void run_to_its_end(void) {
    register_wait();
    hd_engine_close(engine2);
    assert_int_equal(hd_engine_open(rt2, &(hd_engine_options){ .observer = true }, &engine2, NULL),
                     HD_OK);
    start_keyed("w", "k", "{}");
    assert_int_equal(hd_workflow_signal(engine, id, "go", hd_int(NULL, 1)), HD_OK);
    pump_both();
    assert_string_equal(status_in(engine2, rt2), "done");
}

static void note_number(const char *which, hd_status status, hd_value result, void *ctx) {
    *(int64_t *)ctx = hd_value_as_int(result, -1);
}

/* hd_workflow_rerun: from the call on the instance is not over, also for a program that does not run it. */
static void what_follows_a_rerun_by_another_engine_concerns_the_new_run(void **state) {
    int64_t result = 0;
    run_to_its_end();
    assert_int_equal(hd_workflow_rerun(engine2, id, NULL), HD_OK);
    assert_string_equal(status_in(engine2, rt2), "queued");
    assert_int_equal(hd_workflow_rerun(engine2, id, NULL), HD_USAGE);
    assert_int_equal(hd_workflow_remove(engine2, id), HD_USAGE);
    assert_int_equal(hd_workflow_then(engine2, id, note_number, &result), HD_OK);
    assert_int_equal(hd_workflow_signal(engine2, id, "go", hd_int(NULL, 2)), HD_OK);
    pump_both();
    assert_int_equal(result, 2);
    assert_int_equal(calls, 2);
    assert_false(hd_value_exists(hd_value_at(document(), "again")));
}

static void a_rerun_waits_until_an_engine_is_active(void **state) {
    run_to_its_end();
    hd_engine_close(engine);
    pump_both();
    assert_int_equal(hd_workflow_rerun(engine2, id, NULL), HD_OK);
    assert_int_equal(hd_workflow_cancel(engine2, id), HD_OK);
    pump_both();
    assert_string_equal(status_in(engine2, rt2), "queued");
    assert_int_equal(hd_engine_open(rt, NULL, &engine, NULL), HD_OK);
    register_actions(engine);
    pump_both();
    assert_string_equal(status_in(engine2, rt2), "cancelled");
    assert_int_equal(hd_workflow_rerun(engine2, id, "nothing"), HD_USAGE);
    assert_non_null(strstr(hd_runtime_error(rt2)->message, "no node"));
    assert_int_equal(hd_workflow_rerun(engine2, id, "a"), HD_OK); /* with the variables it had */
    pump_both();
    assert_string_equal(status_in(engine2, rt2), "failed"); /* p has no value */
    assert_int_equal(calls, 2);
}

/* Fencing: an engine that was taken for dead cannot store anything any more. */
static void an_engine_whose_lease_was_taken_stands_down(void **state) {
    register_wait();
    start("w", "{}");
    pump_both();
    hd_cell lease = hd_cell_at(rt2, "main/lease/workflow");
    int64_t epoch = hd_value_as_int(hd_value_at(hd_read(rt2, pool, lease), "epoch"), 0);
    assert_true(epoch > 0);
    char json[100];
    snprintf(json, sizeof json, "{\"session\":\"x\",\"pid\":1,\"started\":0,\"epoch\":%d}",
             (int)epoch + 1);
    assert_int_equal(hd_write_json(rt2, lease, json), HD_OK);
    assert_int_equal(hd_runtime_sync(rt2), HD_OK);
    assert_int_equal(hd_workflow_signal(engine, id, "go", hd_bool(true)),
                     HD_OK); /* it does not know yet */
    pump_both();
    assert_false(hd_engine_is_active(engine));
    assert_string_equal(status_in(engine2, rt2), "running");
    assert_int_equal(calls, 0);
}

/* A start is stored by the close, also where nothing was pumped meanwhile. */
static void a_start_survives_a_close_that_follows_at_once(void **state) {
    register_wait();
    start("w", "{}");
    hd_engine_close(engine);
    pump_both();
    assert_true(hd_engine_is_active(engine2));
    assert_string_equal(status_in(engine2, rt2), "running");
}

/* ---- starts in transactions */

static void a_start_in_a_transaction_happens_if_it_commits(void **state) {
    hd_tx *tx;
    register_nodes("w", "{'id':'out','kind':'RETURN','value':7}", "['in','out']");
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    assert_int_equal(hd_workflow_start_in(engine, tx, "w", hd_object(), NULL, id), HD_OK);
    hd_tx_abort(tx);
    pump_both();
    assert_string_equal(status_in(engine, rt), "");
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    assert_int_equal(hd_workflow_start_in(engine, tx, "w", hd_object(), NULL, id), HD_OK);
    assert_int_equal(hd_tx_set_json(tx, hd_cell_at(rt, "main/beside"), "1"), HD_OK);
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
    pump_both();
    assert_string_equal(status_in(engine, rt), "done");
}

static const char *spawned_key; /* NULL: a start without one */
static char spawned[HD_INSTANCE_ID_SIZE];

/* Starts an instance of "w" with n = 1 in a transaction that reads main/x. The other runtime has changed that, or has
 * made an instance with the key, so that the commit is refused; its verdict comes after this pump's commit of the
 * engine. */
static hd_status spawn(hd_action *a, hd_value args, void *ctx) {
    hd_start_options o = { .key = spawned_key };
    hd_tx *tx;
    assert_int_equal(hd_write(rt2, hd_cell_at(rt2, "main/x"), hd_int(NULL, 2)), HD_OK);
    if (spawned_key)
        assert_int_equal(hd_workflow_start(engine2, "w", parse("{'n':2}"), &o, spawned), HD_OK);
    assert_int_equal(hd_runtime_sync(rt2), HD_OK);
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    assert_int_equal(hd_value_as_int(hd_tx_read(tx, hd_cell_at(rt, "main/x"), 0), 0), 1);
    assert_int_equal(hd_workflow_start_in(engine, tx, "w", parse("{'n':1}"), &o, spawned), HD_OK);
    assert_int_equal(hd_tx_commit(tx, note_verdict, ctx), HD_OK);
    return hd_action_return(a, hd_null());
}

static void spawn_in_vain(void) {
    hd_status status = HD_PENDING;
    hd_action_spec spec = { .name = "spawn", .fn = spawn, .ctx = &status, .here = true };
    assert_int_equal(hd_action_register(engine, &spec), HD_OK);
    register_ir(
        "{'heddle':1,'name':'w','inputs':[{'name':'n'}],'functions':[{'name':'run','params':["
        "'n'],'nodes':[{'id':'in','kind':'ENTRY'},{'id':'a','kind':'ACTION','action':'count'}"
        ",{'id':'out','kind':'RETURN','value':['name','n']}],"
        "'edges':[['in','a'],['a','out']]}]}");
    register_nodes("spawner",
                   "{'id':'a','kind':'ACTION','action':'spawn'},{'id':'out','kind':'RETURN'}",
                   "['in','a'],['a','out']");
    assert_int_equal(hd_write(rt, hd_cell_at(rt, "main/x"), hd_int(NULL, 1)), HD_OK);
    pump_both();
    start("spawner", "{}");
    for (int i = 0; i < 12; i++) assert_in_range(hd_runtime_pump(rt), 0, HD_PENDING);
    assert_int_equal(status, HD_STALE);
    pump_both();
    assert_result("null"); /* of the spawner */
}

/* The engine had walked the instance, and waited for another commit to store that. */
static void a_start_whose_commit_is_refused_does_not_happen(void **state) {
    spawned_key = NULL;
    spawn_in_vain();
    assert_false(hd_value_exists(hd_read(rt, pool, hd_workflow_cell(engine, spawned))));
    assert_int_equal(calls, 0);
}

static void the_instance_of_a_lost_race_of_starts_has_the_winners_input(void **state) {
    spawned_key = "one";
    spawn_in_vain();
    snprintf(id, sizeof id, "%s", spawned);
    assert_result("2");
    assert_int_equal(calls, 1);
}

/* ---- telling */

static int told;
static hd_status told_status;
static void note_end(const char *which, hd_status status, hd_value result, void *ctx) {
    assert_string_equal(which, id);
    told++;
    told_status = status;
    assert_true(status || hd_value_as_bool(result, false));
}

static void the_end_is_told_once_in_either_engine(void **state) {
    told = 0;
    register_wait();
    start("w", "{}");
    pump_both();
    assert_int_equal(hd_workflow_then(engine, id, note_end, NULL), HD_OK);
    assert_int_equal(hd_workflow_then(engine2, id, note_end, NULL), HD_OK);
    pump_both();
    assert_int_equal(told, 0);
    assert_int_equal(hd_workflow_signal(engine, id, "go", hd_bool(true)), HD_OK);
    pump_both();
    assert_int_equal(told, 2);
    assert_int_equal(told_status, HD_OK);
    assert_int_equal(hd_workflow_then(engine2, id, note_end, NULL), HD_OK); /* it is over already */
    pump_both();
    assert_int_equal(told, 3);
}

static char four[4][HD_INSTANCE_ID_SIZE];

static void cancel_four(const char *which, hd_status status, hd_value result, void *ctx) {
    told++;
    for (int i = 0; i < 4; i++) (void)hd_workflow_cancel(engine2, four[i]);
}

/* hd_workflow_cancel looks at what others have written, in the middle of telling just that. */
static void a_function_that_hears_of_an_end_may_cancel_others(void **state) {
    told = 0;
    register_wait();
    for (int i = 0; i < 4; i++) {
        start("w", "{}");
        snprintf(four[i], sizeof four[i], "%s", id);
    }
    pump_both();
    for (int i = 0; i < 4; i++)
        assert_int_equal(hd_workflow_then(engine2, four[i], cancel_four, NULL), HD_OK);
    pump_both();
    for (int i = 0; i < 4; i++)
        assert_int_equal(hd_workflow_signal(engine, four[i], "go", hd_bool(true)), HD_OK);
    pump_both();
    assert_int_equal(told, 4);
}

/* ---- processes */

static char file[64];

static void run_child(int ready) {
    hd_runtime *r;
    hd_engine *e;
    hd_error error;
    if (hd_open(file, NULL, &r, &error) || hd_engine_open(r, NULL, &e, &error)) _exit(1);
    if (!hd_engine_is_active(e)) _exit(2);
    if (write(ready, "x", 1) != 1) _exit(3);
    hd_runtime_run(r);
    _exit(0);
}

/* Within a second of a kill another process goes on. */
static void another_process_goes_on_when_the_active_one_is_killed(void **state) {
    int fds[2];
    char byte;
    hd_env real = hd_env_system();
    hd_error error;
    snprintf(file, sizeof file, "/tmp/heddle-lease-%d.db", (int)getpid());
    assert_int_equal(pipe(fds), 0);
    pid_t child = fork();
    if (!child) run_child(fds[1]);
    assert_int_equal(read(fds[0], &byte, 1), 1);
    assert_int_equal(hd_open(file, NULL, &rt, &error), HD_OK);
    assert_int_equal(hd_engine_open(rt, NULL, &engine, &error), HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    assert_false(hd_engine_is_active(engine));
    register_nodes(
        "w", "{'id':'s','kind':'SLEEP','seconds':0.01},{'id':'out','kind':'RETURN','value':7}",
        "['in','s'],['s','out']");
    start("w", "{}");
    assert_result("7"); /* the child ran it */
    assert_int_equal(kill(child, SIGKILL), 0);
    uint64_t before = real.monotonic_ns(real.ctx);
    start("w", "{}");
    assert_result("7");
    assert_true(hd_engine_is_active(engine));
    assert_in_range(real.monotonic_ns(real.ctx) - before, 0, 1000000000);
    waitpid(child, NULL, 0);
    hd_pool_close(pool);
    assert_int_equal(hd_close(rt), HD_OK);
    close(fds[0]);
    close(fds[1]);
    unlink(file);
}

int main(void) {
#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(a_start_in_a_handler_is_no_read_of_the_handler),
        IN_A_WORLD(the_first_engine_of_a_space_is_active),
        IN_A_WORLD(a_transaction_that_the_close_ends_starts_a_workflow),
        IN_A_WORLD(what_one_that_stands_by_starts_runs_in_the_active_one),
        IN_A_WORLD(the_active_one_wins_the_race_of_two_starts),
        IN_A_WORLD(one_that_stands_by_wins_the_race_of_two_starts),
        IN_A_WORLD(messages_of_one_that_stands_by_reach_the_instance_once),
        IN_A_WORLD(messages_are_gone_when_they_are_answered),
        IN_A_WORLD(another_goes_on_when_the_active_one_is_closed),
        IN_A_WORLD(signals_keep_their_order_when_another_engine_rises),
        IN_A_WORLD(messages_wait_until_an_engine_is_active),
        IN_A_WORLD(what_follows_a_rerun_by_another_engine_concerns_the_new_run),
        IN_A_WORLD(a_rerun_waits_until_an_engine_is_active),
        IN_A_WORLD(an_engine_whose_lease_was_taken_stands_down),
        IN_A_WORLD(a_start_survives_a_close_that_follows_at_once),
        IN_A_WORLD(a_start_in_a_transaction_happens_if_it_commits),
        IN_A_WORLD(a_start_whose_commit_is_refused_does_not_happen),
        IN_A_WORLD(the_instance_of_a_lost_race_of_starts_has_the_winners_input),
        IN_A_WORLD(the_end_is_told_once_in_either_engine),
        IN_A_WORLD(a_function_that_hears_of_an_end_may_cancel_others),
        cmocka_unit_test(another_process_goes_on_when_the_active_one_is_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
