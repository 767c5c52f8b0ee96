/* test_workflow_task.c -- workers and the steps they claim: tokens, timeouts, heartbeats, lost work, order (W1). */
#define _DEFAULT_SOURCE
#include "workflow/engine.h"
#include "workflow/open_record.h"

#include "workflow_world.h"
#include <sched.h>

static int counted; /* calls of "count" */

static hd_status count(hd_action *a, hd_value args, void *ctx) {
    counted++;
    return hd_action_return(a, hd_int(NULL, counted));
}

/* On a thread: works until the engine does not want it any more. */
static hd_status linger(hd_action *a, hd_value args, void *ctx) {
    hd_action_heartbeat(a);
    while (!hd_action_is_revoked(a)) sched_yield();
    return HD_OK;
}

static void register_actions(hd_engine *e) {
    hd_action_spec all[] = { { .name = "count", .fn = count, .here = true },
                             { .name = "linger", .fn = linger } };
    counted = 0;
    for (size_t i = 0; i < 2; i++) assert_int_equal(hd_action_register(e, &all[i]), HD_OK);
}

/* ---- a worker whose hands are the test's */

typedef struct hands {
    worker w;
    int offers;
    uint64_t revoked;
    char why[20];
} hands;

static void note_offer(worker *w) { ((hands *)(void *)w)->offers++; }
static void note_revoked(worker *w, uint64_t token, const char *why) {
    hands *who = (hands *)(void *)w;
    who->revoked = token;
    snprintf(who->why, sizeof who->why, "%s", why);
}
static const worker_ops hands_ops = { note_offer, note_revoked };

/* Takes all that it is offered. */
static void take_all(worker *w) {
    for (task_view t; task_claim(w, &t);) ((hands *)(void *)w)->offers++;
}
static const worker_ops greedy_ops = { take_all, note_revoked };

/* Two of them; the engine may know them until it is closed. */
static hands h, other;

static void join(hands *who) {
    *who = (hands){ .w = { .ops = &hands_ops, .capacity = 8 } };
    worker_join(engine, &who->w);
    assert_int_equal(worker_serve(&who->w, "work"), HD_OK);
}

static void register_step(const char *options) {
    char nodes[400];
    snprintf(nodes, sizeof nodes,
             "{'id':'a','kind':'ACTION','action':'work','into':['name','r']%s},"
             "{'id':'out','kind':'RETURN','value':['name','r']}",
             options);
    register_nodes("w", nodes, "['in','a'],['a','out']");
}

static task_view claim_one(hands *who) {
    task_view t;
    pump();
    assert_true(task_claim(&who->w, &t));
    task_check(engine);
    return t;
}

/* ---- tests */

static void a_step_is_claimed_by_one_worker_and_completed_with_its_token(void **state) {
    task_view t, none;
    register_step("");
    join(&h);
    join(&other);
    start_keyed("w", "k", "{}");
    t = claim_one(&h);
    assert_string_equal(t.action, "work");
    assert_string_equal(t.instance, "w/k");
    assert_string_equal(t.node, "a");
    assert_string_equal(t.id, "w/k/0.1");
    assert_int_equal(t.attempt, 1);
    assert_false(task_claim(&other.w, &none));
    assert_int_equal(stats_now().running, 1);
    assert_int_equal(task_complete(engine, t.token, hd_bool(true)), HD_OK);
    assert_result("true");
    task_check(engine);
}

static void join_greedy(hands *who, uint32_t capacity) {
    *who = (hands){ .w = { .ops = &greedy_ops, .capacity = capacity } };
    worker_join(engine, &who->w);
    assert_int_equal(worker_serve(&who->w, "work"), HD_OK);
}

static void steps_are_spread_evenly_over_workers_that_have_room(void **state) {
    register_step("");
    join_greedy(&h, 100);
    join_greedy(&other, 100);
    for (int i = 0; i < 10; i++) start("w", "{}");
    pump();
    assert_int_equal(h.w.held, 5);
    assert_int_equal(other.w.held, 5);
    worker_leave(&other.w); /* its five go to the one that is left */
    pump();
    assert_int_equal(h.w.held, 10);
    join_greedy(&other, 3); /* what does not fit goes where there is room */
    for (int i = 0; i < 10; i++) start("w", "{}");
    pump();
    assert_int_equal(other.w.held, 3);
    assert_int_equal(h.w.held, 17);
    task_check(engine);
}

/* W1: an attempt completes once. */
static void a_completion_with_an_old_token_changes_nothing(void **state) {
    register_step("");
    join(&h);
    start("w", "{}");
    task_view t = claim_one(&h);
    assert_int_equal(task_complete(engine, t.token + (UINT64_C(1) << 24), hd_null()), HD_NOT_FOUND);
    assert_int_equal(task_complete(engine, UINT64_MAX, hd_null()), HD_NOT_FOUND);
    assert_int_equal(task_complete(engine, t.token, hd_bool(true)), HD_OK);
    assert_int_equal(task_complete(engine, t.token, hd_bool(false)), HD_NOT_FOUND);
    assert_int_equal(task_fail(engine, t.token, "ValueError", ""), HD_NOT_FOUND);
    assert_result("true");
    assert_int_equal(stats_now().duplicates, 4);
    assert_int_equal(stats_now().steps, 1);
}

static void an_attempt_longer_than_its_timeout_fails_with_timeout_error(void **state) {
    register_step(",'timeout':5,'retry':{'attempts':2}");
    join(&h);
    start("w", "{}");
    task_view t = claim_one(&h);
    assert_int_equal(t.timeout_ms, 5000);
    advance(4999);
    assert_int_equal(h.revoked, 0);
    advance(2);
    assert_int_equal(h.revoked, t.token);
    assert_string_equal(h.why, "timeout");
    task_view again = claim_one(&h);
    assert_int_equal(again.attempt, 2);
    assert_string_equal(again.id, t.id);
    assert_int_equal(task_complete(engine, t.token, hd_null()), HD_NOT_FOUND);
    advance(6000);
    assert_raised("TimeoutError");
}

/* A paused instance does nothing: what is over meanwhile takes effect when it goes on. */
static void a_timeout_of_a_paused_instance_waits(void **state) {
    register_step(",'timeout':5,'heartbeat':3");
    join(&h);
    start("w", "{}");
    task_view t = claim_one(&h);
    assert_int_equal(hd_workflow_pause(engine, id), HD_OK);
    for (int i = 0; i < 4; i++) {
        advance(2000);
        assert_int_equal(task_heartbeat(engine, t.token), HD_OK);
    }
    assert_int_equal(h.revoked, 0);
    assert_string_equal(field("status"), "paused");
    assert_int_equal(hd_workflow_resume(engine, id), HD_OK);
    pump();
    assert_int_equal(h.revoked, t.token);
    assert_string_equal(h.why, "timeout");
    assert_raised("TimeoutError");
    /* A worker that is lost is noticed all the same; the step is begun again when the instance goes on. */
    start("w", "{}");
    t = claim_one(&h);
    assert_int_equal(hd_workflow_pause(engine, id), HD_OK);
    advance(3001);
    assert_string_equal(h.why, "silent");
    assert_int_equal(stats_now().ready, 0);
    assert_int_equal(hd_workflow_resume(engine, id), HD_OK);
    t = claim_one(&h);
    assert_int_equal(hd_workflow_pause(engine, id), HD_OK);
    pump();
    assert_int_equal(task_complete(engine, t.token, hd_bool(true)), HD_OK);
    pump();
    assert_result("true");
}

/* Timeouts are measured by the clock that does not jump. */
static void a_jump_of_the_wall_clock_ends_no_attempt(void **state) {
    register_step(",'timeout':5");
    join(&h);
    start("w", "{}");
    task_view t = claim_one(&h);
    lab_env_set_wall_ms(env, UINT64_C(4000000000000));
    pump();
    assert_int_equal(h.revoked, 0);
    assert_int_equal(task_complete(engine, t.token, hd_bool(true)), HD_OK);
    assert_result("true");
}

static void a_worker_that_is_silent_for_too_long_is_lost(void **state) {
    register_step(",'heartbeat':10");
    join(&h);
    start("w", "{}");
    task_view t = claim_one(&h);
    assert_int_equal(t.heartbeat_ms, 10000);
    for (int i = 0; i < 5; i++) {
        advance(9000);
        assert_int_equal(task_heartbeat(engine, t.token), HD_OK);
    }
    assert_int_equal(h.revoked, 0);
    advance(10001);
    assert_int_equal(h.revoked, t.token);
    assert_string_equal(h.why, "silent");
    t = claim_one(&h);
    assert_int_equal(t.attempt, 1);
    assert_int_equal(stats_now().lost, 1);
    assert_int_equal(task_complete(engine, t.token, hd_bool(true)), HD_OK);
    assert_result("true");
}

static void lost_work_is_no_attempt_up_to_a_cap(void **state) {
    register_step(",'retry':{'attempts':2}");
    join(&h);
    start("w", "{}");
    for (int i = 1; i < TASK_LOST_MAX; i++) {
        task_view t = claim_one(&h);
        assert_int_equal(t.attempt, 1);
        assert_int_equal(task_lost(engine, t.token), HD_OK);
    }
    pump();
    assert_int_equal(open_record_number(hd_value_at(hd_value_at(document(), "open"), "0"), "lost"),
                     TASK_LOST_MAX - 1);
    assert_int_equal(task_lost(engine, claim_one(&h).token), HD_OK);
    assert_raised("ConnectionError");
}

static void what_a_worker_that_leaves_had_goes_to_another(void **state) {
    register_step("");
    join(&h);
    start("w", "{}");
    task_view t = claim_one(&h);
    worker_leave(&h.w);
    assert_int_equal(task_complete(engine, t.token, hd_null()), HD_NOT_FOUND);
    pump();
    assert_int_equal(stats_now().ready, 1);
    join(&other);
    t = claim_one(&other);
    assert_int_equal(task_complete(engine, t.token, hd_bool(true)), HD_OK);
    assert_result("true");
}

static void a_step_that_is_given_back_keeps_its_place(void **state) {
    register_step("");
    join(&h);
    start_keyed("w", "first", "{}");
    start_keyed("w", "second", "{}");
    task_view t = claim_one(&h);
    assert_string_equal(t.instance, "w/first");
    assert_int_equal(task_give_back(engine, t.token), HD_OK);
    t = claim_one(&h);
    assert_string_equal(t.instance, "w/first");
    assert_int_equal(stats_now().lost, 0);
}

/* A step of a shard that is to be given away waits until it is known where the shard goes. */
static void a_step_of_a_shard_that_drains_is_not_begun_again(void **state) {
    task_view t;
    register_step("");
    join(&h);
    start("w", "{}");
    t = claim_one(&h);
    engine->shards[0].drains_ns = 1;
    assert_int_equal(task_give_back(engine, t.token), HD_OK);
    assert_false(task_claim(&h.w, &t));
    engine->shards[0].drains_ns = 0;
    step_queue(live_find(engine, id));
    assert_true(task_claim(&h.w, &t));
    assert_int_equal(task_complete(engine, t.token, hd_bool(true)), HD_OK);
    assert_result("true");
}

static void the_higher_priority_goes_first_then_the_older(void **state) {
    task_view t;
    register_step("");
    for (int i = 0; i < 6; i++) {
        char key[16];
        hd_start_options o = { .key = key, .priority = i % 3 };
        snprintf(key, sizeof key, "%d", i);
        assert_int_equal(hd_workflow_start(engine, "w", hd_object(), &o, id), HD_OK);
        pump();
    }
    join(&h);
    const char *order[] = { "w/2", "w/5", "w/1", "w/4", "w/0", "w/3" };
    for (int i = 0; i < 6; i++) {
        assert_true(task_claim(&h.w, &t));
        assert_string_equal(t.instance, order[i]);
    }
}

static void a_worker_claims_no_more_than_it_has_room_for(void **state) {
    task_view t;
    register_step("");
    join(&h);
    worker_set_capacity(&h.w, 2);
    for (int i = 0; i < 3; i++) start("w", "{}");
    pump();
    assert_true(h.offers > 0);
    assert_true(task_claim(&h.w, &t));
    assert_true(task_claim(&h.w, &t));
    assert_false(task_claim(&h.w, &t));
    h.offers = 0;
    pump();
    assert_int_equal(h.offers, 0);
    assert_int_equal(task_complete(engine, t.token, hd_null()), HD_OK);
    pump();
    assert_true(h.offers > 0);
    worker_set_capacity(&h.w, 3);
    task_check(engine);
    assert_true(task_claim(&h.w, &t));
    assert_false(task_claim(&h.w, &t));
}

static void a_cancelled_step_is_taken_from_its_worker(void **state) {
    hd_value result;
    register_step("");
    join(&h);
    start("w", "{}");
    task_view t = claim_one(&h);
    assert_int_equal(hd_workflow_cancel(engine, id), HD_OK);
    assert_int_equal(h.revoked, t.token);
    assert_string_equal(h.why, "gone");
    assert_int_equal(await(&result), HD_ABORTED);
    assert_int_equal(task_complete(engine, t.token, hd_null()), HD_NOT_FOUND);
}

static void an_action_on_a_thread_hears_that_it_is_not_wanted(void **state) {
    register_nodes("w",
                   "{'id':'a','kind':'ACTION','action':'linger','timeout':5},"
                   "{'id':'out','kind':'RETURN'}",
                   "['in','a'],['a','out']");
    start("w", "{}");
    assert_raised("TimeoutError");
}

static void steps_wait_for_an_action_that_is_registered_later(void **state) {
    register_step("");
    start("w", "{}");
    pump();
    assert_int_equal(stats_now().ready, 1);
    assert_int_equal(
        hd_action_register(engine, &(hd_action_spec){ .name = "work", .fn = count, .here = true }),
        HD_OK);
    assert_result("1");
    assert_int_equal(hd_action_register(engine, &(hd_action_spec){ .name = "work", .fn = count }),
                     HD_USAGE);
}

int main(void) {
#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up_world, tear_down_world)
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(a_step_is_claimed_by_one_worker_and_completed_with_its_token),
        IN_A_WORLD(steps_are_spread_evenly_over_workers_that_have_room),
        IN_A_WORLD(a_completion_with_an_old_token_changes_nothing),
        IN_A_WORLD(an_attempt_longer_than_its_timeout_fails_with_timeout_error),
        IN_A_WORLD(a_timeout_of_a_paused_instance_waits),
        IN_A_WORLD(a_jump_of_the_wall_clock_ends_no_attempt),
        IN_A_WORLD(a_worker_that_is_silent_for_too_long_is_lost),
        IN_A_WORLD(lost_work_is_no_attempt_up_to_a_cap),
        IN_A_WORLD(what_a_worker_that_leaves_had_goes_to_another),
        IN_A_WORLD(a_step_that_is_given_back_keeps_its_place),
        IN_A_WORLD(a_step_of_a_shard_that_drains_is_not_begun_again),
        IN_A_WORLD(the_higher_priority_goes_first_then_the_older),
        IN_A_WORLD(a_worker_claims_no_more_than_it_has_room_for),
        IN_A_WORLD(a_cancelled_step_is_taken_from_its_worker),
        IN_A_WORLD(an_action_on_a_thread_hears_that_it_is_not_wanted),
        IN_A_WORLD(steps_wait_for_an_action_that_is_registered_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
