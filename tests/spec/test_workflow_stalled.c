/* test_workflow_stalled.c -- an instance that cannot go on is marked as stalled: what becomes of its children, of those
 * that wait for it, and of another start with its key (docs/WORKFLOWS.md, decision 0362). */
#define _DEFAULT_SOURCE
#include "workflow_world.h"

#include <heddle/workflow_build.h>

static int counted; /* calls of the action "count" */

static hd_status echo(hd_action *a, hd_value args, void *ctx) {
    return hd_action_return(a, hd_value_index(args, 0));
}

static hd_status count(hd_action *a, hd_value args, void *ctx) {
    counted++;
    return hd_action_return(a, hd_null());
}

static void register_actions(hd_engine *e) {
    hd_action_spec specs[] = { { .name = "echo", .fn = echo, .here = true },
                               { .name = "count", .fn = count, .here = true } };
    for (size_t i = 0; i < 2; i++) assert_int_equal(hd_action_register(e, &specs[i]), HD_OK);
}

/* ---- workflows */

static hd_flow *begin(const char *name) {
    hd_flow *f;
    assert_int_equal(hd_flow_open(pool, name, &f), HD_OK);
    return f;
}

static void finish(hd_flow *f) {
    hd_value ir;
    hd_error error = { 0 };
    if (hd_flow_ir(f, &ir, &error)) fail_msg("%s", error.message);
    if (hd_workflow_register(engine, ir, NULL, &error)) fail_msg("%s", error.message);
    hd_flow_close(f);
}

/* `x` becomes n tuples in each other: 250 of them have no form in the store. */
static void wrap(hd_flow *f, const char *n) {
    hd_flow_do(f, "x = ()");
    hd_flow_for(f, "i", n);
    hd_flow_do(f, "x = (x,)");
    hd_flow_end(f);
}

/* Waits, and runs an action then. */
static void build_kid(void) {
    hd_flow *f = begin("kid");
    hd_flow_sleep(f, "10");
    hd_flow_action(f, NULL, "count", "");
    hd_flow_return(f, "None");
    finish(f);
}

/* Cannot be stored with its first walk, in which it begins `child`. */
static void build_unfit(const char *name, const char *child) {
    hd_flow *f = begin(name);
    wrap(f, "range(250)");
    if (child) hd_flow_child(f, NULL, child, "");
    else hd_flow_action(f, NULL, "echo", "1");
    hd_flow_return(f, "len(x)");
    finish(f);
}

/* "w" can be stored unless its input is 250. */
static void build_wrapping(void) {
    hd_flow *f = begin("w");
    hd_flow_input(f, "n", hd_null());
    wrap(f, "range(n)");
    hd_flow_action(f, NULL, "echo", "1");
    hd_flow_return(f, "n");
    finish(f);
}

static int found, found_over; /* instances of a name */

static bool note_found(const hd_workflow_entry *entry, void *ctx) {
    hd_value doc = hd_read(rt, pool, hd_workflow_cell(engine, entry->id));
    found++;
    found_over += !strcmp(hd_value_as_text(hd_value_at(doc, "status"), ""), ctx);
    return true;
}

/* So many instances of a name are in the store, and all have this status. */
static int count_all(const char *name, const char *status) {
    hd_workflow_filter filter = { .name = name };
    char wanted[20];
    snprintf(wanted, sizeof wanted, "%s", status);
    found = found_over = 0;
    assert_int_equal(hd_workflow_list(engine, &filter, note_found, wanted), HD_OK);
    assert_int_equal(found_over, found);
    return found;
}

static void assert_stalls(const char *workflow) {
    hd_value error;
    start(workflow, "{}");
    assert_int_equal(await(&error), HD_FAILED);
    assert_string_equal(field("status"), "stalled");
}

static void assert_no_child_runs(void) {
    advance(20000);
    assert_int_equal(counted, 0);
    assert_int_equal(stats_now().open, 0);
    (void)count_all("kid", "cancelled");
}

/* ---- children */

/* They are cancelled, as those of any instance that waits for them no longer. */
static void children_of_its_first_walk_do_not_run(void **state) {
    counted = 0;
    build_kid();
    build_unfit("bad", "kid");
    assert_stalls("bad");
    assert_no_child_runs();
}

static void nor_do_their_children(void **state) {
    hd_flow *f = begin("middle");
    counted = 0;
    hd_flow_child(f, NULL, "kid", "");
    hd_flow_return(f, "None");
    finish(f);
    build_kid();
    build_unfit("bad", "middle");
    assert_stalls("bad");
    assert_no_child_runs();
    (void)count_all("middle", "cancelled");
}

/* Its own parent hears that it has stalled, and is not walked again and again. */
static void its_parent_goes_on(void **state) {
    hd_flow *f = begin("caller");
    counted = 0;
    build_kid();
    build_unfit("bad", "kid");
    hd_flow_try(f);
    hd_flow_child(f, NULL, "bad", "");
    hd_flow_except(f, "RuntimeError", "e");
    hd_flow_return(f, "'heard'");
    hd_flow_end(f);
    hd_flow_return(f, "None");
    finish(f);
    start("caller", "{}");
    assert_result("\"heard\"");
    assert_no_child_runs();
    assert_int_equal(count_all("bad", "stalled"), 1);
}

/* A child that is stored, and waits, when its parent stalls. */
static void children_that_run_are_cancelled(void **state) {
    hd_flow *f = begin("both");
    counted = 0;
    build_kid();
    hd_flow_gather(f);
    hd_flow_branch(f);
    hd_flow_child(f, NULL, "kid", "");
    hd_flow_branch(f);
    hd_flow_wait(f, NULL, "go", NULL);
    wrap(f, "range(250)");
    hd_flow_wait(f, NULL, "more", NULL);
    hd_flow_join(f, NULL, NULL);
    hd_flow_return(f, "None");
    finish(f);
    start("both", "{}");
    pump();
    assert_int_equal(count_all("kid", "running"), 1);
    assert_int_equal(hd_workflow_signal(engine, id, "go", hd_null()), HD_OK);
    pump();
    assert_string_equal(field("status"), "stalled");
    assert_no_child_runs();
    assert_int_equal(found, 1);
}

/* ---- documents that something else has written */

static void assert_damage(const char *part, const char *json, const char *why) {
    char name[20], place[HD_INSTANCE_ID_SIZE + 40];
    static int n;
    snprintf(name, sizeof name, "%d", ++n);
    start_keyed("waits", name, "{}");
    pump();
    hd_engine_close(engine);
    snprintf(place, sizeof place, "main/workflow/%s%s", id, part);
    assert_int_equal(hd_write(rt, hd_cell_at(rt, place), parse(json)), HD_OK);
    assert_int_equal(hd_engine_open(rt, NULL, &engine, NULL), HD_OK);
    register_actions(engine);
    pump();
    assert_string_equal(field("status"), "stalled");
    const char *said =
        hd_value_as_text(hd_value_at(hd_value_at(document(), "error"), "message"), "");
    if (!strstr(said, why)) fail_msg("%s of %s: %s", part, json, said);
}

/* docs/WORKFLOWS.md: a damaged document is marked as stalled, with what is wrong with it. */
static void a_damaged_document_stalls_with_its_reason(void **state) {
    static const char *const parts[] = { "objects", "open",  "vars", "calls",
                                         "fans",    "loops", "ready" };
    hd_flow *f = begin("waits");
    hd_flow_gather(f);
    hd_flow_branch(f);
    hd_flow_sleep(f, "1");
    hd_flow_branch(f);
    hd_flow_wait(f, NULL, "go", NULL);
    hd_flow_join(f, NULL, NULL);
    hd_flow_return(f, "None");
    finish(f);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char place[20], why[40];
        snprintf(place, sizeof place, "#/%s", parts[i]);
        snprintf(why, sizeof why, "/%s: it is no object", parts[i]);
        assert_damage(place, "[0]", why);
    }
    assert_damage("#/signals", "[0]", "its signals cannot be read");
    assert_damage("#/fans", "{}", "/open: it names a call or fan that is not there");
    assert_damage("#/open", "{'0':['gather/sleep',1,2,{'due':3}]}", "/open: a node that");
    assert_damage("", "[0]", "its version of the workflow is not in the store");
}

/* ---- refusals */

static hd_memory *memory;
static int refusals;      /* so many commits of `rt` are refused */
static hd_status refusal; /* with this status */

static hd_status judge(const hd_runtime *from, void *ctx) {
    if (from != rt || !refusals) return HD_OK;
    refusals--;
    return refusal;
}

static int set_up_judged(void **state) {
    env = lab_env_open();
    assert_int_equal(hd_memory_open(lab_env_of(env), &memory), HD_OK);
    hd_memory_intercept(memory, judge, NULL, NULL);
    refusals = 0;
    open_engine(memory, &rt, &engine);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    build_wrapping();
    pump();
    return 0;
}

static int tear_down_judged(void **state) {
    refusals = 0;
    close_store();
    hd_memory_close(memory);
    lab_env_close(env);
    return 0;
}

static void pump_for(int seconds) {
    for (int i = 0; i < seconds * 100; i++) {
        lab_env_advance_ms(env, 10);
        (void)hd_runtime_pump(rt);
    }
}

static void note_stored(hd_status status, void *ctx) { ++*(int *)ctx; }

/* hd_workflow_stored: not before the end of the instance is stored, however often that is refused. */
static void its_start_is_not_told_as_stored_before_it_is(void **state) {
    static const hd_status refused[] = { HD_STALE, HD_REJECTED };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        int told = 0;
        refusal = refused[i];
        refusals = 20;
        start("w", "{'n':250}");
        assert_int_equal(hd_workflow_stored(engine, note_stored, &told), HD_OK);
        for (int turn = 0; refusals; turn++) {
            assert_in_range(turn, 0, 100000);
            assert_int_equal(told, 0);
            lab_env_advance_ms(env, 10);
            (void)hd_runtime_pump(rt);
        }
        pump_for(11);
        assert_int_equal(told, 1);
        assert_string_equal(field("status"), "stalled");
    }
}

/* Until then it takes no messages, and says why. */
static void until_its_end_is_stored_it_takes_no_messages(void **state) {
    refusal = HD_REJECTED;
    refusals = 1000;
    start("w", "{'n':250}");
    pump_for(1);
    assert_true(refusals > 0 && refusals < 1000);
    assert_int_equal(hd_workflow_pause(engine, id), HD_NOT_FOUND);
    assert_non_null(strstr(hd_runtime_error(rt)->message, "its end is being stored"));
    assert_int_equal(hd_workflow_signal(engine, id, "go", hd_null()), HD_NOT_FOUND);
    assert_non_null(strstr(hd_runtime_error(rt)->message, "its end is being stored"));
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    refusals = 0;
    pump_for(11);
    assert_string_equal(field("status"), "stalled");
}

static void it_says_when_it_ended(void **state) {
    advance(5000);
    assert_stalls("bad");
    int64_t began = hd_value_as_int(hd_value_at(document(), "started"), 0);
    int64_t ended = hd_value_as_int(hd_value_at(document(), "finished"), 0);
    assert_true(began > 0 && ended >= began);
}

static int set_up_bad(void **state) {
    set_up_world(state);
    build_unfit("bad", NULL);
    return 0;
}

/* ---- another start with its key */

static hd_runtime *rt2;
static hd_engine *engine2;

static void start_elsewhere(const char *input) {
    hd_start_options o = { .key = "k" };
    char id2[HD_INSTANCE_ID_SIZE];
    hd_pool *own;
    hd_error error = { 0 };
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt2), &own), HD_OK);
    hd_value v = hd_json_parse(own, input, strlen(input), &error);
    assert_int_equal(hd_workflow_start(engine2, "w", v, &o, id2), HD_OK);
    hd_pool_close(own);
}

static void pump_second(void) {
    for (int i = 0; i < 5; i++) (void)hd_runtime_pump(rt2);
    assert_int_equal(hd_runtime_sync(rt2), HD_OK);
}

/* A start that was stored stays, whatever an engine has meanwhile made of another one with the same key. `when`: the
 * other program starts the instance before the active engine's first commit, or while that is refused. */
static void try_both(int n, int when) {
    char input[30];
    hd_value result;
    open_engine(memory, &rt2, &engine2);
    pump_second();
    assert_true(hd_engine_is_active(engine) && !hd_engine_is_active(engine2));
    refusal = HD_REJECTED;
    refusals = when ? 3 : 0;
    snprintf(input, sizeof input, "{'n':%d}", n);
    if (!when) start_elsewhere("{\"n\":2}");
    start_keyed("w", "k", input);
    for (int i = 0; i < when; i++) (void)hd_runtime_pump(rt);
    if (when) start_elsewhere("{\"n\":2}");
    pump_second();
    for (int i = 0; i < 300; i++) {
        lab_env_advance_ms(env, 10);
        (void)hd_runtime_pump(rt);
        pump_second();
    }
    assert_int_equal(await(&result), HD_OK);
    assert_string_equal(printed(result), "2");
    assert_int_equal(hd_close(rt2), HD_OK);
}

static void an_earlier_start_with_its_key_stays(void **state) {
    static const int inputs[] = { 250, 3 };
    for (int i = 0; i < 2; i++)
        for (int when = 0; when < 4; when++) {
            try_both(inputs[i], when);
            assert_int_equal(hd_workflow_remove(engine, "w/k"), HD_OK);
            pump();
        }
}

#define TEST(name)   cmocka_unit_test_setup_teardown(name, set_up_world, tear_down_world)
#define JUDGED(name) cmocka_unit_test_setup_teardown(name, set_up_judged, tear_down_judged)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(children_of_its_first_walk_do_not_run),
        TEST(nor_do_their_children),
        TEST(its_parent_goes_on),
        TEST(children_that_run_are_cancelled),
        TEST(a_damaged_document_stalls_with_its_reason),
        JUDGED(its_start_is_not_told_as_stored_before_it_is),
        JUDGED(until_its_end_is_stored_it_takes_no_messages),
        cmocka_unit_test_setup_teardown(it_says_when_it_ended, set_up_bad, tear_down_world),
        JUDGED(an_earlier_start_with_its_key_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
