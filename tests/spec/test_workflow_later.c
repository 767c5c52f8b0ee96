/* test_workflow_later.c -- actions whose attempts the program ends later, from its own loop. */
#define _DEFAULT_SOURCE
#include "workflow_world.h"

/* The attempts that were begun. */
static uint64_t begun[20];
static uint32_t begun_count;
static uint64_t revoked, beat_ms;
static char why[20];

static hd_status begin(hd_action *a, hd_value args, void *ctx) {
    begun[begun_count++] = hd_action_token(a);
    beat_ms = hd_action_heartbeat_ms(a);
    assert_true(hd_action_timeout_ms(a) == 0 || hd_action_timeout_ms(a) == 5000);
    return HD_PENDING;
}

/* Fails before anything goes on elsewhere. */
static hd_status refuse(hd_action *a, hd_value args, void *ctx) {
    return hd_action_raise(a, "KeyError", "no");
}

static hd_status at_once(hd_action *a, hd_value args, void *ctx) {
    return hd_action_return(a, hd_int(NULL, 5));
}

/* Takes no notice that its result could not be made: a text that is not UTF-8. */
static hd_status ignore_failure(hd_action *a, hd_value args, void *ctx) {
    (void)hd_action_return(a, hd_string(hd_action_pool(a), "\xff"));
    return HD_OK;
}

static void note_revoked(uint64_t token, const char *reason, void *ctx) {
    revoked = token;
    snprintf(why, sizeof why, "%s", reason);
}

static void register_actions(hd_engine *e) {
    hd_action_spec all[] = { { .name = "work", .fn = begin, .later = true },
                             { .name = "refuse", .fn = refuse, .later = true },
                             { .name = "at_once", .fn = at_once, .later = true },
                             { .name = "ignore", .fn = ignore_failure, .later = true } };
    begun_count = 0;
    revoked = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_int_equal(hd_action_register(e, &all[i]), HD_OK);
    hd_engine_set_revoked(e, note_revoked, NULL);
}

static void start_action(const char *action, const char *options) {
    char nodes[400];
    snprintf(nodes, sizeof nodes,
             "{'id':'a','kind':'ACTION','action':'%s','into':['name','r']%s},"
             "{'id':'out','kind':'RETURN','value':['name','r']}",
             action, options);
    register_nodes("w", nodes, "['in','a'],['a','out']");
    start("w", "{}");
    pump();
}

static void an_attempt_ends_when_the_program_says_so(void **state) {
    start_action("work", "");
    assert_int_equal(begun_count, 1);
    assert_string_equal(field("status"), "running");
    assert_int_equal(hd_attempt_return(engine, begun[0], hd_int(NULL, 7)), HD_OK);
    assert_result("7");
    assert_int_equal(hd_attempt_return(engine, begun[0], hd_int(NULL, 8)), HD_NOT_FOUND);
    assert_int_equal(stats_now().duplicates, 1);
}

static void a_function_may_end_its_attempt_itself(void **state) {
    start_action("at_once", "");
    assert_result("5");
    start_action("refuse", "");
    assert_raised("KeyError");
}

static void a_result_that_could_not_be_made_fails_the_attempt(void **state) {
    start_action("ignore", "");
    assert_raised("RuntimeError");
}

static void what_is_given_back_to_a_paused_instance_waits_until_it_is_resumed(void **state) {
    start_action("work", "");
    assert_int_equal(hd_workflow_pause(engine, id), HD_OK);
    pump();
    assert_int_equal(hd_attempt_give_back(engine, begun[0]), HD_OK);
    pump();
    assert_int_equal(begun_count, 1);
    assert_int_equal(hd_workflow_resume(engine, id), HD_OK);
    pump();
    assert_int_equal(begun_count, 2);
    assert_int_equal(hd_attempt_return(engine, begun[1], hd_int(NULL, 7)), HD_OK);
    assert_result("7");
}

static void ten_are_under_way_at_once(void **state) {
    register_nodes("fan",
                   "{'id':'f','kind':'FAN_HEAD','over':['call','range',[10]],'into':['name','i']},"
                   "{'id':'a','kind':'ACTION','action':'work','into':['name','r']},"
                   "{'id':'b','kind':'BARRIER','give':['name','r'],'into':['name','all']},"
                   "{'id':'out','kind':'RETURN','value':['name','all']}",
                   "['in','f'],['f','a','ELEM'],['a','b','JOIN'],['b','out']");
    start("fan", "{}");
    pump();
    assert_int_equal(begun_count, 10);
    for (int i = 9; i >= 0; i--)
        assert_int_equal(hd_attempt_return(engine, begun[i], hd_int(NULL, i)), HD_OK);
    assert_result("[0,1,2,3,4,5,6,7,8,9]");
}

static void an_exception_crosses_with_arguments_attributes_and_cause(void **state) {
    hd_value e, result;
    start_action("work", "");
    e = parse("{'$$error':'ValueError','args':[1,'two'],'attrs':{'code':7},"
              "'cause':{'$$error':'shop.Odd','bases':['KeyError'],'args':[3]}}");
    assert_int_equal(hd_attempt_raise(engine, begun[0], e), HD_OK);
    assert_int_equal(await(&result), HD_FAILED);
    assert_string_equal(hd_value_as_text(hd_value_at(result, "$error"), ""), "ValueError");
    assert_string_equal(printed(hd_value_at(result, "args")), "[1,\"two\"]");
    assert_string_equal(printed(hd_value_at(result, "attrs")), "{\"code\":7}");
    hd_value cause = hd_value_at(result, "cause");
    assert_string_equal(hd_value_as_text(hd_value_at(cause, "$error"), ""), "shop.Odd");
    assert_string_equal(printed(hd_value_at(cause, "bases")), "[\"KeyError\"]");
    assert_string_equal(printed(hd_value_at(cause, "args")), "[3]");
}

static void a_class_that_is_not_known_is_below_its_bases(void **state) {
    start_action("work", ",'retry':{'attempts':2,'on':['OSError']}");
    hd_value e = parse("{'$$error':'net.Lost','bases':['net.Base','ConnectionError','OSError'],"
                       "'args':[]}");
    assert_int_equal(hd_attempt_raise(engine, begun[0], e), HD_OK);
    pump();
    assert_int_equal(begun_count, 2); /* OSError is retried */
    assert_int_equal(hd_attempt_raise(engine, begun[1], e), HD_OK);
    assert_raised("net.Lost");
    start_action("work", "");
    e = parse("{'$$error':'what','args':[]}");
    assert_int_equal(hd_attempt_raise(engine, begun[2], e), HD_OK);
    assert_raised("RuntimeError");
}

static void a_final_exception_is_not_retried(void **state) {
    start_action("work", ",'retry':{'attempts':3}");
    hd_value e = parse("{'$$error':'TypeError','args':['no'],'final':true}");
    assert_int_equal(hd_attempt_raise(engine, begun[0], e), HD_OK);
    assert_raised("TypeError");
    assert_int_equal(begun_count, 1);
}

static void what_is_no_exception_is_refused(void **state) {
    start_action("work", "");
    assert_int_equal(hd_attempt_raise(engine, begun[0], hd_int(NULL, 1)), HD_KIND);
    assert_int_equal(hd_attempt_raise(engine, begun[0], parse("{'a':1}")), HD_KIND);
    assert_int_equal(hd_attempt_raise(engine, begun[0], parse("{'$$error':'ValueError','args':1}")),
                     HD_OK);
    assert_raised("TypeError"); /* it cannot be read */
}

static void a_timeout_tells_the_program(void **state) {
    start_action("work", ",'timeout':5");
    advance(5001);
    assert_int_equal(revoked, begun[0]);
    assert_string_equal(why, "timeout");
    assert_int_equal(hd_attempt_return(engine, begun[0], hd_null()), HD_NOT_FOUND);
    assert_raised("TimeoutError");
}

static void heartbeats_keep_it_and_silence_loses_it(void **state) {
    start_action("work", ",'heartbeat':5");
    assert_int_equal(beat_ms, 5000);
    for (int i = 0; i < 5; i++) {
        advance(4000);
        assert_int_equal(hd_attempt_heartbeat(engine, begun[0]), HD_OK);
    }
    assert_int_equal(begun_count, 1);
    advance(5001);
    assert_string_equal(why, "silent");
    assert_int_equal(begun_count, 2); /* begun again */
    assert_int_equal(hd_attempt_return(engine, begun[1], hd_bool(true)), HD_OK);
    assert_result("true");
}

static void a_step_that_is_given_back_is_begun_again(void **state) {
    start_action("work", "");
    assert_int_equal(hd_attempt_give_back(engine, begun[0]), HD_OK);
    pump();
    assert_int_equal(begun_count, 2);
    assert_int_equal(hd_attempt_return(engine, begun[1], hd_bool(true)), HD_OK);
    assert_result("true");
}

static void cancelling_revokes_and_closing_loses_nothing(void **state) {
    start_action("work", "");
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    pump();
    assert_int_equal(revoked, begun[0]);
    assert_string_equal(why, "gone");
    start_action("work", ""); /* still under way when the world ends */
}

static void later_and_here_cannot_be_exchanged(void **state) {
    hd_action_spec spec = { .name = "work", .fn = begin, .here = true };
    assert_int_equal(hd_action_register(engine, &spec), HD_USAGE);
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up_world, tear_down_world)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(an_attempt_ends_when_the_program_says_so),
        T(a_function_may_end_its_attempt_itself),
        T(a_result_that_could_not_be_made_fails_the_attempt),
        T(what_is_given_back_to_a_paused_instance_waits_until_it_is_resumed),
        T(ten_are_under_way_at_once),
        T(an_exception_crosses_with_arguments_attributes_and_cause),
        T(a_class_that_is_not_known_is_below_its_bases),
        T(a_final_exception_is_not_retried),
        T(what_is_no_exception_is_refused),
        T(a_timeout_tells_the_program),
        T(heartbeats_keep_it_and_silence_loses_it),
        T(a_step_that_is_given_back_is_begun_again),
        T(cancelling_revokes_and_closing_loses_nothing),
        T(later_and_here_cannot_be_exchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
