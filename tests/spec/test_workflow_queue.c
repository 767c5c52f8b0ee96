/* test_workflow_queue.c -- named queues: who serves them, how many steps run at once, whose turn it is. Actions end
 * when the test says so. */
#define _DEFAULT_SOURCE
#include "workflow_world.h"

static uint64_t tokens[100];
static char order[2000];
static int begun;

static hd_status work(hd_action *a, hd_value args, void *ctx) {
    size_t n = strlen(order);
    snprintf(order + n, sizeof order - n, "%s ", hd_value_as_text(hd_value_index(args, 0), "?"));
    tokens[begun++] = hd_action_token(a);
    return HD_PENDING;
}

static void register_actions(hd_engine *e) {
    hd_action_spec spec = { .name = "work", .fn = work, .later = true };
    assert_int_equal(hd_action_register(e, &spec), HD_OK);
}

/* "many" {tag}: eight steps at once, in the queue "q" if there is one. */
static void register_many(const char *queue) {
    static char json[2000];
    char named[60] = "";
    if (queue) snprintf(named, sizeof named, ",'queue':'%s'", queue);
    snprintf(
        json, sizeof json,
        "{'heddle':1,'name':'many','inputs':[{'name':'tag'},{'name':'n','default':8}],"
        "'functions':[{'name':'run','params':['tag','n'],'nodes':[{'id':'in','kind':'ENTRY'},"
        "{'id':'f','kind':'FAN_HEAD','over':['call','range',[['name','n']]],'into':['name','i']"
        "},{'id':'a','kind':'ACTION','action':'work','args':[['name','tag']]%s},{'id':'j',"
        "'kind':'BARRIER'},{'id':'out','kind':'RETURN'}],'edges':[['in','f'],['f','a','ELEM'],"
        "['a','j','JOIN'],['j','out']]}]}",
        named);
    register_ir(json);
}

static int set_up(void **state) {
    begun = 0;
    order[0] = 0;
    return set_up_world(state);
}

static void end_one(int which) {
    assert_int_equal(hd_attempt_return(engine, tokens[which], hd_null()), HD_OK);
    pump();
}

static int64_t count_of(const char *queue, const char *key) {
    hd_value v;
    assert_int_equal(hd_queue_state(engine, queue, pool, &v), HD_OK);
    return hd_value_as_int(hd_value_at(v, key), -1);
}

static void a_queue_bounds_how_many_run(void **state) {
    assert_int_equal(hd_queue_put(engine, &(hd_queue){ .name = "q", .most = 2 }), HD_OK);
    register_many("q");
    start("many", "{'tag':'a'}");
    pump();
    assert_int_equal(begun, 2);
    assert_int_equal(count_of("q", "running"), 2);
    assert_int_equal(count_of("q", "ready"), 6);
    end_one(0);
    assert_int_equal(begun, 3);
    assert_int_equal(hd_queue_put(engine, &(hd_queue){ .name = "q", .most = 5 }), HD_OK);
    pump();
    assert_int_equal(begun, 6);
    for (int i = 1; i < 8; i++) end_one(i);
    assert_result("null");
}

static void a_paused_queue_begins_nothing(void **state) {
    assert_int_equal(hd_queue_put(engine, &(hd_queue){ .name = "q", .paused = true }), HD_OK);
    register_many("q");
    start("many", "{'tag':'a'}");
    pump();
    assert_int_equal(begun, 0);
    assert_int_equal(hd_queue_put(engine, &(hd_queue){ .name = "q" }), HD_OK);
    pump();
    assert_int_equal(begun, 8);
}

/* The second instance does not wait for the eight steps of the first. */
static void instances_take_turns(void **state) {
    assert_int_equal(hd_queue_put(engine, &(hd_queue){ .name = "q", .most = 1 }), HD_OK);
    register_many("q");
    start("many", "{'tag':'a'}");
    pump();
    start("many", "{'tag':'b','n':2}");
    pump();
    for (int i = 0; i < 10; i++) end_one(i);
    assert_string_equal(order, "a a b a b a a a a a ");
}

static void open_engine_for(const char *const *queues) {
    hd_engine_close(engine);
    hd_engine_options o = { .queues = queues };
    assert_int_equal(hd_engine_open(rt, &o, &engine, NULL), HD_OK);
    register_actions(engine);
    pump();
}

static const char *state_of_step(void) {
    hd_value v;
    assert_int_equal(hd_workflow_state(engine, id, pool, &v), HD_OK);
    hd_value steps = hd_value_at(v, "steps");
    for (hd_iter it = hd_iter_of(steps); hd_iter_next(&it);)
        if (hd_value_exists(hd_value_at(it.value, "action")))
            return hd_value_as_text(hd_value_at(it.value, "state"), "");
    return "";
}

static void a_program_serves_the_queues_that_it_names(void **state) {
    static const char *const gpu[] = { "gpu", NULL }, *const both[] = { "", "gpu", NULL };
    register_many(NULL);
    open_engine_for(gpu);
    start("many", "{'tag':'a'}");
    pump();
    assert_int_equal(begun, 0);
    assert_string_equal(state_of_step(), "no worker");
    hd_start_options o = { .queue = "gpu" };
    assert_int_equal(hd_workflow_start(engine, "many", parse("{'tag':'g','n':1}"), &o, id), HD_OK);
    pump();
    assert_string_equal(order, "g ");
    assert_string_equal(state_of_step(), "running");
    open_engine_for(both);
    assert_int_equal(begun, 10); /* the one that was begun is begun again */
}

static bool note_name(const char *name, void *ctx) {
    char *all = ctx;
    snprintf(all + strlen(all), 100 - strlen(all), "%s ", name);
    return true;
}

static void queues_are_listed(void **state) {
    char all[100] = "";
    assert_int_equal(hd_queue_put(engine, &(hd_queue){ .name = "b", .most = 1 }), HD_OK);
    assert_int_equal(hd_queue_put(engine, &(hd_queue){ .name = "a" }), HD_OK);
    register_many("q");
    start("many", "{'tag':'a'}");
    pump();
    assert_int_equal(hd_queue_list(engine, note_name, all), HD_OK);
    assert_string_equal(all, "a b q ");
    hd_engine_close(engine);
    all[0] = 0;
    assert_int_equal(hd_engine_open(rt, &(hd_engine_options){ .observer = true }, &engine, NULL),
                     HD_OK);
    assert_int_equal(hd_queue_list(engine, note_name, all), HD_OK);
    assert_string_equal(all, "a b ");
}

static hd_value first_step(const char *of) {
    hd_value v;
    assert_int_equal(hd_workflow_state(engine, of, pool, &v), HD_OK);
    v = hd_value_at(v, "steps");
    for (hd_iter it = hd_iter_of(v); hd_iter_next(&it);)
        if (hd_value_exists(hd_value_at(it.value, "limit"))) return it.value;
    return (hd_value){ 0 };
}

static hd_value last_step(void) {
    hd_value v;
    assert_int_equal(hd_workflow_state(engine, id, pool, &v), HD_OK);
    v = hd_value_at(v, "steps");
    return hd_value_index(v, hd_value_count(v) - 1);
}

static void a_step_says_which_room_it_waits_for(void **state) {
    assert_int_equal(hd_queue_put(engine, &(hd_queue){ .name = "q", .most = 2 }), HD_OK);
    register_many("q");
    start("many", "{'tag':'a','n':3}");
    pump();
    assert_string_equal(printed(hd_value_at(last_step(), "queue")),
                        "{\"most\":2,\"name\":\"q\",\"running\":2}");
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    pump();
    register_many("free','limit':{'key':'k','most':2},'at':'x");
    start("many", "{'tag':'a','n':3}");
    pump();
    assert_string_equal(hd_value_as_text(hd_value_at(last_step(), "state"), ""), "limited");
    assert_string_equal(printed(hd_value_at(last_step(), "limit")),
                        "{\"key\":\"k\",\"most\":2,\"running\":2}");
}

static void start_limited(const char *tag, int most, int priority) {
    char text[80];
    hd_start_options o = { .key = tag, .priority = priority };
    snprintf(text, sizeof text, "free','limit':{'key':'k','most':%d},'at':'x", most);
    register_many(text);
    snprintf(text, sizeof text, "{'tag':'%s','n':1}", tag);
    assert_int_equal(hd_workflow_start(engine, "many", parse(text), &o, id), HD_OK);
    pump();
}

/* docs/IR.md, "limit": each step is begun if fewer than its own `most` hold the key, and none passes one that waits
 * before it. */
static void steps_of_one_key_may_have_different_limits(void **state) {
    start_limited("a", 1, 0);
    start_limited("b", 1, 0);
    start_limited("c", 3, 0);
    start_limited("d", 3, 0);
    assert_string_equal(order, "a ");
    start_limited("e", 3, 1);
    assert_string_equal(order, "a e "); /* it goes before b */
    end_one(0);
    assert_string_equal(order, "a e ");
    assert_string_equal(printed(hd_value_at(first_step("many/b"), "limit")),
                        "{\"key\":\"k\",\"most\":1,\"running\":1}");
    end_one(1);
    assert_string_equal(order, "a e b c d ");
}

/* One that waits no more holds up none behind it. */
static void a_step_that_is_withdrawn_lets_others_in(void **state) {
    start_limited("a", 3, 0);
    start_limited("b", 1, 0);
    start_limited("c", 3, 0);
    assert_string_equal(order, "a ");
    assert_int_equal(hd_workflow_cancel(engine, "many/b"), HD_OK);
    pump();
    assert_string_equal(order, "a c ");
}

/* docs/WORKERS.md: a step that is given back goes back to its place, which is before those that came later. */
static void a_step_that_is_given_back_keeps_its_place(void **state) {
    start_limited("a", 3, 0);
    start_limited("b", 3, 0);
    start_limited("c", 1, 0);
    assert_string_equal(order, "a b ");
    assert_int_equal(hd_attempt_give_back(engine, tokens[1]), HD_OK);
    pump();
    assert_string_equal(order, "a b b ");
    end_one(0);
    end_one(2);
    assert_string_equal(order, "a b b c ");
}

/* A step that leaves its queue lets in the next one of its key, which may be one of the same instance. */
static void a_pause_withdraws_all_steps_of_a_key(void **state) {
    register_many("free','limit':{'key':'k','most':2},'at':'x");
    hd_engine_close(engine);
    assert_int_equal(hd_engine_open(rt, NULL, &engine, NULL), HD_OK);
    start("many", "{'tag':'a'}"); /* no action is registered: two steps are queued, six wait */
    pump();
    assert_int_equal(hd_workflow_pause(engine, id), HD_OK);
    pump();
    register_actions(engine);
    pump();
    assert_int_equal(begun, 0);
    assert_int_equal(hd_workflow_resume(engine, id), HD_OK);
    pump();
    assert_int_equal(begun, 2);
    for (int i = 0; i < 8; i++) end_one(i);
    assert_result("null");
}

/* An engine that takes instances up begins the step with the highest priority, in whichever order it finds them. */
static void after_a_restart_a_limit_begins_with_the_highest_priority(void **state) {
    static const char *const tags[] = { "a", "b", "c" };
    register_many("free','limit':{'key':'k','most':1},'at':'x");
    for (int i = 0; i < 3; i++) {
        char input[40];
        hd_start_options o = { .key = tags[i], .priority = i == 1 ? 5 : 0 };
        snprintf(input, sizeof input, "{'tag':'%s','n':1}", tags[i]);
        assert_int_equal(hd_workflow_start(engine, "many", parse(input), &o, id), HD_OK);
        pump();
    }
    assert_string_equal(order, "a ");
    open_engine_for(NULL);
    assert_string_equal(order, "a b ");
    end_one(1);
    end_one(2);
    assert_string_equal(order, "a b a c ");
}

static void names_are_checked(void **state) {
    register_many(NULL);
    assert_int_equal(hd_queue_put(engine, &(hd_queue){ .name = "a b" }), HD_USAGE);
    hd_start_options o = { .queue = "a/b" };
    assert_int_equal(hd_workflow_start(engine, "many", parse("{'tag':'g'}"), &o, id), HD_USAGE);
}

static void an_engine_refuses_names_that_no_queue_can_have(void **state) {
    static const char *const bad[] = { "gpu", "a b", NULL }, *const good[] = { "gpu", "", NULL };
    hd_error error = { 0 };
    hd_engine *other;
    hd_engine_close(engine);
    assert_int_equal(hd_engine_open(rt, &(hd_engine_options){ .queues = bad }, &other, &error),
                     HD_USAGE);
    assert_non_null(strstr(error.message, "a queue has a name"));
    assert_int_equal(hd_engine_open(rt, &(hd_engine_options){ .queues = good }, &engine, &error),
                     HD_OK);
}

int main(void) {
#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down_world)
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(a_queue_bounds_how_many_run),
        IN_A_WORLD(a_paused_queue_begins_nothing),
        IN_A_WORLD(instances_take_turns),
        IN_A_WORLD(a_program_serves_the_queues_that_it_names),
        IN_A_WORLD(queues_are_listed),
        IN_A_WORLD(a_step_says_which_room_it_waits_for),
        IN_A_WORLD(steps_of_one_key_may_have_different_limits),
        IN_A_WORLD(a_step_that_is_given_back_keeps_its_place),
        IN_A_WORLD(a_step_that_is_withdrawn_lets_others_in),
        IN_A_WORLD(a_pause_withdraws_all_steps_of_a_key),
        IN_A_WORLD(after_a_restart_a_limit_begins_with_the_highest_priority),
        IN_A_WORLD(names_are_checked),
        IN_A_WORLD(an_engine_refuses_names_that_no_queue_can_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
