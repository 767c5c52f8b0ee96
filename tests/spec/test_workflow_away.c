/* test_workflow_away.c -- steps that the active engine does not serve go through the store to a process that does
 * (docs/WORKERS.md, "Through the store"). Two runtimes stand for two processes: in one memory, on one file, and with
 * HD_STORE=postgres on a server. */
#define _DEFAULT_SOURCE
#include "lab_place.h"
#include "workflow_world.h"

static hd_memory *memory;
static lab_store_place place;
static hd_runtime *rt2;
static hd_engine *engine2;
static int calls, calls2; /* of the action of this name in the active engine, and in the other */
static uint64_t token;    /* of the last attempt that the program ends later */
static int revoked;
static bool virtual_time;
static int too_long; /* so many commits of `rt` are refused as longer than the store takes */
static int refused;  /* so many were */

static hd_status judge(const hd_runtime *from, void *ctx) {
    if (from != rt || !too_long) return HD_OK;
    too_long--;
    refused++;
    return HD_LIMIT;
}

static void register_actions(hd_engine *e) {}

static void open_one(const hd_engine_options *options, hd_runtime **out, hd_engine **out_engine) {
    hd_error error = { 0 };
    hd_options o = { .env = virtual_time ? lab_env_of(env) : NULL, .memory = memory };
    if (hd_open(where, &o, out, &error)) fail_msg("%s", error.message);
    if (hd_engine_open(*out, options, out_engine, &error)) fail_msg("%s", error.message);
}

static void open_second(const hd_engine_options *options) { open_one(options, &rt2, &engine2); }

static void set_up_both(void) {
    calls = calls2 = revoked = 0;
    token = 0;
    open_one(NULL, &rt, &engine);
    open_second(NULL);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
}

static int set_up_memory(void **state) {
    where = NULL;
    virtual_time = true;
    env = lab_env_open();
    assert_int_equal(hd_memory_open(lab_env_of(env), &memory), HD_OK);
    too_long = refused = 0;
    hd_memory_intercept(memory, judge, NULL, NULL);
    set_up_both();
    return 0;
}

static int set_up_place(void **state) {
    lab_place_make(&place);
    where = place.name;
    virtual_time = false; /* who lives on a server is told by its clock */
    memory = NULL;
    env = lab_env_open();
    set_up_both();
    return 0;
}

static bool one_more(const hd_listing *entry, void *ctx) { return ++*(int *)ctx, true; }

static int count_listing(const char *kind) {
    int count = 0;
    assert_int_equal(hd_runtime_list(rt, "main", kind, NULL, one_more, &count), HD_OK);
    return count;
}

static void pump_both(void) {
    if (rt) assert_in_range(hd_runtime_pump(rt), 0, HD_PENDING);
    if (rt2) assert_in_range(hd_runtime_pump(rt2), 0, HD_PENDING);
    if (rt) assert_int_equal(hd_runtime_sync(rt), HD_OK);
    if (rt2) assert_int_equal(hd_runtime_sync(rt2), HD_OK);
}

/* The bound ends a test that would wait for ever, and no other. */
#define UNTIL(condition)                                                                           \
    for (int turn_ = 0; !(condition); turn_++) {                                                   \
        if (turn_ == 20000) fail_msg("it never holds: %s", #condition);                            \
        pump_both();                                                                               \
    }

static void pump_some(void) {
    for (int i = 0; i < 20; i++) pump_both();
}

/* Whatever has happened, nothing is left of it. */
static int tear_down(void **state) {
    if (rt2) assert_int_equal(hd_close(rt2), HD_OK);
    rt2 = NULL;
    UNTIL(!count_listing("workflow.worker") && !count_listing("workflow.tasks") &&
          !count_listing("workflow.inbox"));
    hd_pool_close(pool);
    assert_int_equal(hd_close(rt), HD_OK);
    if (memory) hd_memory_close(memory);
    else lab_place_remove(&place);
    lab_env_close(env);
    return 0;
}

static hd_status count_here(hd_action *a, hd_value args, void *ctx) {
    ++*(int *)ctx;
    return hd_action_return(a, hd_value_index(args, 0));
}

static void serve(hd_engine *e, int *counts) {
    hd_action_spec spec = { .name = "work", .fn = count_here, .ctx = counts, .here = true };
    assert_int_equal(hd_action_register(e, &spec), HD_OK);
}

static hd_status begin_later(hd_action *a, hd_value args, void *ctx) {
    ++*(int *)ctx;
    token = hd_action_token(a);
    return HD_PENDING;
}

static void serve_later(hd_engine *e, int *counts) {
    hd_action_spec spec = { .name = "work", .fn = begin_later, .ctx = counts, .later = true };
    assert_int_equal(hd_action_register(e, &spec), HD_OK);
}

static void register_work(const char *more) {
    char nodes[1000];
    snprintf(nodes, sizeof nodes,
             "{'id':'a','kind':'ACTION','action':'work','args':[42],'into':['name','r']%s},"
             "{'id':'out','kind':'RETURN','value':['name','r']}",
             more);
    register_nodes("w", nodes, "['in','a'],['a','out']");
}

static bool is_over(void) {
    const char *status = field("status");
    return *status && strcmp(status, "running") != 0;
}

static const char *step_says(const char *key) {
    hd_value state;
    assert_int_equal(hd_workflow_state(engine, id, pool, &state), HD_OK);
    hd_value v = hd_value_at(hd_value_index(hd_value_at(state, "steps"), 0), key);
    return hd_value_as_text(v, "");
}

/* ---- */

static void a_step_goes_to_the_process_that_serves_it(void **state) {
    serve(engine2, &calls2);
    register_work("");
    start("w", "{}");
    UNTIL(is_over());
    assert_result("42");
    assert_int_equal(calls2, 1);
    assert_false(hd_engine_is_active(engine2));
}

static hd_status add_on_a_thread(hd_action *a, hd_value args, void *ctx) {
    return hd_action_return(
        a, hd_int(hd_action_pool(a), hd_value_as_int(hd_value_index(args, 0), 0) + 1));
}

static void a_step_runs_on_a_thread_of_the_other_process(void **state) {
    hd_action_spec spec = { .name = "work", .fn = add_on_a_thread };
    assert_int_equal(hd_action_register(engine2, &spec), HD_OK);
    register_work("");
    start("w", "{}");
    UNTIL(is_over());
    assert_result("43");
}

static void what_this_process_serves_stays_here(void **state) {
    serve(engine2, &calls2);
    serve(engine, &calls);
    register_work("");
    for (int i = 0; i < 10; i++) {
        start("w", "{}");
        UNTIL(is_over());
    }
    assert_int_equal(calls, 10);
    assert_int_equal(calls2, 0);
    hd_action_unregister(engine, "work");
    start("w", "{}");
    UNTIL(is_over());
    assert_int_equal(calls2, 1);
}

static void an_observer_offers_its_actions(void **state) {
    hd_engine_close(engine2);
    assert_int_equal(hd_engine_open(rt2, &(hd_engine_options){ .observer = true }, &engine2, NULL),
                     HD_OK);
    serve(engine2, &calls2);
    register_work("");
    start("w", "{}");
    UNTIL(is_over());
    assert_int_equal(calls2, 1);
}

/* A process may say later what it serves, and take it back. */
static void actions_come_and_go(void **state) {
    register_work("");
    start("w", "{}");
    pump_some();
    assert_string_equal(step_says("state"), "no worker");
    serve(engine2, &calls2);
    UNTIL(is_over());
    hd_action_unregister(engine2, "work");
    UNTIL(!count_listing("workflow.worker"));
    start("w", "{}");
    pump_some();
    assert_string_equal(step_says("state"), "no worker");
    serve(engine2, &calls2);
    UNTIL(is_over());
    assert_int_equal(calls2, 2);
}

static hd_status fail_once(hd_action *a, hd_value args, void *ctx) {
    ++*(int *)ctx;
    if (hd_action_attempt(a) == 1) return hd_action_raise(a, "ConnectionError", "not now");
    return hd_action_raise(a, "ValueError", "attempt %u", hd_action_attempt(a));
}

static void exceptions_and_retries_are_as_with_other_workers(void **state) {
    hd_action_spec spec = { .name = "work", .fn = fail_once, .ctx = &calls2, .here = true };
    assert_int_equal(hd_action_register(engine2, &spec), HD_OK);
    register_work(",'retry':{'attempts':3,'backoff':0,'on':['ConnectionError']}");
    start("w", "{}");
    UNTIL(is_over());
    assert_raised("ValueError");
    assert_int_equal(calls2, 2);
}

static void an_exception_crosses_as_a_value(void **state) {
    hd_value result;
    serve_later(engine2, &calls2);
    register_work("");
    start("w", "{}");
    UNTIL(token);
    assert_int_equal(hd_attempt_raise(engine2, token,
                                      parse("{'$$error':'KeyError','args':['order'],'attrs':{}}")),
                     HD_OK);
    UNTIL(is_over());
    assert_int_equal(await(&result), HD_FAILED);
    assert_string_equal(hd_value_as_text(hd_value_at(result, "$error"), ""), "KeyError");
    assert_string_equal(hd_value_as_text(hd_value_index(hd_value_at(result, "args"), 0), ""),
                        "order");
}

static void where_a_step_is_can_be_seen(void **state) {
    hd_value state_;
    serve_later(engine2, &calls2);
    register_work("");
    start("w", "{}");
    UNTIL(token);
    assert_int_equal(hd_workflow_state(engine, id, pool, &state_), HD_OK);
    hd_value step = hd_value_index(hd_value_at(state_, "steps"), 0);
    assert_string_equal(hd_value_as_text(hd_value_at(step, "state"), ""), "running");
    assert_int_equal(hd_value_as_int(hd_value_at(hd_value_at(step, "process"), "pid"), 0),
                     getpid());
    assert_int_equal(count_listing("workflow.tasks"), 1);
    assert_int_equal(hd_attempt_return(engine2, token, hd_int(NULL, 5)), HD_OK);
    UNTIL(is_over());
    assert_result("5");
}

static void note_revoked(uint64_t which, const char *why, void *ctx) {
    assert_int_equal(which, token);
    revoked++;
}

/* W1: what comes after the step was taken back is late. */
static void a_step_that_is_cancelled_is_taken_back(void **state) {
    hd_value result;
    hd_engine_set_revoked(engine2, note_revoked, NULL);
    serve_later(engine2, &calls2);
    register_work("");
    start("w", "{}");
    UNTIL(token);
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    UNTIL(revoked);
    assert_int_equal(hd_attempt_return(engine2, token, hd_int(NULL, 5)), HD_NOT_FOUND);
    UNTIL(is_over());
    assert_int_equal(await(&result), HD_ABORTED);
    assert_int_equal(revoked, 1);
}

/* Both at once: the outcome is on its way when the step is taken back. */
static void an_outcome_that_comes_too_late_changes_nothing(void **state) {
    hd_value result;
    serve_later(engine2, &calls2);
    register_work("");
    start("w", "{}");
    UNTIL(token);
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    assert_in_range(hd_runtime_pump(rt), 0, HD_PENDING);
    assert_int_equal(hd_attempt_return(engine2, token, hd_int(NULL, 5)), HD_OK);
    UNTIL(is_over());
    pump_some();
    assert_int_equal(await(&result), HD_ABORTED);
}

/* Steps of a process that closes in order go to another, and that does not count as a loss. */
static void steps_of_a_process_that_leaves_are_given_back(void **state) {
    serve_later(engine2, &calls2);
    register_work("");
    start("w", "{}");
    UNTIL(token);
    assert_int_equal(hd_close(rt2), HD_OK);
    rt2 = NULL;
    UNTIL(!strcmp(step_says("state"), "no worker"));
    assert_int_equal(stats_now().lost, 0);
    open_second(NULL);
    serve(engine2, &calls2);
    UNTIL(is_over());
    assert_result("42");
    assert_int_equal(calls2, 2);
}

/* The engine that takes over runs the step again; what the process has said to the one before is not needed. */
static void the_process_itself_takes_over(void **state) {
    serve_later(engine2, &calls2);
    register_work("");
    start("w", "{}");
    UNTIL(token);
    uint64_t first = token;
    hd_pool_close(pool);
    assert_int_equal(hd_close(rt), HD_OK);
    rt = rt2, engine = engine2, rt2 = NULL;
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    UNTIL(token != first);
    assert_true(hd_engine_is_active(engine));
    assert_int_equal(hd_attempt_return(engine, first, hd_int(NULL, 1)), HD_NOT_FOUND);
    assert_int_equal(hd_attempt_return(engine, token, hd_int(NULL, 2)), HD_OK);
    UNTIL(is_over());
    assert_result("2");
}

/* A third engine takes over: the process goes on working, for the new one. */
static void another_engine_takes_over(void **state) {
    hd_runtime *third;
    hd_engine *third_engine;
    hd_engine_close(engine2);
    assert_int_equal(hd_engine_open(rt2, &(hd_engine_options){ .observer = true }, &engine2, NULL),
                     HD_OK);
    serve_later(engine2, &calls2);
    register_work("");
    start("w", "{}");
    UNTIL(token);
    uint64_t first = token;
    open_one(NULL, &third, &third_engine);
    hd_pool_close(pool);
    assert_int_equal(hd_close(rt), HD_OK);
    rt = third, engine = third_engine;
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    UNTIL(token != first);
    assert_int_equal(hd_attempt_return(engine2, token, hd_int(NULL, 3)), HD_OK);
    UNTIL(is_over());
    assert_result("3");
    assert_int_equal(calls2, 2);
}

/* What a program writes inside of a transaction is committed with the completion: only the engine's process can. */
static hd_status touch(hd_action *a, hd_value args, void *ctx) {
    return hd_tx_set_json(hd_action_tx(a), hd_cell_at(rt2, "main/touched"), "1");
}

static void actions_within_transactions_are_not_offered(void **state) {
    hd_action_spec spec = { .name = "work", .fn = touch, .transaction = true };
    assert_int_equal(hd_action_register(engine2, &spec), HD_OK);
    register_work("");
    start("w", "{}");
    pump_some();
    assert_string_equal(step_says("state"), "no worker");
    assert_int_equal(count_listing("workflow.worker"), 0);
}

static void a_process_gets_steps_of_its_queues_only(void **state) {
    static const char *const queues[] = { "gpu", NULL };
    assert_int_equal(hd_close(rt2), HD_OK);
    open_second(&(hd_engine_options){ .queues = queues });
    serve(engine2, &calls2);
    register_work("");
    start("w", "{}");
    pump_some();
    assert_string_equal(step_says("state"), "no worker");
    hd_start_options o = { .key = "two", .queue = "gpu" };
    assert_int_equal(hd_workflow_start(engine, "w", hd_object(), &o, id), HD_OK);
    UNTIL(is_over());
    assert_int_equal(calls2, 1);
}

static bool note_name(const hd_listing *entry, void *ctx) {
    snprintf(ctx, 200, "%s", entry->id);
    return false;
}

/* A process that was taken for dead and lives finds its documents gone, and is there again. */
static void a_process_that_was_taken_for_dead_is_there_again(void **state) {
    hd_engine_set_revoked(engine2, note_revoked, NULL);
    serve_later(engine2, &calls2);
    register_work("");
    start("w", "{}");
    UNTIL(token);
    uint64_t first = token;
    char name[200] = "";
    hd_tx *tx;
    assert_int_equal(hd_runtime_list(rt, "main", "workflow.worker", NULL, note_name, name), HD_OK);
    hd_cell announcement = hd_cell_of(rt, "main", HD_SCOPE_SPACE, name, NULL);
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    assert_int_equal(hd_tx_remove(tx, announcement), HD_OK);
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
    UNTIL(token != first);
    assert_int_equal(revoked, 1);
    assert_int_equal(hd_attempt_return(engine2, token, hd_int(NULL, 4)), HD_OK);
    UNTIL(is_over());
    assert_result("4");
}

static void many_steps_are_each_done_once(void **state) {
    serve(engine2, &calls2);
    register_nodes("fan",
                   "{'id':'f','kind':'FAN_HEAD','over':['call','range',[300]],'into':['name','x']},"
                   "{'id':'a','kind':'ACTION','action':'work','args':[['name','x']],'into':['name',"
                   "'r']},{'id':'j','kind':'BARRIER','give':['name','r'],'into':['name','all']},"
                   "{'id':'out','kind':'RETURN','value':['call','sum',[['name','all']]]}",
                   "['in','f'],['f','a','ELEM'],['a','j','JOIN'],['j','out']");
    start("fan", "{}");
    UNTIL(is_over());
    assert_result("44850");
    assert_int_equal(calls2, 300);
}

/* ---- several shards */

enum { SHARDS = 4, FLOWS = 24 };

static char flows[FLOWS][HD_INSTANCE_ID_SIZE];

static hd_engine_options in_shards(bool observer) {
    return (hd_engine_options){ .shards = SHARDS, .observer = observer };
}

static void open_in_shards(bool second_observes) {
    hd_engine_options first = in_shards(false), second = in_shards(second_observes);
    hd_engine_close(engine2);
    hd_engine_close(engine);
    pump_some(); /* each has heard that the other's is closed: the number of shards may be changed */
    assert_int_equal(hd_engine_open(rt, &first, &engine, NULL), HD_OK);
    assert_int_equal(hd_engine_open(rt2, &second, &engine2, NULL), HD_OK);
}

static uint32_t shards_of(const hd_engine *e) {
    hd_engine_stats stats;
    hd_engine_stat(e, &stats);
    return (uint32_t)stats.shards;
}

static void serve_as(hd_engine *e, const char *name, int *counts) {
    hd_action_spec spec = { .name = name, .fn = count_here, .ctx = counts, .here = true };
    assert_int_equal(hd_action_register(e, &spec), HD_OK);
}

static void start_flows(void) {
    for (int i = 0; i < FLOWS; i++)
        assert_int_equal(hd_workflow_start(engine, "w", hd_object(), NULL, flows[i]), HD_OK);
}

static bool all_have(const char *status) {
    for (int i = 0; i < FLOWS; i++) {
        hd_value doc = hd_read(rt, pool, hd_workflow_cell(engine, flows[i]));
        bool has = !strcmp(hd_value_as_text(hd_value_at(doc, "status"), ""), status);
        hd_pool_clear(pool);
        if (!has) return false;
    }
    return true;
}

static void an_observer_does_steps_of_every_shard(void **state) {
    open_in_shards(true);
    serve(engine2, &calls2);
    register_work("");
    start_flows();
    UNTIL(all_have("done"));
    assert_int_equal(calls2, FLOWS);
}

/* Each runs half of the shards, and has one of two actions. */
static void engines_do_steps_for_each_other(void **state) {
    open_in_shards(false);
    serve_as(engine, "work", &calls);
    serve_as(engine2, "other", &calls2);
    UNTIL(shards_of(engine) == SHARDS / 2 && shards_of(engine2) == SHARDS / 2);
    register_nodes("w",
                   "{'id':'a','kind':'ACTION','action':'work','args':[42]},"
                   "{'id':'b','kind':'ACTION','action':'other','args':[43]},"
                   "{'id':'out','kind':'RETURN','value':1}",
                   "['in','a'],['a','b'],['b','out']");
    start_flows();
    UNTIL(all_have("done"));
    assert_int_equal(calls, FLOWS);
    assert_int_equal(calls2, FLOWS);
}

/* Two engines serve different queues with the same action. The second one does a step for the first: it must not give
 * that step back to the first engine, to which it gives steps of its own. */
static void a_step_is_handed_on_once(void **state) {
    static const char *const plain[] = { "", NULL }, *const gpu[] = { "gpu", NULL };
    hd_engine_options first = in_shards(false), second = in_shards(false);
    first.queues = plain, second.queues = gpu;
    hd_engine_close(engine2);
    hd_engine_close(engine);
    pump_some();
    assert_int_equal(hd_engine_open(rt, &first, &engine, NULL), HD_OK);
    assert_int_equal(hd_engine_open(rt2, &second, &engine2, NULL), HD_OK);
    serve(engine, &calls);
    serve(engine2, &calls2);
    UNTIL(shards_of(engine) == SHARDS / 2 && shards_of(engine2) == SHARDS / 2);
    register_nodes("w",
                   "{'id':'a','kind':'ACTION','action':'work','args':[42],'queue':'gpu'},"
                   "{'id':'b','kind':'ACTION','action':'work','args':[43]},"
                   "{'id':'c','kind':'ACTION','action':'work','args':[44],'queue':'gpu'},"
                   "{'id':'out','kind':'RETURN','value':1}",
                   "['in','a'],['a','b'],['b','c'],['c','out']");
    start_flows();
    UNTIL(all_have("done"));
    assert_int_equal(calls, FLOWS);
    assert_int_equal(calls2, 2 * FLOWS);
}

/* The engine that has the shard now begins the steps that were elsewhere again, and no entry of the one before is
 * left. */
static void a_shard_that_goes_on_elsewhere_begins_its_steps_again(void **state) {
    hd_runtime *third;
    hd_engine *third_engine;
    hd_engine_options options = in_shards(false);
    open_in_shards(true);
    serve_later(engine2, &calls2);
    register_work("");
    start_flows();
    UNTIL(calls2 == FLOWS);
    open_one(&options, &third, &third_engine);
    hd_pool_close(pool);
    assert_int_equal(hd_close(rt), HD_OK);
    rt = third, engine = third_engine;
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    UNTIL(calls2 == 2 * FLOWS);
    hd_engine_close(engine2);
    serve(engine, &calls);
    UNTIL(all_have("done"));
    assert_int_equal(calls, FLOWS);
}

/* ---- time */

static void advance_both(uint64_t ms) {
    lab_env_advance_ms(env, ms);
    pump_some();
}

static void a_process_that_is_silent_loses_its_step(void **state) {
    hd_engine_set_revoked(engine2, note_revoked, NULL);
    serve_later(engine2, &calls2);
    register_work(",'heartbeat':10");
    start("w", "{}");
    UNTIL(token);
    for (int i = 0; i < 5; i++) {
        advance_both(6000);
        assert_int_equal(hd_attempt_heartbeat(engine2, token), HD_OK);
        pump_some();
    }
    assert_int_equal(calls2, 1);
    uint64_t first = token;
    advance_both(10001);
    UNTIL(token != first);
    assert_int_equal(revoked, 1);
    assert_int_equal(stats_now().lost, 1);
    assert_int_equal(hd_attempt_return(engine2, token, hd_int(NULL, 4)), HD_OK);
    UNTIL(is_over());
    assert_result("4");
}

static void a_step_that_takes_too_long_is_taken_back(void **state) {
    hd_engine_set_revoked(engine2, note_revoked, NULL);
    serve_later(engine2, &calls2);
    register_work(",'timeout':5");
    start("w", "{}");
    UNTIL(token);
    advance_both(5001);
    UNTIL(is_over());
    assert_raised("TimeoutError");
    UNTIL(revoked);
}

/* At rest neither side has anything to do, and nothing is written. */
static void processes_at_rest_do_nothing(void **state) {
    serve(engine2, &calls2);
    UNTIL(count_listing("workflow.worker"));
    pump_some();
    hd_store_stats before, after;
    hd_runtime_store_stats(rt, &before);
    for (int i = 0; i < 5; i++) advance_both(60000);
    hd_runtime_store_stats(rt, &after);
    assert_int_equal(after.commits, before.commits);
    assert_true(hd_runtime_deadline(rt) == UINT64_MAX);
    assert_true(hd_runtime_deadline(rt2) == UINT64_MAX);
}

/* ---- memory */

static void pump_gently(void) {
    (void)hd_runtime_pump(rt);
    (void)hd_runtime_pump(rt2);
    (void)hd_runtime_sync(rt);
    (void)hd_runtime_sync(rt2);
    lab_env_advance_ms(env, 10); /* what has failed is tried again soon */
}

/* W4: whichever allocation fails while a step goes away and comes back, the step is done in the end. */
static bool survives_failure_of(uint64_t n) {
    hd_value result;
    hd_action_spec spec = { .name = "work", .fn = count_here, .ctx = &calls2, .here = true };
    set_up_memory(NULL);
    register_work("");
    start("w", "{}");
    pump_some();
    lab_env_fail_at(env, n);
    hd_status status = hd_action_register(engine2, &spec);
    for (int i = 0; i < 25; i++) pump_gently();
    bool failed = lab_env_failed(env);
    lab_env_fail_at(env, 0);
    if (status) serve(engine2, &calls2);
    for (int i = 0; i < 1000 && !is_over(); i++) pump_gently();
    if (!is_over()) fail_msg("allocation %llu: it is not over", (unsigned long long)n);
    assert_int_equal(await(&result), HD_OK);
    assert_string_equal(printed(result), "42");
    assert_in_range(calls2, 1, 2);
    tear_down(NULL);
    return failed;
}

static void any_allocation_may_fail(void **state) {
    for (uint64_t n = 1; survives_failure_of(n); n++) {}
}

/* ---- what is longer than the store takes */

static bool is_done(const char *which) {
    memcpy(id, which, strlen(which) + 1);
    return is_over();
}

/* The commit that stores the end of one instance also has the step of another. Refused, they are stored apart, and
 * neither instance ends because of it. */
static void a_step_and_an_instance_are_stored_apart(void **state) {
    register_work(",'limit':{'key':'k','most':1}");
    serve_later(engine2, &calls2);
    start_keyed("w", "first", "{}");
    UNTIL(token);
    start_keyed("w", "next", "{}");
    pump_some();
    too_long = 1;
    for (int i = 0; !is_done("w/first") || !is_done("w/next"); i++) {
        assert_in_range(i, 0, 1000);
        if (token) assert_int_equal(hd_attempt_return(engine2, token, hd_int(NULL, 5)), HD_OK);
        token = 0;
        pump_some();
    }
    assert_int_equal(refused, 1);
    assert_result("5");
    memcpy(id, "w/first", sizeof "w/first");
    assert_result("5");
}

/* A step waits to be written for the other process. */
static void serve_elsewhere(void) {
    register_work("");
    start("w", "{}");
    pump_some();
    serve(engine2, &calls2);
}

/* A step that is longer than the store takes by itself. */
static void a_step_that_is_too_long_fails(void **state) {
    serve_elsewhere();
    too_long = 1;
    UNTIL(is_over());
    assert_raised("ValueError");
    assert_int_equal(refused, 1);
    assert_string_equal(field("status"), "failed");
}

static void what_is_too_long_is_not_written_again_and_again(void **state) {
    serve_elsewhere();
    for (int i = 0; i < 3; i++) assert_in_range(hd_runtime_pump(rt2), 0, HD_PENDING);
    assert_int_equal(hd_runtime_sync(rt2), HD_OK);
    too_long = 1000000;
    for (int i = 0; i < 2000; i++) {
        for (int k = 0; k < 10; k++) (void)hd_runtime_pump(rt);
        lab_env_advance_ms(env, 1);
    }
    assert_in_range(refused, 1, 40);
    too_long = 0;
    lab_env_advance_ms(env, 11000);
    pump_some();
}

int main(void) {
#define IN_MEMORY(test)  cmocka_unit_test_setup_teardown(test, set_up_memory, tear_down)
#define IN_A_PLACE(test) cmocka_unit_test_setup_teardown(test, set_up_place, tear_down)
#define EVERYWHERE(test) IN_MEMORY(test), IN_A_PLACE(test)
    const struct CMUnitTest tests[] = {
        EVERYWHERE(a_step_goes_to_the_process_that_serves_it),
        EVERYWHERE(a_step_runs_on_a_thread_of_the_other_process),
        EVERYWHERE(what_this_process_serves_stays_here),
        EVERYWHERE(an_observer_offers_its_actions),
        EVERYWHERE(actions_come_and_go),
        EVERYWHERE(exceptions_and_retries_are_as_with_other_workers),
        EVERYWHERE(an_exception_crosses_as_a_value),
        EVERYWHERE(where_a_step_is_can_be_seen),
        EVERYWHERE(a_step_that_is_cancelled_is_taken_back),
        EVERYWHERE(an_outcome_that_comes_too_late_changes_nothing),
        EVERYWHERE(steps_of_a_process_that_leaves_are_given_back),
        EVERYWHERE(the_process_itself_takes_over),
        EVERYWHERE(another_engine_takes_over),
        EVERYWHERE(actions_within_transactions_are_not_offered),
        EVERYWHERE(a_process_gets_steps_of_its_queues_only),
        EVERYWHERE(a_process_that_was_taken_for_dead_is_there_again),
        EVERYWHERE(many_steps_are_each_done_once),
        EVERYWHERE(an_observer_does_steps_of_every_shard),
        EVERYWHERE(engines_do_steps_for_each_other),
        EVERYWHERE(a_step_is_handed_on_once),
        EVERYWHERE(a_shard_that_goes_on_elsewhere_begins_its_steps_again),
        IN_MEMORY(a_process_that_is_silent_loses_its_step),
        IN_MEMORY(a_step_that_takes_too_long_is_taken_back),
        IN_MEMORY(processes_at_rest_do_nothing),
        IN_MEMORY(a_step_and_an_instance_are_stored_apart),
        IN_MEMORY(a_step_that_is_too_long_fails),
        IN_MEMORY(what_is_too_long_is_not_written_again_and_again),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
