/* test_workflow_join.c -- where the two schedulers meet: actions within a transaction, events that a workflow sends,
 * cells that it waits for; and the builder's calls for them. */
#define _DEFAULT_SOURCE
#include "workflow_world.h"
#include <heddle/event.h>
#include <heddle/join.h>
#include <heddle/scheduler.h>
#include <heddle/workflow_build.h>

static int calls, runs, handled;
static bool interfere;

/* Adds to a counter. The first time another writer comes in between. */
static hd_status add(hd_action *a, hd_value args, void *ctx) {
    hd_tx *tx = hd_action_tx(a);
    hd_cell counter = hd_cell_at(rt, "main/counter");
    calls++;
    int64_t n = hd_value_as_int(hd_tx_get(tx, counter), 0);
    hd_status status = hd_tx_set(tx, counter, hd_int(hd_tx_pool(tx), n + 1));
    if (status) return status;
    if (interfere && calls == 1) return hd_action_raise(a, "ValueError", "not now");
    return hd_action_return(a, hd_int(NULL, n + 1));
}

static void register_actions(hd_engine *e) {
    hd_action_spec spec = { .name = "add", .fn = add, .transaction = true };
    assert_int_equal(hd_action_register(e, &spec), HD_OK);
    assert_int_equal(hd_workflow_join(e), HD_OK);
    assert_int_equal(hd_workflow_join(e), HD_EXISTS);
}

static int set_up(void **state) {
    calls = runs = handled = 0;
    interfere = false;
    return set_up_world(state);
}

static void register_flow(hd_flow *f) {
    hd_value ir;
    hd_error error = { 0 };
    if (hd_flow_ir(f, &ir, &error)) fail_msg("%s", error.message);
    hd_flow_close(f);
    if (hd_workflow_register(engine, ir, NULL, &error)) fail_msg("%s", error.message);
}

static hd_flow *flow(void) {
    hd_flow *f;
    assert_int_equal(hd_flow_open(pool, "w", &f), HD_OK);
    return f;
}

static const char *cell(const char *name) {
    return printed(hd_read(rt, pool, hd_cell_at(rt, name)));
}

static void what_an_action_writes_is_stored_with_its_completion(void **state) {
    hd_flow *f = flow();
    hd_flow_for(f, "i", "range(5)");
    hd_flow_action(f, "n", "add", NULL);
    hd_flow_end(f);
    hd_flow_return(f, "n");
    register_flow(f);
    start("w", "{}");
    assert_result("5");
    assert_string_equal(cell("main/counter"), "5");
    assert_int_equal(calls, 5);
}

/* The store never takes it: the document must not exist, and does. */
static hd_status claim_name(hd_action *a, hd_value args, void *ctx) {
    hd_tx *tx = hd_action_tx(a);
    calls++;
    hd_status status = hd_tx_require_absent(tx, hd_cell_at(rt, "main/taken"));
    return status ? status : hd_tx_set_int(tx, hd_cell_at(rt, "main/mine"), 1);
}

/* A commit that is refused for good fails the step, as often as its retry says. */
static void a_commit_that_is_refused_for_good_fails_the_step(void **state) {
    hd_action_spec spec = { .name = "claim", .fn = claim_name, .transaction = true };
    assert_int_equal(hd_action_register(engine, &spec), HD_OK);
    assert_int_equal(hd_write_json(rt, hd_cell_at(rt, "main/taken"), "1"), HD_OK);
    hd_flow *f = flow();
    hd_flow_try(f);
    hd_flow_action(f, NULL, "claim", NULL);
    hd_flow_retried(f, &(hd_flow_retry){ .attempts = 2 });
    hd_flow_except(f, "RuntimeError", "e");
    hd_flow_return(f, "str(e)");
    hd_flow_end(f);
    hd_flow_return(f, "'stored'");
    register_flow(f);
    start("w", "{}");
    hd_value result;
    assert_int_equal(hd_workflow_await(engine, id, pool, &result), HD_OK);
    assert_non_null(strstr(hd_value_as_text(result, ""), "its commit was refused"));
    assert_int_equal(calls, 2);
    assert_false(hd_value_exists(hd_read(rt, pool, hd_cell_at(rt, "main/mine"))));
}

/* Starts so many at once, and pumps without any time going by. */
static void start_claims(int count, char ids[][HD_INSTANCE_ID_SIZE]) {
    hd_action_spec spec = { .name = "claim", .fn = claim_name, .transaction = true };
    assert_int_equal(hd_action_register(engine, &spec), HD_OK);
    assert_int_equal(hd_write_json(rt, hd_cell_at(rt, "main/taken"), "1"), HD_OK);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    for (int i = 0; i < count; i++)
        assert_int_equal(hd_workflow_start(engine, "w", hd_object(), NULL, ids[i]), HD_OK);
    for (int i = 0; i < 200; i++) (void)hd_runtime_pump(rt);
}

/* Each gets its own verdict, at once; and a refusal that concerns one step is no trouble of the store. */
static void each_of_many_that_are_refused_fails(void **state) {
    char ids[5][HD_INSTANCE_ID_SIZE];
    hd_flow *f = flow();
    hd_flow_action(f, NULL, "claim", NULL);
    register_flow(f);
    start_claims(5, ids);
    assert_int_equal(calls, 5);
    for (int i = 0; i < 5; i++) {
        memcpy(id, ids[i], sizeof id);
        assert_string_equal(field("status"), "failed");
        assert_raised("RuntimeError");
    }
    assert_int_equal(lab_env_logged(env, "the store refuses a commit"), 0);
}

static void each_branch_that_is_refused_fails(void **state) {
    char ids[2][HD_INSTANCE_ID_SIZE];
    hd_flow *f = flow();
    hd_flow_each(f, "i", "range(3)");
    hd_flow_try(f);
    hd_flow_action(f, NULL, "claim", NULL);
    hd_flow_except(f, "RuntimeError", "e");
    hd_flow_action(f, NULL, "add", NULL);
    hd_flow_end(f);
    hd_flow_join(f, NULL, NULL);
    hd_flow_return(f, "1");
    register_flow(f);
    start_claims(2, ids);
    assert_int_equal(calls, 12); /* a claim and an addition of each */
    assert_string_equal(cell("main/counter"), "6");
    for (int i = 0; i < 2; i++) {
        memcpy(id, ids[i], sizeof id);
        assert_result("1");
    }
}

static hd_status replace_two(hd_action *a, hd_value args, void *ctx) {
    hd_tx *tx = hd_action_tx(a);
    hd_cell n = hd_cell_at(rt, "main/n");
    calls++;
    hd_status status = hd_tx_require_equal(tx, n, hd_int(hd_tx_pool(tx), 2));
    return status ? status : hd_tx_set_int(tx, n, 3);
}

/* Whether the value was another for a moment only is not known: the action runs some times more. */
static void a_value_that_is_not_the_required_one_fails_the_step(void **state) {
    hd_action_spec spec = { .name = "replace", .fn = replace_two, .transaction = true };
    assert_int_equal(hd_action_register(engine, &spec), HD_OK);
    assert_int_equal(hd_write_json(rt, hd_cell_at(rt, "main/n"), "1"), HD_OK);
    hd_flow *f = flow();
    hd_flow_action(f, NULL, "replace", NULL);
    hd_flow_return(f, "1");
    register_flow(f);
    for (int i = 1; i <= 2; i++) {
        start("w", "{}");
        for (int n = 0; n < 200; n++) (void)hd_runtime_pump(rt);
        assert_string_equal(field("status"), "failed");
        assert_raised("RuntimeError");
        assert_int_equal(calls, 10 * i);
    }
    assert_string_equal(cell("main/n"), "1");
    assert_int_equal(lab_env_logged(env, "the store refuses a commit"), 0);
    assert_int_equal(hd_write_json(rt, hd_cell_at(rt, "main/n"), "2"), HD_OK);
    start("w", "{}");
    assert_result("1");
    assert_int_equal(calls, 21);
}

static void what_a_failed_action_wrote_is_not_stored(void **state) {
    hd_flow *f = flow();
    interfere = true;
    hd_flow_action(f, "n", "add", NULL);
    hd_flow_retried(f, &(hd_flow_retry){ .attempts = 2 });
    hd_flow_return(f, "n");
    register_flow(f);
    start("w", "{}");
    assert_result("1");
    assert_string_equal(cell("main/counter"), "1");
    assert_int_equal(calls, 2);
}

/* Adds, and then returns what the engine does not take: too long a value, or no encoding. */
static hd_status add_wrongly(hd_action *a, hd_value args, void *ctx) {
    hd_status status = add(a, args, ctx);
    if (status) return status;
    if (!hd_value_as_bool(hd_value_at(args, "long"), false))
        return hd_action_return(a, parse("{'$$range':[1]}"));
    char *chars = malloc(17 << 20);
    memset(chars, 'x', 17 << 20);
    hd_value v = hd_string_n(hd_action_pool(a), chars, 17 << 20);
    free(chars);
    return hd_action_return(a, v);
}

/* hd_action_spec.transaction: what an action writes is committed with the completion of its step. */
static void what_was_written_for_a_refused_result_is_not_stored(void **state) {
    hd_action_spec spec = { .name = "wrong", .fn = add_wrongly, .transaction = true };
    assert_int_equal(hd_action_register(engine, &spec), HD_OK);
    hd_flow *f = flow();
    hd_flow_input(f, "long", (hd_value){ 0 });
    hd_flow_try(f);
    hd_flow_action(f, NULL, "wrong", "long=long");
    hd_flow_retried(f, &(hd_flow_retry){ .attempts = 3 });
    hd_flow_except(f, "Exception", "e");
    hd_flow_return(f, "type(e).__name__");
    hd_flow_end(f);
    hd_flow_return(f, "'done'");
    register_flow(f);
    start("w", "{'long':true}");
    assert_result("\"ValueError\"");
    assert_int_equal(calls, 3);
    start("w", "{'long':false}");
    assert_result("\"TypeError\"");
    assert_false(hd_value_exists(hd_read(rt, pool, hd_cell_at(rt, "main/counter"))));
}

/* Whichever allocation fails: the counter and the result agree. */
static void effects_happen_once_whatever_fails(void **state) {
    for (uint64_t n = 1;; n++) {
        hd_value result;
        hd_status status = HD_NOMEM;
        tear_down_world(state);
        set_up(state);
        hd_flow *f = flow();
        hd_flow_action(f, NULL, "add", NULL);
        hd_flow_action(f, "n", "add", NULL);
        hd_flow_return(f, "n");
        register_flow(f);
        start("w", "{}");
        lab_env_fail_at(env, n);
        while (status == HD_NOMEM) status = await(&result);
        bool failed = lab_env_failed(env);
        lab_env_fail_at(env, 0);
        if (!status) {
            assert_string_equal(printed(result), "2");
            assert_string_equal(cell("main/counter"), "2");
        }
        if (!failed) break;
    }
}

static hd_status handle(hd_tx *tx, const hd_event *event, void *ctx) {
    handled++;
    return hd_tx_set(tx, hd_cell_at(rt, "main/heard"), event->payload);
}

static void a_workflow_sends_an_event(void **state) {
    assert_int_equal(
        hd_handler_register(rt,
                            &(hd_handler_spec){ .name = "h",
                                                .stream = hd_cell_at(rt, "main/orders"),
                                                .fn = handle,
                                                .reads_nothing = true },
                            NULL),
        HD_OK);
    hd_flow *f = flow();
    hd_flow_send(f, "'main/orders'", "{'order': 17, '$a': {'$b': (1, 2)}}");
    hd_flow_return(f, "1");
    register_flow(f);
    start("w", "{}");
    assert_result("1");
    for (int i = 0; i < 5; i++) pump();
    hd_runtime_settle(rt);
    pump();
    assert_int_equal(handled, 1);
    /* In JSON text the store doubles each "$". */
    assert_string_equal(cell("main/heard"), "{\"$$a\":{\"$$b\":{\"$$tuple\":[1,2]}},\"order\":17}");
}

static hd_status double_it(hd_tx *tx, void *ctx) {
    runs++;
    int64_t n = hd_value_as_int(hd_tx_get(tx, hd_cell_at(rt, "main/n")), 0);
    return hd_tx_set(tx, hd_cell_at(rt, "main/twice"), hd_int(hd_tx_pool(tx), 2 * n));
}

static void set_n(int64_t n) {
    assert_int_equal(hd_write(rt, hd_cell_at(rt, "main/n"), hd_int(NULL, n)), HD_OK);
    pump();
    hd_runtime_settle(rt);
    pump();
}

static void register_wait(double timeout_s) {
    hd_flow *f = flow();
    hd_flow_input(f, "limit", hd_int(pool, 10));
    hd_flow_wait_for(f, "v", "'main/twice'", "value is not None and value >= limit", "limit=limit",
                     timeout_s);
    hd_flow_return(f, "v");
    register_flow(f);
}

/* Nobody else needs the computation: it runs while the workflow waits, and no longer. */
static void a_workflow_waits_for_a_computed_value(void **state) {
    hd_compute(rt, "double_it", double_it, NULL, hd_cell_at(rt, "main/twice"));
    register_wait(0);
    set_n(1);
    assert_int_equal(runs, 0);
    start("w", "{}");
    for (int i = 0; i < 3; i++) set_n(i);
    hd_value state_now;
    assert_int_equal(hd_workflow_state(engine, id, pool, &state_now), HD_OK);
    state_now = hd_value_index(hd_value_at(state_now, "steps"), 0);
    assert_string_equal(hd_value_as_text(hd_value_at(state_now, "cell"), ""), "main/twice");
    assert_string_equal(hd_value_as_text(hd_value_at(state_now, "until"), ""),
                        "value is not None and value >= limit");
    assert_int_not_equal(runs, 0);
    assert_string_equal(field("status"), "running");
    set_n(7);
    assert_result("14");
    int before = runs;
    set_n(8);
    assert_int_equal(runs, before);
}

static void a_wait_has_a_deadline_and_can_be_cancelled(void **state) {
    hd_value result;
    hd_compute(rt, "double_it", double_it, NULL, hd_cell_at(rt, "main/twice"));
    register_wait(60);
    start("w", "{}");
    pump();
    advance(61000);
    assert_raised("TimeoutError");
    start("w", "{}");
    pump();
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    assert_int_equal(await(&result), HD_ABORTED);
    for (int i = 0; i < 3; i++) pump();
    int before = runs;
    set_n(8);
    assert_int_equal(runs, before);
}

/* Some are cancelled, some have their value, and some wait on until the engine closes. */
static void many_waits_end_each_by_itself(void **state) {
    enum { N = 60 };
    char ids[N][HD_INSTANCE_ID_SIZE], input[40];
    hd_value result;
    hd_compute(rt, "double_it", double_it, NULL, hd_cell_at(rt, "main/twice"));
    register_wait(0);
    for (int i = 0; i < N; i++) {
        snprintf(input, sizeof input, "{'limit':%d}", 2 * i + 1);
        start("w", input);
        memcpy(ids[i], id, sizeof id);
    }
    pump();
    for (int i = 0; i < N; i += 3) assert_int_equal(hd_workflow_cancel(engine, ids[i]), HD_OK);
    pump();
    for (int n = 5; n <= 30; n += 5) set_n(n);
    for (int i = 0; i < N; i++) {
        memcpy(id, ids[i], sizeof id);
        if (i % 3 == 0) assert_int_equal(await(&result), HD_ABORTED);
        else if (i >= 30) assert_string_equal(field("status"), "running");
        else
            assert_true(hd_workflow_await(engine, id, pool, &result) == HD_OK &&
                        hd_value_as_int(result, 0) == 10 * (i / 5 + 1));
    }
}

static void a_wait_goes_on_with_the_next_engine(void **state) {
    hd_compute(rt, "double_it", double_it, NULL, hd_cell_at(rt, "main/twice"));
    register_wait(0);
    start("w", "{}");
    pump();
    hd_engine_close(engine);
    assert_int_equal(hd_engine_open(rt, NULL, &engine, NULL), HD_OK);
    register_actions(engine);
    pump();
    set_n(9);
    assert_result("18");
}

static hd_status refusal;

/* A world whose store asks `judge` about each commit. */
static hd_memory *open_judged(void **state, hd_status (*judge)(const hd_runtime *, void *)) {
    hd_memory *memory;
    tear_down_world(state);
    env = lab_env_open();
    assert_int_equal(hd_memory_open(lab_env_of(env), &memory), HD_OK);
    hd_memory_intercept(memory, judge, NULL, NULL);
    refusal = HD_OK;
    open_engine(memory, &rt, &engine);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    return memory;
}

static void close_judged(void **state, hd_memory *memory) {
    hd_pool_close(pool);
    assert_int_equal(hd_close(rt), HD_OK);
    hd_memory_close(memory);
    lab_env_close(env);
    set_up(state);
}

/* What this program has written and the store refuses was never there. */
static hd_status refuse_once(const hd_runtime *from, void *ctx) {
    hd_status status = refusal;
    if (status != HD_BUSY) refusal = HD_OK;
    return status;
}

static void a_wait_ends_with_a_value_that_was_accepted(void **state) {
    hd_memory *memory = open_judged(state, refuse_once);
    hd_flow *f = flow();
    hd_flow_wait_for(f, "v", "'main/n'", "value is not None and value >= 5", NULL, 0);
    hd_flow_return(f, "v");
    register_flow(f);
    set_n(1);
    start("w", "{}");
    pump();
    refusal = HD_BUSY; /* no verdict for now */
    assert_int_equal(hd_write(rt, hd_cell_at(rt, "main/n"), hd_int(NULL, 7)), HD_OK);
    for (int i = 0; i < 5; i++) (void)hd_runtime_pump(rt);
    assert_string_equal(cell("main/n"), "7");
    refusal = HD_STALE;
    for (int i = 0; i < 5; i++) (void)hd_runtime_pump(rt);
    assert_string_equal(cell("main/n"), "1");
    assert_int_equal(hd_runtime_sync(rt), HD_STALE);
    pump();
    assert_string_equal(field("status"), "running");
    set_n(9);
    assert_result("9");
    close_judged(state, memory);
}

static void note_stored(hd_status status, void *ctx) { *(bool *)ctx = true; }

/* A start with a key claims that there is no such instance. If the store has pruned what the claim refers to, or
 * another program was first, the start is made again; hd_workflow_stored waits for that. */
static void a_keyed_start_that_is_refused_is_made_again(void **state) {
    static const hd_status refusals[] = { HD_RESYNC, HD_STALE };
    hd_memory *memory = open_judged(state, refuse_once);
    hd_options options = { .env = lab_env_of(env), .memory = memory };
    hd_engine_options observer = { .observer = true };
    hd_runtime *looks;
    hd_engine *tool;
    hd_flow *f = flow();
    hd_flow_return(f, "3");
    register_flow(f);
    pump();
    assert_int_equal(hd_open(NULL, &options, &looks, NULL), HD_OK);
    assert_int_equal(hd_engine_open(looks, &observer, &tool, NULL), HD_OK);
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        bool stored = false;
        hd_start_options o = { .key = hd_status_name(refusals[i]) };
        refusal = refusals[i];
        assert_int_equal(hd_workflow_start(tool, "w", hd_object(), &o, id), HD_OK);
        assert_int_equal(hd_workflow_stored(tool, note_stored, &stored), HD_OK);
        (void)hd_runtime_pump(looks);
        (void)hd_runtime_pump(looks);
        assert_int_equal(refusal, HD_OK); /* it was refused */
        assert_false(stored);
        assert_int_equal(hd_runtime_sync(looks), HD_OK);
        (void)hd_runtime_pump(looks);
        assert_true(stored);
        pump();
        assert_result("3");
        assert_int_equal(hd_workflow_start(tool, "w", hd_object(), &o, id), HD_EXISTS);
    }
    assert_int_equal(
        hd_workflow_start(tool, "w", hd_object(), &(hd_start_options){ .key = "last" }, id), HD_OK);
    hd_engine_close(tool); /* it is stored all the same */
    assert_int_equal(hd_close(looks), HD_OK);
    pump();
    assert_result("3");
    close_judged(state, memory);
}

static hd_status refuse_first_run(const hd_runtime *from, void *ctx) {
    bool first = calls == 1 && !handled++;
    return first ? HD_HASH_DIFFERS : HD_OK;
}

/* The value was not the required one when the store looked, and is so now. */
static void an_action_that_is_refused_once_runs_again(void **state) {
    hd_memory *memory = open_judged(state, refuse_first_run);
    hd_flow *f = flow();
    hd_flow_action(f, "n", "add", NULL);
    hd_flow_return(f, "n");
    register_flow(f);
    start("w", "{}");
    assert_result("1");
    assert_int_equal(calls, 2);
    assert_string_equal(cell("main/counter"), "1");
    close_judged(state, memory);
}

static int refused_call; /* the commit of this call of the action is refused */
static hd_status refuse_one_run(const hd_runtime *from, void *ctx) {
    bool due = calls == refused_call && !handled++;
    return due ? HD_STALE : HD_OK;
}

static void register_family(void) {
    hd_flow *f;
    assert_int_equal(hd_flow_open(pool, "child", &f), HD_OK);
    hd_flow_return(f, "1");
    register_flow(f);
    assert_int_equal(hd_flow_open(pool, "parent", &f), HD_OK);
    hd_flow_child(f, NULL, "child", NULL);
    hd_flow_sleep(f, "1");
    hd_flow_action(f, "n", "add", NULL);
    hd_flow_return(f, "n");
    register_flow(f);
}

/* The store refuses the commit of an instance with a child, and then the action of another instance runs: what that
 * action writes is stored. */
static void a_refused_relative_takes_no_writes_from_others(void **state) {
    for (refused_call = 1; refused_call <= 4; refused_call++) {
        hd_memory *memory = open_judged(state, refuse_one_run);
        calls = handled = 0;
        register_family();
        hd_flow *f = flow();
        hd_flow_sleep(f, "1");
        hd_flow_action(f, "n", "add", NULL);
        hd_flow_return(f, "n");
        register_flow(f);
        start("parent", "{}");
        for (int i = 0; i < 3; i++) start("w", "{}");
        pump();
        for (int i = 0; i < 100; i++) advance(100);
        assert_int_equal(handled, 1);
        assert_int_equal(calls, 5);
        assert_string_equal(cell("main/counter"), "4");
        close_judged(state, memory);
    }
}

static int asked;
static hd_status refuse_always(const hd_runtime *from, void *ctx) {
    asked++;
    return refusal;
}

/* An engine whose commits the store refuses for good tries again ever less often, and goes on when it is let. */
static void refused_commits_are_tried_ever_less_often(void **state) {
    hd_memory *memory = open_judged(state, refuse_always);
    hd_flow *f = flow();
    hd_flow_sleep(f, "1");
    hd_flow_return(f, "3");
    register_flow(f);
    start("w", "{}");
    pump();
    refusal = HD_REJECTED;
    asked = 0;
    for (int i = 0; i < 6000; i++) { /* a minute */
        lab_env_advance_ms(env, 10);
        (void)hd_runtime_pump(rt);
    }
    assert_in_range(asked, 10, 25);
    refusal = HD_OK;
    for (int i = 0; i < 1100; i++) {
        lab_env_advance_ms(env, 10);
        (void)hd_runtime_pump(rt);
    }
    assert_result("3");
    close_judged(state, memory);
}

static hd_status start_another(hd_action *a, hd_value args, void *ctx) {
    hd_tx *tx = hd_action_tx(a);
    char other[HD_INSTANCE_ID_SIZE];
    hd_start_options o = { .key = "other" };
    hd_status status = hd_workflow_start_in(engine, tx, "inner", hd_object(), &o, other);
    if (status) return status;
    if (!calls++) return hd_action_raise(a, "ValueError", "not now");
    return hd_action_return(a, hd_string(hd_tx_pool(tx), other));
}

/* It is taken up when the action's commit is stored, and not before. */
static void an_action_starts_an_instance_in_its_transaction(void **state) {
    hd_action_spec spec = { .name = "begin", .fn = start_another, .transaction = true };
    assert_int_equal(hd_action_register(engine, &spec), HD_OK);
    hd_flow *f;
    assert_int_equal(hd_flow_open(pool, "inner", &f), HD_OK);
    hd_flow_action(f, "n", "add", NULL);
    hd_flow_return(f, "n");
    register_flow(f);
    f = flow();
    hd_flow_action(f, "n", "begin", NULL);
    hd_flow_retried(f, &(hd_flow_retry){ .attempts = 2, .backoff_s = 1 });
    hd_flow_return(f, "n");
    register_flow(f);
    start("w", "{}");
    pump();
    assert_int_equal(stats_now().open, 1);
    advance(1000);
    assert_result("\"inner/other\"");
    snprintf(id, sizeof id, "inner/other");
    assert_result("1");
}

static bool commits;
static hd_status end_it(hd_action *a, hd_value args, void *ctx) {
    hd_tx *tx = hd_action_tx(a);
    hd_status status = hd_tx_set_int(tx, hd_cell_at(rt, "main/mine"), 1);
    if (!status && commits) assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_USAGE);
    else hd_tx_abort(tx);
    return status;
}

static char begun[HD_INSTANCE_ID_SIZE];
static hd_status start_aside(hd_action *a, hd_value args, void *ctx) {
    hd_status status = hd_workflow_start(engine, "inner", hd_object(), NULL, begun);
    if (!status) status = hd_workflow_rerun(engine, "inner/again", NULL);
    if (!status) status = add(a, args, ctx);
    return status;
}

/* An action within a transaction may start instances outside of it. They run, also if the store refuses the action's
 * commit and the action runs again. */
static void an_action_starts_instances_beside_its_transaction(void **state) {
    hd_memory *memory = open_judged(state, refuse_one_run);
    calls = handled = 0;
    refused_call = 1;
    hd_action_spec spec = { .name = "begin", .fn = start_aside, .transaction = true };
    assert_int_equal(hd_action_register(engine, &spec), HD_OK);
    hd_flow *f;
    assert_int_equal(hd_flow_open(pool, "inner", &f), HD_OK);
    hd_flow_sleep(f, "1");
    hd_flow_return(f, "1");
    register_flow(f);
    f = flow();
    hd_flow_try(f);
    hd_flow_action(f, "n", "begin", NULL);
    hd_flow_except(f, "RuntimeError", "e"); /* the second run: the other instance is not over */
    hd_flow_return(f, "str(e)");
    hd_flow_end(f);
    hd_flow_return(f, "n");
    register_flow(f);
    start_keyed("inner", "again", "{}");
    pump();
    advance(1000);
    start("w", "{}");
    for (int i = 0; i < 30; i++) advance(100);
    assert_true(handled); /* it was refused */
    assert_string_equal(field("status"), "done");
    snprintf(id, sizeof id, "inner/again");
    assert_result("1");
    memcpy(id, begun, sizeof id);
    assert_result("1");
    close_judged(state, memory);
}

static void an_action_neither_commits_nor_aborts_its_transaction(void **state) {
    hd_value error;
    hd_action_spec spec = { .name = "end", .fn = end_it, .transaction = true };
    assert_int_equal(hd_action_register(engine, &spec), HD_OK);
    hd_flow *f = flow();
    hd_flow_action(f, NULL, "end", NULL);
    hd_flow_return(f, "1");
    register_flow(f);
    commits = false;
    start("w", "{}");
    assert_int_equal(hd_workflow_await(engine, id, pool, &error), HD_FAILED);
    assert_non_null(strstr(printed(error), "hd_tx_abort: what an action writes is dropped"));
    assert_string_equal(cell("main/mine"), "-");
    commits = true;
    start("w", "{}");
    assert_result("1");
    assert_string_equal(cell("main/mine"), "1");
}

static hd_status return_nothing(hd_action *a, hd_value args, void *ctx) {
    return hd_action_return(a, (hd_value){ 0 });
}

static void a_result_that_is_absent_is_null(void **state) {
    hd_action_spec spec = { .name = "none", .fn = return_nothing, .here = true };
    assert_int_equal(hd_action_register(engine, &spec), HD_OK);
    hd_flow *f = flow();
    hd_flow_action(f, "n", "none", NULL);
    hd_flow_return(f, "n");
    register_flow(f);
    start("w", "{}");
    assert_result("null");
}

/* hd_start_options: a key is a part of a cell's name, so it has no '#' and no control character; nor has the name of a
 * schedule, of which keys are made. Priorities have the bounds of those in an IR. */
static void a_key_that_no_cell_can_have_is_refused(void **state) {
    static const char *const bad[] = {
        "", "a/b", "a#b", "a\x01", "a\x7f", "a\xc2\x80", "a\xc2\x9f"
    };
    hd_flow *f = flow();
    hd_flow_return(f, "1");
    register_flow(f);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hd_start_options o = { .key = bad[i] };
        hd_schedule s = { .name = bad[i], .workflow = "w", .cron = "@daily" };
        hd_error error = { 0 };
        assert_int_equal(hd_workflow_start(engine, "w", hd_object(), &o, id), HD_USAGE);
        assert_non_null(strstr(hd_runtime_error(rt)->message, "'#'"));
        assert_int_equal(hd_schedule_put(engine, &s, &error), HD_USAGE);
        assert_non_null(strstr(error.message, "'#'"));
    }
    for (int32_t priority = -1001; priority <= 1001; priority += 2002) {
        hd_schedule s = { .name = "s", .workflow = "w", .cron = "@daily", .priority = priority };
        hd_start_options high = { .priority = priority };
        assert_int_equal(hd_workflow_start(engine, "w", hd_object(), &high, id), HD_USAGE);
        assert_int_equal(hd_schedule_put(engine, &s, NULL), HD_USAGE);
    }
    hd_start_options o = { .key = "a~ \xc2\xa0@", .priority = 1000 };
    assert_int_equal(hd_workflow_start(engine, "w", hd_object(), &o, id), HD_OK);
    assert_result("1");
}

/* What no instance can be named is not there; it is no lack of memory. */
static void a_name_that_is_no_text_is_refused(void **state) {
    hd_value v;
    hd_start_options o = { .key = "a\xff" };
    hd_flow *f = flow();
    hd_flow_return(f, "1");
    register_flow(f);
    assert_int_equal(hd_workflow_start(engine, "w", hd_object(), &o, id), HD_USAGE);
    assert_non_null(strstr(hd_runtime_error(rt)->message, "UTF-8"));
    assert_int_equal(hd_workflow_start(engine, "\xff", hd_object(), NULL, id), HD_NOT_FOUND);
    assert_int_equal(hd_workflow_await(engine, "w/\xff", pool, &v), HD_NOT_FOUND);
    assert_int_equal(hd_workflow_then(engine, "w/\xff", NULL, NULL), HD_NOT_FOUND);
    assert_int_equal(hd_workflow_cancel(engine, "w/\xff"), HD_NOT_FOUND);
    assert_int_equal(hd_workflow_signal(engine, "w/\xff", "s", v), HD_NOT_FOUND);
    assert_int_equal(hd_workflow_rerun(engine, "w/\xff", NULL), HD_NOT_FOUND);
    assert_int_equal(hd_workflow_remove(engine, "w/\xff"), HD_NOT_FOUND);
    assert_int_equal(hd_workflow_state(engine, "w/\xff", pool, &v), HD_NOT_FOUND);
    assert_int_equal(hd_schedule_trigger(engine, "\xff"), HD_NOT_FOUND);
    assert_int_equal(hd_schedule_state(engine, "\xff", pool, &v), HD_NOT_FOUND);
    assert_int_equal(
        hd_schedule_put(engine, &(hd_schedule){ .name = "\xff", .workflow = "w", .cron = "@daily" },
                        NULL),
        HD_USAGE);
}

static void a_wait_that_cannot_be_is_a_value_error(void **state) {
    hd_flow *f = flow();
    hd_flow_wait_for(f, "v", "'nowhere'", "value", NULL, 0);
    hd_flow_return(f, "v");
    register_flow(f);
    start("w", "{}");
    assert_raised("ValueError");
    f = flow();
    hd_flow_wait_for(f, "v", "'main/n'", "value + 1 > 2", NULL, 0);
    hd_flow_return(f, "v");
    register_flow(f);
    start("w", "{}");
    pump();
    hd_runtime_settle(rt);
    assert_raised("ValueError"); /* None + 1 */
}

/* docs/EXPRESSIONS.md, Encoding: such a value is refused. */
static void a_wait_for_what_is_no_encoding_is_a_type_error(void **state) {
    hd_flow *f = flow();
    hd_flow_wait_for(f, "v", "'main/n'", "value is not None", NULL, 0);
    hd_flow_return(f, "v");
    register_flow(f);
    start("w", "{}");
    pump();
    assert_int_equal(hd_write_json(rt, hd_cell_at(rt, "main/n"), "{\"$$range\":[1]}"), HD_OK);
    pump();
    hd_runtime_settle(rt);
    assert_raised("TypeError");
}

static hd_status raise_unnamed(hd_action *a, hd_value args, void *ctx) {
    return hd_action_raise(a, ctx, "number %d", 7);
}

static void an_exception_without_class_is_a_runtime_error(void **state) {
    hd_value result;
    for (int i = 0; i < 2; i++) {
        char name[20];
        snprintf(name, sizeof name, "raise%d", i);
        hd_action_spec spec = { .name = name, .fn = raise_unnamed, .ctx = i ? "" : NULL };
        assert_int_equal(hd_action_register(engine, &spec), HD_OK);
        hd_flow *f = flow();
        hd_flow_action(f, NULL, name, NULL);
        register_flow(f);
        start("w", "{}");
        assert_int_equal(await(&result), HD_FAILED);
        assert_string_equal(hd_value_as_text(hd_value_at(result, "$error"), ""), "RuntimeError");
        assert_string_equal(hd_value_as_text(hd_value_at(result, "message"), ""), "number 7");
    }
}

static void calls_without_a_name_are_refused(void **state) {
    hd_flow *f = flow();
    hd_flow_sleep(f, "1");
    register_flow(f);
    assert_int_equal(hd_workflow_start(engine, NULL, hd_object(), NULL, id), HD_USAGE);
    start("w", "{}");
    assert_int_equal(hd_workflow_signal(engine, id, NULL, hd_null()), HD_USAGE);
}

static void the_builder_has_a_call_for_each_option(void **state) {
    hd_value ir;
    hd_flow *f = flow();
    hd_flow_journal(f, "steps");
    hd_flow_action(f, "n", "add", NULL);
    hd_flow_retried(f, &(hd_flow_retry){ .attempts = 2, .timeout_s = 3, .heartbeat_s = 1.5 });
    hd_flow_limit(f, "'k'", 2);
    hd_flow_queue(f, "q");
    hd_flow_priority(f, 3);
    hd_flow_child(f, "c", "other", "n=n");
    hd_flow_priority(f, -3);
    hd_flow_return(f, "c");
    assert_int_equal(hd_flow_ir(f, &ir, NULL), HD_OK);
    hd_flow_close(f);
    hd_value nodes = hd_value_at(hd_value_index(hd_value_at(ir, "functions"), 0), "nodes");
    assert_non_null(
        strstr(printed(hd_value_index(nodes, 1)), "\"limit\":{\"key\":\"k\",\"most\":2}"));
    assert_non_null(strstr(printed(hd_value_index(nodes, 1)), "\"priority\":3,\"queue\":\"q\""));
    assert_non_null(strstr(printed(hd_value_index(nodes, 1)), "\"heartbeat\":1.5"));
    assert_non_null(strstr(printed(hd_value_index(nodes, 2)), "\"workflow\":\"other\""));
    assert_string_equal(hd_value_as_text(hd_value_at(ir, "journal"), ""), "steps");
    f = flow();
    hd_flow_sleep(f, "1");
    hd_flow_queue(f, "q");
    hd_error error = { 0 };
    assert_int_equal(hd_flow_ir(f, &ir, &error), HD_USAGE);
    assert_non_null(strstr(error.message, "hd_flow_queue: the call before it is no action"));
    hd_flow_close(f);
}

/* The deadline is that of the step: engines that take it up later wait for the rest of the time. */
static void a_deadline_stays_when_other_engines_wait(void **state) {
    hd_flow *f = flow();
    hd_flow_wait_for(f, "v", "'main/n'", "value is not None", NULL, 10);
    register_flow(f);
    start("w", "{}");
    pump();
    for (int i = 0; i < 3; i++) {
        assert_string_equal(field("status"), "running");
        advance(3000);
        hd_engine_close(engine);
        assert_int_equal(hd_engine_open(rt, NULL, &engine, NULL), HD_OK);
        register_actions(engine);
        pump();
    }
    advance(999);
    assert_string_equal(field("status"), "running");
    advance(1);
    assert_string_equal(field("status"), "failed");
    assert_raised("TimeoutError");
}

int main(void) {
#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down_world)
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(what_an_action_writes_is_stored_with_its_completion),
        IN_A_WORLD(a_commit_that_is_refused_for_good_fails_the_step),
        IN_A_WORLD(each_of_many_that_are_refused_fails),
        IN_A_WORLD(each_branch_that_is_refused_fails),
        IN_A_WORLD(a_value_that_is_not_the_required_one_fails_the_step),
        IN_A_WORLD(an_action_that_is_refused_once_runs_again),
        IN_A_WORLD(a_refused_relative_takes_no_writes_from_others),
        IN_A_WORLD(what_a_failed_action_wrote_is_not_stored),
        IN_A_WORLD(what_was_written_for_a_refused_result_is_not_stored),
        IN_A_WORLD(effects_happen_once_whatever_fails),
        IN_A_WORLD(a_workflow_sends_an_event),
        IN_A_WORLD(a_workflow_waits_for_a_computed_value),
        IN_A_WORLD(a_wait_has_a_deadline_and_can_be_cancelled),
        IN_A_WORLD(many_waits_end_each_by_itself),
        IN_A_WORLD(a_wait_goes_on_with_the_next_engine),
        IN_A_WORLD(a_deadline_stays_when_other_engines_wait),
        IN_A_WORLD(a_wait_ends_with_a_value_that_was_accepted),
        IN_A_WORLD(refused_commits_are_tried_ever_less_often),
        IN_A_WORLD(a_keyed_start_that_is_refused_is_made_again),
        IN_A_WORLD(an_action_starts_an_instance_in_its_transaction),
        IN_A_WORLD(an_action_starts_instances_beside_its_transaction),
        IN_A_WORLD(an_action_neither_commits_nor_aborts_its_transaction),
        IN_A_WORLD(a_result_that_is_absent_is_null),
        IN_A_WORLD(a_key_that_no_cell_can_have_is_refused),
        IN_A_WORLD(a_name_that_is_no_text_is_refused),
        IN_A_WORLD(a_wait_that_cannot_be_is_a_value_error),
        IN_A_WORLD(a_wait_for_what_is_no_encoding_is_a_type_error),
        IN_A_WORLD(an_exception_without_class_is_a_runtime_error),
        IN_A_WORLD(calls_without_a_name_are_refused),
        IN_A_WORLD(the_builder_has_a_call_for_each_option),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
