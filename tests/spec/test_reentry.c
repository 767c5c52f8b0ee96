/* Callbacks that take away what they were called for: a node, a handler, themselves. What they were
 * told stays readable until they return, nobody else is taken for the one that is gone, and those who
 * come next are told as if nothing had happened. The sanitisers judge most of it. */
#include "lab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <heddle/event.h>
#include <heddle/pattern.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct world {
    hd_runtime *rt;
    hd_cell a, b, stream;
    hd_handler handler;
    hd_node node;
    hd_run *run;
    hd_presync *sync;
    int runs, released, told;
    hd_status outcome;
    char seen[128];
} world;

static world open_world(void) {
    world w = { 0 };
    assert_int_equal(hd_open(NULL, &(hd_options){ .principal = "me" }, &w.rt, NULL), HD_OK);
    w.a = hd_cell_at(w.rt, "main/a");
    w.b = hd_cell_at(w.rt, "main/b");
    w.stream = hd_cell_at(w.rt, "main/stream");
    return w;
}

static void note(const char *id, hd_status status, void *ctx) {
    world *w = ctx;
    (void)id;
    w->told++;
    w->outcome = status;
}

static void send_one(world *w) {
    hd_send_options options = { .done = note, .ctx = w };
    assert_int_equal(hd_event_send(w->rt, w->stream, hd_null(), &options), HD_OK);
}

static void settle(world *w) {
    for (int i = 0; i < 5; i++) hd_runtime_pump(w->rt);
}

/* ---- nodes */

static hd_status give_up(hd_tx *tx, void *ctx) {
    world *w = ctx;
    hd_tx_get(tx, w->a);
    w->runs++;
    return hd_tx_fail(tx, HD_FAILED, "it does not work");
}

static hd_status look(hd_tx *tx, void *ctx) {
    world *w = ctx;
    hd_tx_get(tx, w->a);
    w->runs++;
    return HD_OK;
}

static void cancel_failed(const hd_failure *failure, void *ctx) {
    world *w = ctx;
    hd_node_unregister(w->rt, failure->node);
    snprintf(w->seen, sizeof w->seen, "%s", failure->action);
}

static void an_error_handler_cancels_the_node_that_failed(void **state) {
    (void)state;
    world w = open_world();
    assert_int_equal(hd_runtime_on_error(w.rt, cancel_failed, &w), HD_OK);
    for (int i = 0; i < 4; i++) {
        char name[64];
        snprintf(name, sizeof name, "a name that is nobody else's %d", i);
        hd_node_spec spec = { .name = name, .fn = give_up, .ctx = &w, .effect = true };
        if (i % 2) spec.throttle_ms = 5;
        assert_int_equal(hd_node_register(w.rt, &spec, &w.node), HD_OK);
    }
    hd_node good = hd_effect(w.rt, "good", look, &w);
    settle(&w);
    assert_int_equal(w.runs, 5);
    assert_string_equal(w.seen, "a name that is nobody else's 3");
    assert_true(hd_node_exists(w.rt, good));
    hd_write_json(w.rt, w.a, "1");
    settle(&w);
    assert_int_equal(w.runs, 6);
    hd_close(w.rt);
}

static hd_status suspend_and_cancel(hd_tx *tx, void *ctx) {
    world *w = ctx;
    assert_int_equal(hd_tx_suspend(tx, &w->run), HD_OK);
    hd_node_unregister(w->rt, w->node);
    return HD_PENDING;
}

static void a_node_that_is_suspended_cancels_itself_and_nobody_else(void **state) {
    (void)state;
    world w = open_world();
    w.node = hd_effect(w.rt, "goes", suspend_and_cancel, &w);
    hd_node stays = hd_effect(w.rt, "stays", look, &w);
    settle(&w);
    assert_true(hd_node_exists(w.rt, stays));
    assert_false(hd_node_exists(w.rt, w.node));
    hd_run_resume(w.run, HD_OK);
    settle(&w);
    assert_true(hd_node_exists(w.rt, stays));
    hd_close(w.rt);
}

/* ---- handlers */

static void count_release(void *ctx) {
    world **w = ctx;
    (*w)->released++;
    free(w);
}

static hd_handler_spec spec_of(world *w, hd_handler_fn fn) {
    world **ctx = malloc(sizeof *ctx);
    *ctx = w;
    return (hd_handler_spec){ .name = "a handler called like nothing else in this program",
                              .stream = w->stream,
                              .fn = fn,
                              .ctx = ctx,
                              .release = count_release,
                              .reads_nothing = true };
}

static void handle(world *w, const hd_handler_spec *spec) {
    assert_int_equal(hd_handler_register(w->rt, spec, &w->handler), HD_OK);
}

static hd_status count_up(hd_tx *tx, const hd_event *event, void *ctx) {
    world *w = *(world **)ctx;
    (void)event;
    w->runs++;
    return hd_tx_set_double(tx, w->b, w->runs);
}

static hd_status leave_then_count_up(hd_tx *tx, const hd_event *event, void *ctx) {
    world *w = *(world **)ctx;
    hd_handler_unregister(w->rt, w->handler);
    assert_int_equal(w->released, 0);
    return count_up(tx, event, ctx);
}

static void a_handler_removes_itself(void **state) {
    (void)state;
    world w = open_world();
    hd_handler_spec spec = spec_of(&w, leave_then_count_up);
    handle(&w, &spec);
    send_one(&w);
    settle(&w);
    assert_int_equal(w.outcome, HD_OK);
    assert_int_equal(w.released, 1);
    send_one(&w);
    settle(&w);
    assert_int_equal(w.outcome, HD_NOT_FOUND);
    assert_int_equal(w.runs, 1);
    hd_close(w.rt);
    assert_int_equal(w.released, 1);
}

static hd_status hand_over(hd_tx *tx, const hd_event *event, void *ctx) {
    world *w = *(world **)ctx;
    hd_handler_spec next = spec_of(w, count_up), last = spec_of(w, count_up);
    handle(w, &next);
    handle(w, &last);
    assert_int_equal(w->released, 0); /* ours is still at work */
    return count_up(tx, event, ctx);
}

static void a_handler_hands_over_to_another(void **state) {
    (void)state;
    world w = open_world();
    hd_handler_spec spec = spec_of(&w, hand_over);
    handle(&w, &spec);
    send_one(&w);
    send_one(&w);
    settle(&w);
    assert_int_equal(w.runs, 2);
    assert_int_equal(w.released, 2);
    hd_close(w.rt);
    assert_int_equal(w.released, 3);
}

static hd_status leave_while_syncing(hd_presync *sync, const hd_event *event, void *ctx) {
    world *w = *(world **)ctx;
    (void)sync, (void)event;
    hd_handler_unregister(w->rt, w->handler);
    return (*(world **)ctx)->rt ? HD_OK : HD_USAGE; /* ctx is still there */
}

static hd_status leave_in_preflight(hd_tx *tx, const hd_event *event, void *ctx) {
    world *w = *(world **)ctx;
    (void)tx, (void)event;
    hd_handler_unregister(w->rt, w->handler);
    return (*(world **)ctx)->rt ? HD_OK : HD_USAGE;
}

static void leave_when_traced(const hd_event_trace *trace, void *ctx) {
    world *w = ctx;
    hd_handler_unregister(w->rt, w->handler);
    snprintf(w->seen, sizeof w->seen, "%s", trace->handler);
}

static void expect_nobody(world *w) {
    send_one(w);
    settle(w);
    assert_int_equal(w->told, 1);
    assert_int_equal(w->outcome, HD_NOT_FOUND);
    assert_int_equal(w->runs, 0);
    assert_int_equal(w->released, 1);
    hd_close(w->rt);
    assert_int_equal(w->released, 1);
}

static void a_handler_removed_while_inputs_are_synced_does_not_run(void **state) {
    (void)state;
    world w = open_world();
    hd_handler_spec spec = spec_of(&w, count_up);
    spec.presync = leave_while_syncing;
    handle(&w, &spec);
    expect_nobody(&w);
}

static void a_handler_removed_in_its_preflight_does_not_run(void **state) {
    (void)state;
    world w = open_world();
    hd_handler_spec spec = spec_of(&w, count_up);
    spec.preflight = leave_in_preflight;
    handle(&w, &spec);
    expect_nobody(&w);
}

static void a_handler_removed_by_the_trace_of_its_preflight_does_not_run(void **state) {
    (void)state;
    world w = open_world();
    hd_handler_spec spec = spec_of(&w, count_up);
    handle(&w, &spec);
    assert_int_equal(hd_runtime_set_event_trace(w.rt, leave_when_traced, &w), HD_OK);
    expect_nobody(&w);
    assert_string_equal(w.seen, spec.name);
}

static hd_status refuse(hd_tx *tx, const hd_event *event, void *ctx) {
    (void)event, (void)ctx;
    return hd_tx_fail(tx, HD_FAILED, "no");
}

static void remove_failed(const hd_failure *failure, void *ctx) {
    world *w = ctx;
    hd_handler_unregister(w->rt, w->handler);
    snprintf(w->seen, sizeof w->seen, "%s", failure->action);
}

static void an_error_handler_removes_the_handler_that_failed(void **state) {
    (void)state;
    world w = open_world();
    hd_handler_spec spec = spec_of(&w, refuse);
    handle(&w, &spec);
    assert_int_equal(hd_runtime_on_error(w.rt, remove_failed, &w), HD_OK);
    send_one(&w);
    settle(&w);
    assert_int_equal(w.outcome, HD_FAILED);
    assert_string_equal(w.seen, spec.name);
    hd_close(w.rt);
}

static hd_status sync_later(hd_presync *sync, const hd_event *event, void *ctx) {
    world *w = *(world **)ctx;
    (void)event;
    w->sync = sync;
    return HD_PENDING;
}

static hd_schema *schema_of(world *w, const char *json) {
    hd_heap *heap = hd_runtime_heap(w->rt);
    hd_schema *schema;
    hd_pool *pool;
    hd_error error;
    assert_int_equal(hd_pool_open(heap, &pool), HD_OK);
    hd_value v = hd_json_parse(pool, json, strlen(json), NULL);
    assert_int_equal(hd_schema_compile(heap, v, &schema, &error), HD_OK);
    hd_pool_close(pool);
    return schema;
}

static void a_payload_is_checked_against_the_schema_of_whoever_takes_over(void **state) {
    (void)state;
    world w = open_world();
    hd_handler_spec first = spec_of(&w, count_up), second = spec_of(&w, count_up);
    hd_schema *any = schema_of(&w, "{}"), *number = schema_of(&w, "{\"type\": \"number\"}");
    first.presync = sync_later;
    first.event_schema = any;
    handle(&w, &first);
    send_one(&w);
    settle(&w);
    assert_int_equal(w.told, 0);
    second.event_schema = number;
    handle(&w, &second);
    hd_presync_done(w.sync, HD_OK);
    settle(&w);
    assert_int_equal(w.told, 1);
    assert_int_equal(w.outcome, HD_MISMATCH);
    assert_int_equal(w.runs, 0);
    hd_schema_close(any);
    hd_schema_close(number);
    hd_close(w.rt);
}

/* ---- those who wait and those who listen */

static void wait_again(void *ctx) {
    world *w = ctx;
    w->told++;
    if (w->told < 3) assert_int_equal(hd_runtime_on_idle(w->rt, wait_again, w), HD_OK);
}

static void who_waits_for_idle_again_is_told_at_the_next(void **state) {
    (void)state;
    world w = open_world();
    assert_int_equal(hd_runtime_on_idle(w.rt, wait_again, &w), HD_OK);
    hd_runtime_pump(w.rt);
    assert_int_equal(w.told, 1);
    hd_runtime_pump(w.rt);
    assert_int_equal(w.told, 2);
    hd_close(w.rt);
    assert_int_equal(w.told, 3);
}

static void make_work(void *ctx) {
    world *w = ctx;
    assert_int_equal(hd_write_json(w->rt, w->a, "7"), HD_OK);
}

static void note_runs(void *ctx) {
    world *w = ctx;
    w->told = w->runs;
}

static void who_waits_for_idle_is_told_when_it_is(void **state) {
    (void)state;
    world w = open_world();
    hd_effect(w.rt, "look", look, &w);
    assert_int_equal(hd_runtime_on_idle(w.rt, make_work, &w), HD_OK);
    assert_int_equal(hd_runtime_on_idle(w.rt, note_runs, &w), HD_OK);
    settle(&w);
    assert_int_equal(w.runs, 2);
    assert_int_equal(w.told, 2);
    hd_close(w.rt);
}

static void listen_once(const hd_notice *notice, void *ctx) {
    world *w = ctx;
    (void)notice;
    hd_runtime_unlisten(w->rt, listen_once, w);
}

static void listen_on(const hd_notice *notice, void *ctx) {
    world *w = ctx;
    w->told += notice->count == 1;
}

static void a_listener_that_leaves_takes_nobody_along(void **state) {
    (void)state;
    world w = open_world();
    assert_int_equal(hd_runtime_listen(w.rt, listen_once, &w), HD_OK);
    assert_int_equal(hd_runtime_listen(w.rt, listen_on, &w), HD_OK);
    assert_int_equal(hd_write_json(w.rt, w.a, "1"), HD_OK);
    assert_int_equal(w.told, 1);
    assert_int_equal(hd_write_json(w.rt, w.a, "2"), HD_OK);
    assert_int_equal(w.told, 2);
    hd_close(w.rt);
}

static void stop_once(hd_node node, void *ctx) {
    world *w = ctx;
    w->told++;
    hd_break_node(w->rt, node, NULL, NULL);
}

static void stop_too(hd_node node, void *ctx) {
    world *w = ctx;
    (void)node;
    w->told += 10;
}

static void a_break_that_removes_itself_leaves_the_others(void **state) {
    (void)state;
    world w = open_world();
    w.node = hd_effect(w.rt, "look", look, &w);
    assert_int_equal(hd_break_node(w.rt, w.node, stop_once, &w), HD_OK);
    assert_int_equal(hd_break_name(w.rt, "look", stop_too, &w), HD_OK);
    settle(&w);
    assert_int_equal(w.told, 11);
    hd_write_json(w.rt, w.a, "1");
    settle(&w);
    assert_int_equal(w.told, 21);
    hd_close(w.rt);
}

static hd_status count(hd_tx *tx, void *ctx) {
    world *w = ctx;
    return hd_tx_set_double(tx, w->b, ++w->runs);
}

static void cancel_violator(const hd_violation *violation, void *ctx) {
    world *w = ctx;
    hd_node_unregister(w->rt, violation->node);
    snprintf(w->seen, sizeof w->seen, "%s", violation->action);
    w->told++;
}

static void what_is_not_idempotent_is_cancelled_when_it_is_told(void **state) {
    (void)state;
    world w = open_world();
    assert_int_equal(hd_recheck_enable(w.rt, cancel_violator, &w), HD_OK);
    w.node = hd_compute(w.rt, "a computation called like no other", count, &w, w.b);
    hd_node_request(w.rt, w.node);
    settle(&w);
    assert_int_equal(w.told, 1);
    assert_string_equal(w.seen, "a computation called like no other");
    assert_false(hd_node_exists(w.rt, w.node));
    hd_close(w.rt);
}

static hd_status pull_inside(hd_tx *tx, void *ctx) {
    world *w = ctx;
    hd_value v = hd_pull_now(w->rt, hd_tx_pool(tx), w->a);
    w->told = hd_value_status(v) != HD_OK;
    return HD_OK;
}

static uint64_t effects(const world *w) {
    hd_scheduler_stats stats;
    hd_runtime_scheduler_stats(w->rt, &stats);
    return stats.effects;
}

static void a_pull_that_is_refused_leaves_nobody(void **state) {
    (void)state;
    world w = open_world();
    hd_effect(w.rt, "pull", pull_inside, &w);
    hd_runtime_pump(w.rt);
    assert_int_equal(w.told, 1);
    assert_int_equal(effects(&w), 1);
    hd_close(w.rt);
}

static hd_status send_two_and_suspend(hd_tx *tx, void *ctx) {
    world *w = ctx;
    hd_send_options options = { .done = note, .ctx = w };
    assert_int_equal(hd_tx_send(tx, w->stream, hd_null(), &options), HD_OK);
    assert_int_equal(hd_tx_send(tx, w->stream, hd_null(), &options), HD_OK);
    assert_int_equal(hd_tx_suspend(tx, &w->run), HD_OK);
    return HD_PENDING;
}

static void give_up_the_run(const char *id, hd_status status, void *ctx) {
    world *w = ctx;
    (void)id, (void)status;
    hd_run_resume(w->run, HD_ABORTED);
}

static void who_hears_of_the_close_ends_what_sent_the_next(void **state) {
    (void)state;
    world w = open_world();
    hd_send_options first = { .done = give_up_the_run, .ctx = &w, .not_before_ns = UINT64_MAX };
    assert_int_equal(hd_event_send(w.rt, w.stream, hd_null(), &first), HD_OK);
    hd_effect(w.rt, "two", send_two_and_suspend, &w);
    settle(&w);
    hd_close(w.rt);
    assert_int_equal(w.told, 2);
    assert_int_equal(w.outcome, HD_ORIGIN_FAILED);
}

static hd_status send_mine_and_suspend(hd_tx *tx, void *ctx) {
    world *w = ctx;
    hd_send_options options = { .id = "mine", .not_before_ns = UINT64_MAX };
    assert_int_equal(hd_tx_send(tx, w->stream, hd_null(), &options), HD_OK);
    assert_int_equal(hd_tx_suspend(tx, &w->run), HD_OK);
    return HD_PENDING;
}

/* C243: an id coalesces with itself, but not with an event that may never have been sent. */
static void an_event_is_not_taken_for_one_whose_origin_may_fail(void **state) {
    (void)state;
    world w = open_world();
    hd_effect(w.rt, "mine", send_mine_and_suspend, &w);
    settle(&w);
    for (int i = 1; i < HD_EVENT_BACKLOG; i++)
        assert_int_equal(hd_event_send(w.rt, w.stream, hd_null(), NULL), HD_OK);
    hd_send_options mine = { .id = "mine", .done = note, .ctx = &w };
    assert_int_equal(hd_event_send(w.rt, w.stream, hd_null(), &mine), HD_BUSY);
    assert_int_equal(w.told, 0);
    hd_run_resume(w.run, HD_ABORTED);
    assert_int_equal(hd_event_send(w.rt, w.stream, hd_null(), &mine), HD_OK);
    hd_close(w.rt);
    assert_int_equal(w.told, 1);
}

/* ---- what a preflight, and what a suspended run is */

static hd_status launch_in_preflight(hd_tx *tx, const hd_event *event, void *ctx) {
    world *w = *(world **)ctx;
    char id[HD_EVENT_ID_SIZE];
    (void)event;
    w->told += hd_tx_after_commit(tx, NULL, NULL) == HD_USAGE;
    w->told += hd_tx_launch(tx, NULL, NULL) == HD_USAGE;
    w->told += hd_tx_send(tx, w->stream, hd_null(), NULL) == HD_USAGE;
    w->told += hd_tx_post(tx, w->stream, hd_null(), NULL, id) == HD_USAGE;
    return HD_OK;
}

static void a_preflight_starts_nothing(void **state) {
    (void)state;
    world w = open_world();
    hd_handler_spec spec = spec_of(&w, count_up);
    spec.preflight = launch_in_preflight;
    handle(&w, &spec);
    assert_int_equal(hd_event_send(w.rt, w.stream, hd_null(), NULL), HD_OK);
    settle(&w);
    assert_int_equal(w.told, 4);
    assert_int_equal(w.runs, 1);
    hd_close(w.rt);
}

static hd_status only_suspend(hd_tx *tx, void *ctx) {
    world *w = ctx;
    assert_int_equal(hd_tx_node(tx).id, w->node.id);
    assert_int_equal(hd_tx_suspend(tx, &w->run), HD_OK);
    return HD_PENDING;
}

static hd_status ask_whose(hd_tx *tx, void *ctx) {
    world *w = ctx;
    w->told = (int)hd_tx_node(hd_run_tx(w->run)).id;
    return hd_tx_node(tx).id == w->node.id ? HD_FAILED : HD_OK;
}

static void a_suspended_run_belongs_to_its_node(void **state) {
    (void)state;
    world w = open_world();
    w.node = hd_effect(w.rt, "suspended", only_suspend, &w);
    settle(&w);
    assert_int_equal(hd_tx_node(hd_run_tx(w.run)).id, w.node.id);
    hd_effect(w.rt, "other", ask_whose, &w);
    settle(&w);
    assert_int_equal(w.told, w.node.id);
    hd_run_resume(w.run, HD_OK);
    hd_close(w.rt);
}

/* ---- pieces */

static hd_value refuse_value(hd_tx *tx, hd_value in, void *ctx) {
    (void)in, (void)ctx;
    return hd_failed(hd_tx_fail(tx, HD_FAILED, "no"));
}

static void ignore_value(hd_value v, void *ctx) { (void)ctx, (void)v; }

static hd_cell faulty(hd_build *b, void *ctx) {
    hd_cell d =
        hd_build_derive(b, "d", hd_build_argument(b, "x", hd_int(NULL, 1)), refuse_value, NULL);
    hd_build_sink(b, "look", d, ignore_value, NULL);
    return d;
}

static hd_piece piece;

static void stop_piece(const hd_failure *failure, void *ctx) {
    world *w = ctx;
    hd_piece_stop(w->rt, piece);
    snprintf(w->seen, sizeof w->seen, "%s of %s", failure->piece, failure->pattern);
    w->told++;
}

static void an_error_handler_stops_the_piece_that_failed(void **state) {
    (void)state;
    world w = open_world();
    hd_error error;
    assert_int_equal(hd_runtime_on_error(w.rt, stop_piece, &w), HD_OK);
    assert_int_equal(
        hd_pattern_register(w.rt, "a pattern with a long name of its own", "1", faulty, NULL),
        HD_OK);
    hd_piece_spec spec = { .id = "a piece with a long name of its own",
                           .pattern = "a pattern with a long name of its own" };
    assert_int_equal(hd_piece_start(w.rt, &spec, &piece, &error), HD_OK);
    settle(&w);
    assert_int_equal(w.told, 1);
    assert_string_equal(w.seen, "a piece with a long name of its own of "
                                "a pattern with a long name of its own");
    hd_close(w.rt);
}

/* ---- a registration that fails */

static void try_to_register(lab_env *env, void *ctx) {
    world w = { 0 };
    (void)ctx;
    if (hd_open(NULL, &(hd_options){ .env = lab_env_of(env), .principal = "me" }, &w.rt, NULL))
        return;
    w.stream = hd_cell_at(w.rt, "main/stream");
    char id[HD_EVENT_ID_SIZE];
    if (w.stream.id) hd_event_post(w.rt, w.stream, hd_null(), NULL, id);
    settle(&w);
    hd_handler_spec spec = spec_of(&w, count_up);
    hd_status status = hd_handler_register(w.rt, &spec, &w.handler);
    if (status) {
        assert_int_equal(w.handler.id, 0);
        world **kept = spec.ctx;
        free(kept); /* it is still ours */
    }
    settle(&w);
    hd_close(w.rt);
    assert_int_equal(w.released, status ? 0 : 1);
}

static void a_registration_that_fails_leaves_nobody(void **state) {
    (void)state;
    assert_true(lab_each_allocation_failure(try_to_register, NULL) > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_handler_cancels_the_node_that_failed),
        cmocka_unit_test(a_node_that_is_suspended_cancels_itself_and_nobody_else),
        cmocka_unit_test(a_handler_removes_itself),
        cmocka_unit_test(a_handler_hands_over_to_another),
        cmocka_unit_test(a_handler_removed_while_inputs_are_synced_does_not_run),
        cmocka_unit_test(a_handler_removed_in_its_preflight_does_not_run),
        cmocka_unit_test(a_handler_removed_by_the_trace_of_its_preflight_does_not_run),
        cmocka_unit_test(an_error_handler_removes_the_handler_that_failed),
        cmocka_unit_test(a_payload_is_checked_against_the_schema_of_whoever_takes_over),
        cmocka_unit_test(who_waits_for_idle_again_is_told_at_the_next),
        cmocka_unit_test(who_waits_for_idle_is_told_when_it_is),
        cmocka_unit_test(a_listener_that_leaves_takes_nobody_along),
        cmocka_unit_test(a_break_that_removes_itself_leaves_the_others),
        cmocka_unit_test(what_is_not_idempotent_is_cancelled_when_it_is_told),
        cmocka_unit_test(a_pull_that_is_refused_leaves_nobody),
        cmocka_unit_test(who_hears_of_the_close_ends_what_sent_the_next),
        cmocka_unit_test(an_event_is_not_taken_for_one_whose_origin_may_fail),
        cmocka_unit_test(a_preflight_starts_nothing),
        cmocka_unit_test(a_suspended_run_belongs_to_its_node),
        cmocka_unit_test(an_error_handler_stops_the_piece_that_failed),
        cmocka_unit_test(a_registration_that_fails_leaves_nobody),
    };
    return cmocka_run_group_tests_name("callbacks that take away", tests, NULL, NULL);
}
