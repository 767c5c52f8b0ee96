/* test_workflow_journal.c -- the journal of an instance, asked from seed 004's example; and limits by key. */
#define _DEFAULT_SOURCE
#include "workflow/engine.h"
#include "workflow/open_record.h"

#include "workflow_world.h"

static hd_status fetch_items(hd_action *a, hd_value args, void *ctx) {
    hd_pool *p = hd_action_pool(a);
    hd_value items = hd_array();
    int64_t count = hd_value_as_int(hd_value_at(args, "count"), 0);
    for (int64_t i = 0; i < count; i++) items = hd_array_append(p, items, hd_int(p, i));
    return hd_action_return(a, items);
}
static hd_status process_item(hd_action *a, hd_value args, void *ctx) {
    return hd_action_return(
        a, hd_int(hd_action_pool(a), 10 * hd_value_as_int(hd_value_index(args, 0), 0)));
}
static hd_status validate_chunk(hd_action *a, hd_value args, void *ctx) {
    bool good = true;
    for (hd_iter it = hd_iter_of(hd_value_at(args, "items")); hd_iter_next(&it);)
        good = good && hd_value_as_int(it.value, 0) > 0;
    return hd_action_return(a, hd_bool(good));
}
static hd_status aggregate_chunk(hd_action *a, hd_value args, void *ctx) {
    int64_t sum = 0;
    for (hd_iter it = hd_iter_of(hd_value_at(args, "items")); hd_iter_next(&it);)
        sum += hd_value_as_int(it.value, 0);
    if (!hd_value_as_bool(hd_value_at(args, "is_valid"), false)) sum = 0;
    return hd_action_return(a, hd_int(hd_action_pool(a), sum));
}
static hd_status finalize(hd_action *a, hd_value args, void *ctx) {
    int64_t sum = 0;
    for (hd_iter it = hd_iter_of(hd_value_index(args, 0)); hd_iter_next(&it);)
        sum += hd_value_as_int(it.value, 0);
    return hd_action_return(a, hd_int(hd_action_pool(a), sum));
}
static hd_status flaky(hd_action *a, hd_value args, void *ctx) {
    return hd_action_attempt(a) < 3 ? hd_action_raise(a, "ValueError", "no") : HD_OK;
}

static void register_actions(hd_engine *e) {
    hd_action_spec all[] = { { .name = "fetch_items", .fn = fetch_items },
                             { .name = "process_item", .fn = process_item },
                             { .name = "validate_chunk", .fn = validate_chunk },
                             { .name = "aggregate_chunk", .fn = aggregate_chunk },
                             { .name = "finalize", .fn = finalize },
                             { .name = "flaky", .fn = flaky } };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        all[i].here = true;
        assert_int_equal(hd_action_register(e, &all[i]), HD_OK);
    }
}

static const char pipeline[] =
    "{'heddle':1,'name':'data_pipeline','journal':'nodes',"
    "'inputs':[{'name':'fan_out','default':8},{'name':'loop_iters','default':4}],"
    "'functions':[{'name':'run','params':['fan_out','loop_iters'],'nodes':["
    "{'id':'entry','kind':'ENTRY'},"
    "{'id':'fetch_items','kind':'ACTION','action':'fetch_items','args':{'count':['name','fan_out']}"
    ",'into':['name','items']},"
    "{'id':'fan','kind':'FAN_HEAD','over':['name','items'],'into':['name','item']},"
    "{'id':'process_item','kind':'ACTION','action':'process_item','args':[['name','item']],'into':["
    "'name','result']},"
    "{'id':'processed','kind':'BARRIER','mode':'ordered','give':['name','result'],'into':['name','"
    "processed']},"
    "{'id':'iter_source','kind':'CALC','do':[['assign',['//"
    "',['call','len',[['name','processed']]],['name','loop_iters']],"
    "['name','chunk_size']],['assign',['list'],['name','results']]]},"
    "{'id':'loop_head','kind':'LOOP_HEAD','over':['call','range',[['name','loop_iters']]],'into':['"
    "name','chunk_id']},"
    "{'id':'chunk','kind':'CALC','do':[['assign',['slice',['name','processed'],['*',['name','chunk_"
    "id'],['name','chunk_size']],"
    "['*',['+',['name','chunk_id'],1],['name','chunk_size']],null],['name','chunk']]]},"
    "{'id':'validate_chunk','kind':'ACTION','action':'validate_chunk','args':{'items':['name','"
    "chunk']},'into':['name','is_valid']},"
    "{'id':'aggregate_chunk','kind':'ACTION','action':'aggregate_chunk','args':{'items':['name','"
    "chunk'],"
    "'is_valid':['name','is_valid']},'into':['name','chunk_result']},"
    "{'id':'append','kind':'CALC','do':[['expr',['method',['name','results'],'append',[['name','"
    "chunk_result']]]]]},"
    "{'id':'finalize','kind':'ACTION','action':'finalize','args':[['name','results']],'into':['"
    "name','total']},"
    "{'id':'return','kind':'RETURN','value':['name','total']}],"
    "'edges':[['entry','fetch_items'],['fetch_items','fan'],['fan','process_item','ELEM'],['"
    "process_item','processed','JOIN'],"
    "['processed','iter_source'],['iter_source','loop_head'],['loop_head','chunk','CONTINUE'],['"
    "loop_head','finalize','BREAK'],"
    "['chunk','validate_chunk'],['validate_chunk','aggregate_chunk'],['aggregate_chunk','append'],["
    "'append','loop_head','BACK'],"
    "['finalize','return']]}]}";

/* ---- asking the journal */

typedef struct asked {
    const char *what, *node, *edge;
    int count;
    int64_t next; /* seq */
} asked;

static bool note(hd_value e, void *ctx) {
    asked *a = ctx;
    assert_int_equal(hd_value_as_int(hd_value_at(e, "seq"), -1), a->next++);
    bool it = !strcmp(hd_value_as_text(hd_value_at(e, "what"), ""), a->what);
    if (a->node) it = it && !strcmp(hd_value_as_text(hd_value_at(e, "node"), ""), a->node);
    if (a->edge) it = it && !strcmp(hd_value_as_text(hd_value_at(e, "edge"), ""), a->edge);
    a->count += it;
    return true;
}

static int count_in_journal(const char *what, const char *node, const char *edge) {
    asked a = { .what = what, .node = node, .edge = edge };
    assert_int_equal(hd_workflow_journal(engine, id, note, &a), HD_OK);
    return a.count;
}

/* Seed 004: one fetch_items, eight process_item, one iterator source, five visits of the loop head (four CONTINUE,
 * one BREAK), four BACK, one finalize. */
static void the_journal_of_the_example_is_the_seeds_figure(void **state) {
    register_ir(pipeline);
    start("data_pipeline", "{}");
    assert_result("270");
    assert_int_equal(count_in_journal("done", "fetch_items", NULL), 1);
    assert_int_equal(count_in_journal("done", "process_item", NULL), 8);
    assert_int_equal(count_in_journal("edge", NULL, "ELEM"), 8);
    assert_int_equal(count_in_journal("run", "iter_source", NULL), 1);
    assert_int_equal(count_in_journal("run", "loop_head", NULL), 5);
    assert_int_equal(count_in_journal("edge", "loop_head", "CONTINUE"), 4);
    assert_int_equal(count_in_journal("edge", "loop_head", "BREAK"), 1);
    assert_int_equal(count_in_journal("edge", NULL, "BACK"), 4);
    assert_int_equal(count_in_journal("done", "finalize", NULL), 1);
    assert_int_equal(count_in_journal("start", NULL, NULL), 1);
    assert_int_equal(count_in_journal("end", NULL, NULL), 1);
}

static void a_long_journal_is_read_in_order(void **state) {
    register_ir(pipeline);
    start("data_pipeline", "{'fan_out':200,'loop_iters':100}");
    hd_value result;
    assert_int_equal(await(&result), HD_OK);
    assert_int_equal(count_in_journal("edge", NULL, "BACK"), 100);
    assert_int_equal(count_in_journal("done", "process_item", NULL), 200);
}

static void a_journal_of_steps_has_retries_and_no_nodes(void **state) {
    register_ir("{'heddle':1,'name':'w','journal':'steps','functions':[{'name':'run','nodes':[{'id'"
                ":'in','kind':'ENTRY'},"
                "{'id':'a','kind':'ACTION','action':'flaky','retry':{'attempts':5}},{'id':'out','"
                "kind':'RETURN'}],"
                "'edges':[['in','a'],['a','out']]}]}");
    start("w", "{}");
    assert_result("null");
    assert_int_equal(count_in_journal("retry", "a", NULL), 2);
    assert_int_equal(count_in_journal("done", "a", NULL), 1);
    assert_int_equal(count_in_journal("run", NULL, NULL), 0);
}

static bool has_attempt(hd_value e, void *ctx) {
    const char *node = hd_value_as_text(hd_value_at(e, "node"), "");
    if (strcmp(node, "a") != 0) assert_false(hd_value_exists(hd_value_at(e, "attempt")));
    *(int64_t *)ctx += hd_value_as_int(hd_value_at(e, "attempt"), 0);
    return true;
}

static void attempts_belong_to_their_step_alone(void **state) {
    int64_t sum = 0;
    register_ir(
        "{'heddle':1,'name':'w','journal':'nodes','functions':[{'name':'run','nodes':[{'id':'in',"
        "'kind':'ENTRY'},{'id':'a','kind':'ACTION','action':'flaky','retry':{'attempts':5}},"
        "{'id':'b','kind':'CALC','do':[]},{'id':'c','kind':'WAIT','signal':'go'},{'id':'out','kind'"
        ":'RETURN'}],'edges':[['in','a'],['a','b'],['b','c'],['c','out']]}]}");
    start("w", "{}");
    for (int i = 0; i < 10; i++) pump(); /* three attempts, then the WAIT */
    hd_value open = hd_value_at(hd_value_at(document(), "open"), "0");
    assert_string_equal(open_record_node(open), "c");
    assert_false(hd_value_exists(open_record_at(open, "attempt")));
    assert_int_equal(hd_workflow_signal(engine, id, "go", hd_null()), HD_OK);
    assert_result("null");
    assert_int_equal(hd_workflow_journal(engine, id, has_attempt, &sum), HD_OK);
    assert_int_equal(sum, 2 + 3); /* the second attempt was retried, the third is done */
}

static bool note_signal(hd_value e, void *ctx) {
    const char *name = hd_value_as_text(hd_value_at(e, "signal"), "-");
    bool is_signal = !strcmp(hd_value_as_text(hd_value_at(e, "what"), ""), "signal");
    assert_int_equal(is_signal, hd_value_exists(hd_value_at(e, "signal")));
    if (is_signal) strcat(strcat(ctx, name), " ");
    return true;
}

static void a_signal_has_its_name_in_the_journal(void **state) {
    char names[100] = "";
    register_ir("{'heddle':1,'name':'w','journal':'steps','functions':[{'name':'run','nodes':[{'id'"
                ":'in','kind':'ENTRY'},{'id':'a','kind':'WAIT','signal':'go'},{'id':'b','kind':"
                "'WAIT','signal':'stop'},{'id':'out','kind':'RETURN'}],"
                "'edges':[['in','a'],['a','b'],['b','out']]}]}");
    start("w", "{}");
    assert_int_equal(hd_workflow_signal(engine, id, "stop", hd_null()), HD_OK);
    assert_int_equal(hd_workflow_signal(engine, id, "go", hd_null()), HD_OK);
    assert_result("null");
    assert_int_equal(hd_workflow_journal(engine, id, note_signal, names), HD_OK);
    assert_string_equal(names, "stop go ");
}

/* ---- limits by key */

static worker hands;
static void no_offer(worker *w) { (void)w; }
static const worker_ops hands_ops = { .offer = no_offer };

static void register_limited(void) {
    register_ir("{'heddle':1,'name':'w','inputs':[{'name':'who'}],'functions':[{'name':'run','"
                "params':['who'],"
                "'nodes':[{'id':'in','kind':'ENTRY'},{'id':'a','kind':'ACTION','action':'work','"
                "limit':{'key':['name','who'],"
                "'most':2}},{'id':'out','kind':'RETURN'}],'edges':[['in','a'],['a','out']]}]}");
    hands = (worker){ .ops = &hands_ops, .capacity = 100 };
    worker_join(engine, &hands);
    assert_int_equal(worker_serve(&hands, "work"), HD_OK);
}

static int claim_all(task_view *all) {
    int n = 0;
    pump();
    while (task_claim(&hands, &all[n])) n++;
    task_check(engine);
    return n;
}

static void steps_with_one_key_run_at_most_so_many_at_once(void **state) {
    task_view all[100];
    register_limited();
    for (int i = 0; i < 5; i++) start("w", "{'who':'ann'}");
    for (int i = 0; i < 3; i++) start("w", "{'who':{'n':1}}");
    assert_int_equal(claim_all(all), 4);
    assert_int_equal(claim_all(all + 4), 0);
    assert_int_equal(task_complete(engine, all[0].token, hd_null()), HD_OK);
    assert_int_equal(claim_all(all + 4), 1);
    for (int i = 1; i < 5; i++)
        assert_int_equal(task_complete(engine, all[i].token, hd_null()), HD_OK);
    assert_int_equal(claim_all(all), 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(task_complete(engine, all[i].token, hd_null()), HD_OK);
    pump();
    assert_int_equal(stats_now().open, 0);
    assert_int_equal(engine->limits.count, 0);
}

static void a_limited_step_that_is_cancelled_makes_room(void **state) {
    task_view all[100];
    hd_value v;
    char first[HD_INSTANCE_ID_SIZE];
    register_limited();
    start("w", "{'who':'ann'}");
    memcpy(first, id, sizeof first);
    for (int i = 0; i < 3; i++) start("w", "{'who':'ann'}");
    assert_int_equal(claim_all(all), 2);
    assert_int_equal(hd_workflow_state(engine, id, pool, &v), HD_OK);
    assert_string_equal(
        hd_value_as_text(hd_value_at(hd_value_index(hd_value_at(v, "steps"), 0), "state"), ""),
        "limited");
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK); /* one that waits */
    assert_int_equal(hd_workflow_cancel(engine, first), HD_OK);
    assert_int_equal(claim_all(all + 2), 1);
    pump();
    assert_int_equal(stats_now().open, 2);
}

int main(void) {
#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up_world, tear_down_world)
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(the_journal_of_the_example_is_the_seeds_figure),
        IN_A_WORLD(a_long_journal_is_read_in_order),
        IN_A_WORLD(a_journal_of_steps_has_retries_and_no_nodes),
        IN_A_WORLD(attempts_belong_to_their_step_alone),
        IN_A_WORLD(a_signal_has_its_name_in_the_journal),
        IN_A_WORLD(steps_with_one_key_run_at_most_so_many_at_once),
        IN_A_WORLD(a_limited_step_that_is_cancelled_makes_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
