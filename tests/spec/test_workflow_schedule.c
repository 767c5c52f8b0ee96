/* test_workflow_schedule.c -- workflows that are started by the clock, in virtual time. It begins at
 * 2020-01-01T00:00:00Z, a Wednesday. */
#define _DEFAULT_SOURCE
#include "folder.h"
#include "workflow_world.h"

#define MINUTE 60000u
#define HOUR   (60u * MINUTE)
#define DAY    (24u * HOUR)

static int calls;

static hd_status tick(hd_action *a, hd_value args, void *ctx) {
    calls++;
    return hd_action_return(a, hd_null());
}

static void register_actions(hd_engine *e) {
    hd_action_spec spec = { .name = "tick", .fn = tick, .here = true };
    assert_int_equal(hd_action_register(e, &spec), HD_OK);
}

/* "job": tick. "slow": waits for the signal "go"; cancelled, it cleans up for a minute. */
static void register_jobs(void) {
    register_nodes("job", "{'id':'a','kind':'ACTION','action':'tick'},{'id':'out','kind':'RETURN'}",
                   "['in','a'],['a','out']");
    register_nodes("slow",
                   "{'id':'w','kind':'WAIT','signal':'go'},{'id':'h','kind':'HANDLER','clauses':[{}"
                   "]},{'id':'s','kind':'SLEEP','seconds':60},{'id':'r','kind':'RAISE'},{'id':'out"
                   "','kind':'RETURN'}",
                   "['in','w'],['w','out'],['w','h','EXCEPT'],['h','s','GUARD',0],['s','r']");
}

static int set_up(void **state) {
    calls = 0;
    set_up_world(state);
    register_jobs();
    return 0;
}

static void put_schedule(const hd_schedule *s) {
    hd_error error = { 0 };
    if (hd_schedule_put(engine, s, &error)) fail_msg("%s", error.message);
    pump();
}

static hd_value state_of(const char *name) {
    hd_value v;
    assert_int_equal(hd_schedule_state(engine, name, pool, &v), HD_OK);
    return v;
}
static int64_t number(const char *name, const char *key) {
    return hd_value_as_int(hd_value_at(state_of(name), key), 0);
}

static int64_t number_of_now(void) {
    return (int64_t)lab_env_of(env)->wall_ms(lab_env_of(env)->ctx);
}

static bool note_id(const hd_workflow_entry *e, void *ctx) {
    char *all = ctx;
    size_t n = strlen(all);
    snprintf(all + n, 2000 - n, "%s%s", n ? " " : "", e->id);
    return true;
}
static const char *instances(const char *status) {
    static char all[2000];
    all[0] = 0;
    hd_workflow_filter f = { .status = status };
    assert_int_equal(hd_workflow_list(engine, &f, note_id, all), HD_OK);
    return all;
}

static void a_workflow_is_started_at_its_times(void **state) {
    put_schedule(&(hd_schedule){ .name = "n", .workflow = "job", .cron = "30 2 * * *" });
    advance(2 * HOUR);
    assert_int_equal(calls, 0);
    advance(30 * MINUTE);
    assert_int_equal(calls, 1);
    assert_string_equal(instances("done"), "job/n@2020-01-01T02:30:00Z");
    for (int i = 0; i < 3; i++) advance(DAY);
    assert_int_equal(calls, 4);
    assert_int_equal(number("n", "started"), 4);
    assert_int_equal(number("n", "last"), number_of_now());
}

static void zones_and_intervals(void **state) {
    put_schedule(&(hd_schedule){
        .name = "b", .workflow = "job", .cron = "0 9 * * *", .zone = "Europe/Berlin" });
    put_schedule(&(hd_schedule){ .name = "i", .workflow = "job", .every_s = 0.5 });
    put_schedule(&(hd_schedule){ .name = "o",
                                 .workflow = "job",
                                 .every_s = 3600,
                                 .until_ms = (uint64_t)number("i", "next") + 3 * HOUR });
    advance(500);
    assert_string_equal(instances("done"), "job/i@2020-01-01T00:00:00.500Z");
    assert_int_equal(hd_schedule_remove(engine, "i"), HD_OK);
    advance(8 * HOUR);
    assert_int_equal(number("b", "last") - 1577836800000, 8 * HOUR);
    assert_int_equal(number("o", "started"),
                     1); /* the last of those that were missed: the third is out */
    assert_false(hd_value_exists(hd_value_at(state_of("o"), "next")));
    hd_value v;
    assert_int_equal(hd_schedule_state(engine, "i", pool, &v), HD_NOT_FOUND);
}

static void what_overlaps_is_skipped(void **state) {
    put_schedule(&(hd_schedule){ .name = "s", .workflow = "slow", .cron = "@hourly" });
    advance(HOUR);
    advance(HOUR);
    assert_int_equal(number("s", "started"), 1);
    assert_int_equal(number("s", "skipped"), 1);
    assert_int_equal(hd_workflow_signal(engine, "slow/s@2020-01-01T01:00:00Z", "go", hd_null()),
                     HD_OK);
    pump();
    advance(HOUR);
    assert_int_equal(number("s", "started"), 2);
}

static void what_overlaps_waits_its_turn(void **state) {
    put_schedule(&(hd_schedule){
        .name = "s", .workflow = "slow", .cron = "@hourly", .overlap = HD_OVERLAP_QUEUE });
    for (int i = 0; i < 3; i++) advance(HOUR);
    assert_int_equal(number("s", "started"), 1);
    assert_int_equal(number("s", "skipped"), 1); /* one waits, the third does not */
    assert_int_equal(hd_workflow_signal(engine, "slow/s@2020-01-01T01:00:00Z", "go", hd_null()),
                     HD_OK);
    pump();
    assert_string_equal(instances("running"), "slow/s@2020-01-01T02:00:00Z");
    assert_int_equal(number("s", "waiting"), 0);
}

static void what_overlaps_is_allowed(void **state) {
    put_schedule(&(hd_schedule){
        .name = "s", .workflow = "slow", .cron = "@hourly", .overlap = HD_OVERLAP_ALLOW });
    for (int i = 0; i < 3; i++) advance(HOUR);
    assert_int_equal(stats_now().open, 3);
}

static void what_overlaps_cancels_the_other(void **state) {
    put_schedule(&(hd_schedule){
        .name = "s", .workflow = "slow", .cron = "@hourly", .overlap = HD_OVERLAP_CANCEL });
    advance(HOUR);
    advance(HOUR);
    assert_string_equal(instances("running"), "slow/s@2020-01-01T01:00:00Z"); /* cleans up */
    advance(MINUTE);
    assert_string_equal(instances("cancelled"), "slow/s@2020-01-01T01:00:00Z");
    assert_string_equal(instances("running"), "slow/s@2020-01-01T02:00:00Z");
}

/* No engine for three hours. */
static void sleep_three_hours(hd_catch_up catch_up, double window_s) {
    put_schedule(&(hd_schedule){ .name = "s",
                                 .workflow = "job",
                                 .cron = "@hourly",
                                 .catch_up = catch_up,
                                 .window_s = window_s });
    hd_engine_close(engine);
    lab_env_advance_ms(env, 3 * HOUR + 10 * MINUTE);
    assert_int_equal(hd_engine_open(rt, NULL, &engine, NULL), HD_OK);
    register_actions(engine);
    for (int i = 0; i < 6; i++) pump();
}

static void the_last_missed_time_is_made_up_for(void **state) {
    sleep_three_hours(HD_CATCH_UP_LAST, 0);
    assert_string_equal(instances("done"), "job/s@2020-01-01T03:00:00Z");
    advance(50 * MINUTE);
    assert_int_equal(calls, 2);
}
static void all_missed_times_are_made_up_for(void **state) {
    sleep_three_hours(HD_CATCH_UP_ALL, 0);
    assert_int_equal(calls, 3);
}
static void missed_times_beyond_the_window_are_left_out(void **state) {
    sleep_three_hours(HD_CATCH_UP_ALL, 2 * 3600);
    assert_int_equal(calls, 2);
}
static void no_missed_time_is_made_up_for(void **state) {
    sleep_three_hours(HD_CATCH_UP_NONE, 0);
    assert_int_equal(calls, 0);
    advance(50 * MINUTE);
    assert_int_equal(calls, 1);
}

/* Each start of a program stores its schedules again. */
static void one_that_is_stored_again_goes_on_where_it_was(void **state) {
    hd_schedule hourly = { .name = "h", .workflow = "job", .every_s = 3600 };
    hd_schedule daily = { .name = "d", .workflow = "job", .cron = "0 1 * * *" };
    for (int i = 0; i < 4; i++) {
        put_schedule(&hourly);
        put_schedule(&daily);
        advance(20 * MINUTE);
    }
    assert_string_equal(instances("done"), "job/d@2020-01-01T01:00:00Z job/h@2020-01-01T01:00:00Z");
    hd_engine_close(engine);
    lab_env_advance_ms(env, DAY);
    assert_int_equal(hd_engine_open(rt, NULL, &engine, NULL), HD_OK);
    register_actions(engine);
    put_schedule(&hourly);
    put_schedule(&daily);
    for (int i = 0; i < 6; i++) pump();
    assert_int_equal(calls, 4); /* the last of the missed times of each */
    hd_schedule_pause(engine, "h");
    put_schedule(&hourly);
    advance(2 * HOUR);
    assert_int_equal(calls, 4); /* a pause is kept, too */
}

static void other_times_begin_anew(void **state) {
    put_schedule(&(hd_schedule){ .name = "s", .workflow = "job", .every_s = 3600 });
    advance(50 * MINUTE);
    put_schedule(&(hd_schedule){ .name = "s", .workflow = "job", .every_s = 1800 });
    advance(20 * MINUTE);
    assert_int_equal(calls, 0);
    advance(10 * MINUTE);
    assert_int_equal(calls, 1);
    put_schedule(&(hd_schedule){ .name = "s",
                                 .workflow = "job",
                                 .every_s = 1800,
                                 .from_ms = (uint64_t)number_of_now() + 5 * MINUTE });
    advance(5 * MINUTE);
    assert_int_equal(calls, 2);
}

static void pausing_triggering_and_resuming(void **state) {
    put_schedule(&(hd_schedule){ .name = "s", .workflow = "job", .cron = "@hourly" });
    assert_int_equal(hd_schedule_pause(engine, "s"), HD_OK);
    advance(5 * HOUR);
    assert_int_equal(calls, 0);
    assert_int_equal(hd_schedule_trigger(engine, "s"), HD_OK);
    pump();
    assert_int_equal(calls, 1);
    assert_int_equal(hd_schedule_resume(engine, "s"), HD_OK);
    advance(59 * MINUTE);
    assert_int_equal(calls, 1); /* nothing is made up for */
    advance(MINUTE);
    assert_int_equal(calls, 2);
    assert_int_equal(hd_schedule_remove(engine, "s"), HD_OK);
    advance(DAY);
    assert_int_equal(calls, 2);
    assert_int_equal(hd_schedule_trigger(engine, "s"), HD_NOT_FOUND);
}

/* Each is a start and counts as one, also where the clock stands still and where a time of its own comes then. */
static void each_trigger_is_a_start(void **state) {
    put_schedule(&(hd_schedule){
        .name = "s", .workflow = "job", .cron = "@hourly", .overlap = HD_OVERLAP_ALLOW });
    for (int i = 0; i < 3; i++) assert_int_equal(hd_schedule_trigger(engine, "s"), HD_OK);
    pump();
    assert_int_equal(hd_schedule_trigger(engine, "s"), HD_OK);
    pump();
    assert_int_equal(calls, 4);
    assert_int_equal(number("s", "started"), 4);
    advance(HOUR);
    assert_int_equal(calls, 5);
    assert_int_equal(hd_schedule_trigger(engine, "s"), HD_OK);
    pump();
    assert_int_equal(calls, 6);
    assert_int_equal(number("s", "started"), 6);
    assert_false(hd_value_exists(hd_value_at(state_of("s"), "trigger")));
}

/* A trigger is one more time: what the schedule does about times that overlap, it does about triggers. */
static void a_trigger_that_overlaps_is_a_time_that_overlaps(void **state) {
    static const hd_overlap overlaps[] = { HD_OVERLAP_SKIP, HD_OVERLAP_QUEUE, HD_OVERLAP_ALLOW };
    static const int64_t started[] = { 1, 1, 3 }, skipped[] = { 2, 1, 0 }, later[] = { 1, 2, 3 };
    for (int i = 0; i < 3; i++) {
        hd_schedule s = {
            .name = "s", .workflow = "slow", .cron = "@yearly", .overlap = overlaps[i]
        };
        char first[HD_INSTANCE_ID_SIZE];
        put_schedule(&s);
        assert_int_equal(hd_schedule_trigger(engine, "s"), HD_OK);
        pump();
        snprintf(first, sizeof first, "%s", instances("running"));
        for (int k = 0; k < 2; k++) assert_int_equal(hd_schedule_trigger(engine, "s"), HD_OK);
        pump();
        assert_int_equal(number("s", "started"), started[i]);
        assert_int_equal(number("s", "skipped"), skipped[i]);
        assert_int_equal(hd_workflow_signal(engine, first, "go", hd_null()), HD_OK);
        pump();
        assert_int_equal(number("s", "started"), later[i]);
        assert_int_equal(hd_schedule_remove(engine, "s"), HD_OK);
        advance(HOUR);
        char rest[2000];
        snprintf(rest, sizeof rest, "%s", instances("running"));
        for (char *at = strtok(rest, " "); at; at = strtok(NULL, " "))
            assert_int_equal(hd_workflow_signal(engine, at, "go", hd_null()), HD_OK);
        pump();
    }
}

/* The instance is cancelled for the second, and cleans up; the third takes the place of the second. */
static void a_time_that_another_takes_the_place_of_is_skipped(void **state) {
    put_schedule(&(hd_schedule){
        .name = "s", .workflow = "slow", .cron = "@yearly", .overlap = HD_OVERLAP_CANCEL });
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hd_schedule_trigger(engine, "s"), HD_OK);
        pump();
    }
    assert_int_equal(number("s", "started"), 1);
    assert_int_equal(number("s", "skipped"), 1);
    advance(MINUTE);
    assert_int_equal(number("s", "started"), 2);
    assert_int_equal(number("s", "skipped"), 1);
}

/* What waits for its turn does so until the schedule is resumed. */
static void a_trigger_of_a_paused_schedule_may_have_to_wait(void **state) {
    put_schedule(&(hd_schedule){
        .name = "s", .workflow = "slow", .cron = "@yearly", .overlap = HD_OVERLAP_QUEUE });
    assert_int_equal(hd_schedule_pause(engine, "s"), HD_OK);
    for (int i = 0; i < 2; i++) assert_int_equal(hd_schedule_trigger(engine, "s"), HD_OK);
    pump();
    assert_int_equal(number("s", "started"), 1);
    assert_int_equal(hd_workflow_signal(engine, instances("running"), "go", hd_null()), HD_OK);
    pump();
    assert_int_equal(number("s", "started"), 1);
    assert_int_equal(hd_schedule_resume(engine, "s"), HD_OK);
    pump();
    assert_int_equal(number("s", "started"), 2);
}

static void the_state_is_that_of_now(void **state) {
    uint64_t begin = (uint64_t)number_of_now();
    put_schedule(&(hd_schedule){ .name = "s", .workflow = "slow", .cron = "@hourly" });
    advance(HOUR);
    snprintf(id, sizeof id, "%s", hd_value_as_text(hd_value_at(state_of("s"), "running"), "-"));
    assert_string_equal(id, "slow/s@2020-01-01T01:00:00Z");
    assert_int_equal(hd_workflow_signal(engine, id, "go", hd_null()), HD_OK);
    pump();
    assert_false(hd_value_exists(hd_value_at(state_of("s"), "running")));
    assert_int_equal(hd_schedule_pause(engine, "s"), HD_OK);
    advance(5 * HOUR + MINUTE);
    assert_int_equal(number("s", "next"), (int64_t)(begin + 7 * HOUR));
    assert_int_equal(hd_value_as_int(hd_value_index(hd_value_at(state_of("s"), "times"), 0), 0),
                     (int64_t)(begin + 7 * HOUR));
}

/* An engine that is open for one sync has started what is overdue. */
static void a_time_that_is_overdue_is_started_by_a_brief_engine(void **state) {
    put_schedule(&(hd_schedule){ .name = "s", .workflow = "job", .cron = "@hourly" });
    hd_engine_close(engine);
    lab_env_advance_ms(env, 3 * HOUR);
    assert_int_equal(hd_engine_open(rt, NULL, &engine, NULL), HD_OK);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    hd_engine_close(engine);
    assert_int_equal(hd_engine_open(rt, &(hd_engine_options){ .observer = true }, &engine, NULL),
                     HD_OK);
    assert_string_equal(instances(NULL), "job/s@2020-01-01T03:00:00Z");
}

static void jitter_delays_by_less_than_it_says(void **state) {
    put_schedule(
        &(hd_schedule){ .name = "j", .workflow = "job", .cron = "@hourly", .jitter_s = 600 });
    int64_t late = number("j", "due") - number("j", "next");
    assert_in_range(late, 1, 600000 - 1);
    advance((uint64_t)(HOUR + late - 1));
    assert_int_equal(calls, 0);
    advance(1);
    assert_int_equal(calls, 1);
}

static void times_can_be_asked_for(void **state) {
    uint64_t times[3];
    size_t found;
    hd_schedule s = { .name = "x", .workflow = "job", .cron = "0 0 1 * *", .zone = "+01:00" };
    assert_int_equal(hd_schedule_times(engine, &s, 1577836800000, times, 3, &found, NULL), HD_OK);
    assert_int_equal(found, 3);
    assert_int_equal(times[0], 1577836800000 + 31 * (uint64_t)DAY - HOUR);
    put_schedule(&s);
    assert_int_equal(hd_value_count(hd_value_at(state_of("x"), "times")), 5);
}

static bool count_one(const char *name, void *ctx) {
    ++*(int *)ctx;
    return true;
}

/* The next time is in the store: a program that is started anew, or that takes over, goes on from there. */
static void schedules_survive_a_restart(void **state) {
    char file[256];
    int all = 0;
    hd_runtime *rt2;
    hd_engine *engine2;
    hd_schedule hourly = { .name = "s", .workflow = "job", .cron = "@hourly" };
    hd_schedule soon = { .name = "s", .workflow = "job", .every_s = 0.5 };
    close_store();
    folder_store(file, sizeof file, "schedule.db");
    where = file;
    real_time = lab_on_server();
    open_store();
    register_jobs();
    put_schedule(real_time ? &soon : &hourly);
    close_store();
    open_store();
    lab_env_advance_ms(env, HOUR);
    /* A wait for the writer's thread may let another hour of the lab's time pass. */
    PUMP_UNTIL(rt, calls >= 1);
    open_engine(NULL, &rt2, &engine2); /* stands by */
    assert_false(hd_engine_is_active(engine2));
    assert_int_equal(hd_schedule_list(engine2, count_one, &all), HD_OK);
    assert_int_equal(all, 1);
    hd_engine_close(engine);
    PUMP_UNTIL(rt2, hd_engine_is_active(engine2));
    int before = calls;
    lab_env_advance_ms(env, HOUR);
    PUMP_UNTIL(rt2, calls > before);
    assert_int_equal(hd_close(rt2), HD_OK);
    close_store();
    folder_remove_store(file);
    where = NULL;
    real_time = false;
    open_store();
}

static void assert_refused(const hd_schedule *s, hd_status expected, const char *part) {
    hd_error error = { 0 };
    hd_status status = hd_schedule_put(engine, s, &error);
    if (status != expected || !strstr(error.message, part))
        fail_msg("%s: %s", hd_status_name(status), error.message);
}

static void what_cannot_be_is_refused(void **state) {
    hd_schedule s = { .name = "s", .workflow = "job", .cron = "@hourly" };
    hd_schedule bad = s;
    bad.cron = "61 * * * *";
    assert_refused(&bad, HD_SYNTAX, "column 1");
    bad = s, bad.zone = "Nowhere";
    assert_refused(&bad, HD_NOT_FOUND, "time zone");
    bad = s, bad.workflow = "none";
    assert_refused(&bad, HD_NOT_FOUND, "no workflow");
    bad = s, bad.input = parse("{'x':1}");
    assert_refused(&bad, HD_MISMATCH, "\"x\"");
    bad = s, bad.every_s = 5;
    assert_refused(&bad, HD_USAGE, "either");
    bad = s, bad.cron = NULL;
    assert_refused(&bad, HD_USAGE, "either");
    bad = s, bad.jitter_s = -1;
    assert_refused(&bad, HD_USAGE, "jitter_s");
    bad = s, bad.name = "a/b";
    assert_refused(&bad, HD_USAGE, "name");
    bad = s, bad.overlap = (hd_overlap)9;
    assert_refused(&bad, HD_USAGE, "overlap");
    bad = s, bad.from_ms = 100, bad.until_ms = 50;
    assert_refused(&bad, HD_USAGE, "until_ms is after from_ms");
    bad = s, bad.cron = NULL, bad.every_s = 0.0005;
    assert_refused(&bad, HD_USAGE, "at least a millisecond");
    bad = s, bad.cron = NULL, bad.every_s = 5, bad.zone = "Mars/X";
    assert_refused(&bad, HD_USAGE, "zone belongs to cron");
}

/* The workflow was changed under a schedule: that is told, and the schedule goes on. */
static void a_start_that_fails_is_told(void **state) {
    put_schedule(&(hd_schedule){ .name = "s", .workflow = "job", .cron = "@hourly" });
    register_ir(
        "{'heddle':1,'name':'job','inputs':[{'name':'n'}],'functions':[{'name':'run','params"
        "':['n'],'nodes':[{'id':'in','kind':'ENTRY'},{'id':'out','kind':'RETURN'}],'edges':"
        "[['in','out']]}]}");
    advance(HOUR);
    assert_non_null(
        strstr(hd_value_as_text(hd_value_at(hd_value_at(state_of("s"), "error"), "message"), ""),
               "\"n\""));
    register_jobs();
    advance(HOUR);
    assert_int_equal(calls, 1);
    assert_false(hd_value_exists(hd_value_at(state_of("s"), "error")));
}

/* Any allocation may fail while a time comes: it is started, and once. */
static void a_time_is_started_once_whatever_fails(void **state) {
    for (uint64_t n = 1;; n++) {
        tear_down_world(state);
        set_up(state);
        put_schedule(&(hd_schedule){ .name = "s", .workflow = "job", .cron = "@hourly" });
        lab_env_fail_at(env, n);
        lab_env_advance_ms(env, HOUR);
        for (int i = 0; i < 10; i++) {
            (void)hd_runtime_pump(rt);
            lab_env_advance_ms(env, 20);
        }
        bool failed = lab_env_failed(env);
        lab_env_fail_at(env, 0);
        pump();
        advance(1000);
        assert_int_equal(number("s", "started"), 1);
        assert_string_equal(instances("done"), "job/s@2020-01-01T01:00:00Z");
        if (!failed) break;
    }
}

/* That the one before is to be cancelled is stored with the turn: it is cancelled whatever fails then. */
static void what_overlaps_is_cancelled_whatever_fails(void **state) {
    for (uint64_t n = 1;; n++) {
        tear_down_world(state);
        set_up(state);
        put_schedule(&(hd_schedule){
            .name = "s", .workflow = "slow", .cron = "@hourly", .overlap = HD_OVERLAP_CANCEL });
        advance(HOUR);
        lab_env_advance_ms(env, HOUR);
        lab_env_fail_at(env, n);
        for (int i = 0; i < 5; i++) (void)hd_runtime_pump(rt);
        bool failed = lab_env_failed(env);
        lab_env_fail_at(env, 0);
        for (int i = 0; i < 20; i++) advance(100);
        advance(60000); /* it cleans up */
        assert_int_equal(number("s", "started"), 2);
        if (!failed) break;
    }
}

/* A jitter may be longer than the interval: each time has its start, later by less than the jitter. */
static void no_start_is_lost_to_a_long_jitter(void **state) {
    put_schedule(&(hd_schedule){ .name = "s",
                                 .workflow = "job",
                                 .every_s = 60,
                                 .jitter_s = 600,
                                 .overlap = HD_OVERLAP_ALLOW });
    for (int minute = 0; minute < 100; minute++) advance(60000);
    assert_in_range(number("s", "started"), 90, 100);
    assert_int_equal(calls, number("s", "started"));
}

int main(void) {
#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down_world)
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(a_workflow_is_started_at_its_times),
        IN_A_WORLD(zones_and_intervals),
        IN_A_WORLD(what_overlaps_is_skipped),
        IN_A_WORLD(what_overlaps_waits_its_turn),
        IN_A_WORLD(what_overlaps_is_allowed),
        IN_A_WORLD(what_overlaps_cancels_the_other),
        IN_A_WORLD(the_last_missed_time_is_made_up_for),
        IN_A_WORLD(all_missed_times_are_made_up_for),
        IN_A_WORLD(missed_times_beyond_the_window_are_left_out),
        IN_A_WORLD(no_missed_time_is_made_up_for),
        IN_A_WORLD(one_that_is_stored_again_goes_on_where_it_was),
        IN_A_WORLD(other_times_begin_anew),
        IN_A_WORLD(pausing_triggering_and_resuming),
        IN_A_WORLD(each_trigger_is_a_start),
        IN_A_WORLD(a_trigger_that_overlaps_is_a_time_that_overlaps),
        IN_A_WORLD(a_time_that_another_takes_the_place_of_is_skipped),
        IN_A_WORLD(a_trigger_of_a_paused_schedule_may_have_to_wait),
        IN_A_WORLD(the_state_is_that_of_now),
        IN_A_WORLD(a_time_that_is_overdue_is_started_by_a_brief_engine),
        IN_A_WORLD(jitter_delays_by_less_than_it_says),
        IN_A_WORLD(times_can_be_asked_for),
        IN_A_WORLD(schedules_survive_a_restart),
        IN_A_WORLD(what_cannot_be_is_refused),
        IN_A_WORLD(a_start_that_fails_is_told),
        IN_A_WORLD(a_time_is_started_once_whatever_fails),
        IN_A_WORLD(what_overlaps_is_cancelled_whatever_fails),
        IN_A_WORLD(no_start_is_lost_to_a_long_jitter),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
