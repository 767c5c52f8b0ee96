/* Events at the edges of their promises: what a waiting event holds on to, who is replaced in a full
 * stream, from where outcomes are told, which refusals are reported, and what a log line says. */
#include "lab_events.h"
#include "lab_inside.h"
#include <heddle/lab.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void sync_all(lab *l) { assert_status(hd_runtime_sync(lab_runtime_now(l)), HD_OK); }

/* ---- what it waits for */

/* The record of a document that an event waits for is not given to another document meanwhile. */
static void an_event_keeps_the_place_that_it_waits_for(void **state) {
    (void)state;
    lab *l = lab_start_late();
    lab_outcome o = { 0 };
    lab_handle(l, .stream = "buy", .event_schema = "{\"type\": \"object\"}");
    lab_fire(l, "buy", "{\"to\": {\"$link\": {\"space\": \"side\", \"id\": \"far\"}}}", &o);
    for (int i = 0; i < 4 && hd_runtime_event_waits(lab_runtime_now(l)) != HD_EVENT_WAITS_LOAD; i++)
        lab_event_step(l);
    assert_int_equal(hd_runtime_event_waits(lab_runtime_now(l)), HD_EVENT_WAITS_LOAD);
    assert_true(lab_awaited_references(l) > 0);
    lab_idle(l);
    sync_all(l);
    assert_outcome(o, HD_OK);
    lab_close(l);
}

/* ---- a full stream */

typedef struct syncing {
    hd_presync *sync;
    lab *l;
    bool sends;
    char seen[32];
} syncing;

static hd_status wait_first(hd_presync *sync, const hd_event *e, void *ctx) {
    syncing *w = ((lab_handler *)ctx)->data;
    hd_runtime *rt = lab_runtime_now(w->l);
    w->sync = sync;
    if (w->sends) hd_event_send(rt, hd_cell_at(rt, "main/buy"), hd_null(), NULL);
    snprintf(w->seen, sizeof w->seen, "%s", hd_value_as_text(e->payload, ""));
    return HD_PENDING;
}

static void fill_with_named(lab *l, int count) {
    char id[16];
    for (int i = 0; i < count; i++) {
        snprintf(id, sizeof id, "n%d", i);
        assert_status(lab_fire_id(l, "buy", "0", id, NULL), HD_OK);
    }
}

/* C243: whose inputs are being synced keeps its payload, also from inside that callback. */
static void an_event_whose_turn_has_come_is_not_replaced(void **state) {
    (void)state;
    lab *l = lab_start();
    lab_outcome first = { 0 }, next = { 0 };
    syncing w = { .l = l, .sends = true };
    lab_handle(l, .stream = "buy", .presync = wait_first, .data = &w);
    lab_fire(l, "buy", "\"first\"", &first);
    fill_with_named(l, HD_EVENT_BACKLOG - 1);
    lab_turn(l);
    assert_string_equal(w.seen, "first");
    w.sends = false;
    assert_status(lab_fire(l, "buy", "\"second\"", &next), HD_BUSY);
    assert_int_equal(first.told + next.told, 0);
    assert_int_equal(lab_event_stats(l).collapsed, 0);
    lab_close(l);
    assert_outcome(first, HD_CLOSED);
}

static hd_status note_time(lab_handler *self, hd_tx *tx, const hd_event *e) {
    *(uint64_t *)self->data = e->time_ms;
    return lab_append(self, tx, e);
}

/* C243: what takes a place in line comes with its own id and time; the id of the other is not spent. */
static void a_newer_event_comes_with_its_own_time(void **state) {
    (void)state;
    lab *l = lab_start();
    lab_outcome before = { 0 }, after = { 0 };
    uint64_t seen = 0;
    lab_handler *h = lab_handle(l, .stream = "buy", .body = note_time, .data = &seen);
    fill_with_named(l, HD_EVENT_BACKLOG - 1);
    lab_fire(l, "buy", "1", &before);
    lab_advance_ms(l, 5000);
    const hd_env *env = lab_env_of(lab_world(l));
    uint64_t sent = env->wall_ms(env->ctx);
    lab_fire(l, "buy", "2", &after);
    lab_idle(l);
    sync_all(l);
    assert_outcome(before, HD_BUSY);
    assert_outcome(after, HD_OK);
    assert_string_not_equal(before.id, after.id);
    assert_string_equal(h->last_id, after.id);
    assert_int_equal(seen, sent); /* and not that of the other, 5 s before */
    char receipt[HD_EVENT_ID_SIZE + 32];
    snprintf(receipt, sizeof receipt, "main/receipt/%s", before.id);
    assert_json(l, receipt, "-");
    snprintf(receipt, sizeof receipt, "main/receipt/%s", after.id);
    assert_json(l, receipt, "{}");
    lab_close(l);
}

/* C243: who sends is not called back before the send returns. */
static void outcomes_of_a_full_stream_are_told_from_pump(void **state) {
    (void)state;
    lab *l = lab_start();
    lab_outcome before = { 0 }, after = { 0 }, twin = { 0 };
    lab_handle(l, .stream = "buy");
    fill_with_named(l, HD_EVENT_BACKLOG - 1);
    lab_fire(l, "buy", "1", &before);
    lab_fire(l, "buy", "2", &after);
    assert_status(lab_fire_id(l, "buy", "3", "n1", &twin), HD_OK);
    assert_int_equal(before.told + twin.told, 0);
    lab_turn(l);
    assert_outcome(before, HD_BUSY);
    assert_outcome(twin, HD_EXISTS);
    lab_close(l);
}

/* Nor are they lost when there is no pump any more. */
static void outcomes_of_a_full_stream_are_told_by_close(void **state) {
    (void)state;
    lab *l = lab_start();
    lab_outcome before = { 0 }, after = { 0 };
    lab_handle(l, .stream = "buy");
    fill_with_named(l, HD_EVENT_BACKLOG - 1);
    lab_fire(l, "buy", "1", &before);
    lab_fire(l, "buy", "2", &after);
    lab_close(l);
    assert_outcome(before, HD_BUSY);
    assert_outcome(after, HD_CLOSED);
}

/* ---- closing without a verdict */

static void note_verdict(hd_status status, void *ctx) { lab_outcome_note("", status, ctx); }

static hd_status start_things(lab_handler *self, hd_tx *tx, const hd_event *e) {
    hd_status status = hd_tx_outbox(tx, "mail", e->payload);
    return status ? status : hd_tx_after_commit(tx, note_verdict, self->data);
}

/* Who waits for a verdict that cannot come any more hears that, and nothing is left behind. */
static void what_waits_for_a_verdict_is_told_by_close(void **state) {
    (void)state;
    lab *l = lab_start();
    lab_outcome sent = { 0 }, after = { 0 };
    lab_handle(l, .stream = "buy", .body = start_things, .data = &after);
    lab_cut(lab_on(l, "a"));
    lab_fire(l, "buy", "1", &sent);
    lab_idle(l);
    lab_runtime_drop(lab_on(l, "a"));
    assert_outcome(sent, HD_CLOSED);
    assert_outcome(after, HD_CLOSED);
    lab_close(l);
}

/* ---- a body that has to wait */

static hd_status send_then_wait(lab_handler *self, hd_tx *tx, const hd_event *e) {
    hd_status status = hd_tx_outbox(tx, "mail", e->payload);
    return status ? status : self->runs < 3 ? HD_PENDING : HD_OK;
}

/* What it had started goes, and it runs again. */
static void a_body_that_waits_after_it_has_started_something_runs_again(void **state) {
    (void)state;
    lab *l = lab_start();
    lab_outcome o = { 0 };
    lab_handler *h = lab_handle(l, .stream = "buy", .body = send_then_wait);
    lab_fire(l, "buy", "1", &o);
    lab_idle(l);
    sync_all(l);
    assert_int_equal(h->runs, 3);
    assert_outcome(o, HD_OK);
    lab_close(l);
}

/* ---- refusals and log lines */

typedef struct told {
    int failures, outcomes;
    hd_status status;
    char action[32], space[32];
} told;

static void note_failure(const hd_failure *failure, void *ctx) {
    told *t = ctx;
    t->failures++;
    t->status = failure->status;
    snprintf(t->action, sizeof t->action, "%s", failure->action);
}

static void note_outcome(const char *id, hd_status status, void *ctx) {
    (void)id;
    ((told *)ctx)->outcomes++;
    assert_true(status == HD_EXPIRED || status == HD_EXISTS || status == HD_OK);
}

static hd_status say_hello(hd_tx *tx, const hd_event *e, void *ctx) {
    hd_tx_log(tx, HD_LOG_INFO, "hello");
    return hd_tx_set(tx, hd_cell_at(ctx, "shop/n"), e->payload);
}

static hd_runtime *open_shop_with(hd_lab *world, told *t, hd_handler_fn fn,
                                  hd_preflight_fn preflight) {
    hd_runtime *rt = hd_lab_runtime(world, "a");
    hd_handler h;
    hd_handler_spec spec = { .name = "till",
                             .stream = hd_cell_at(rt, "shop/buy"),
                             .fn = fn,
                             .preflight = preflight,
                             .ctx = rt,
                             .reads_nothing = true };
    assert_int_equal(hd_runtime_on_error(rt, note_failure, t), HD_OK);
    assert_int_equal(hd_handler_register(rt, &spec, &h), HD_OK);
    return rt;
}

static hd_runtime *open_shop(hd_lab *world, told *t) {
    return open_shop_with(world, t, say_hello, NULL);
}

static void refuse_one(hd_lab *world, hd_runtime *rt, told *t, hd_status status) {
    hd_send_options options = { .done = note_outcome, .ctx = t };
    if (status) hd_lab_refuse(rt, status, 1);
    assert_int_equal(
        hd_event_send(rt, hd_cell_at(rt, "shop/buy"), hd_int(NULL, (int)status), &options), HD_OK);
    hd_lab_idle(world);
}

/* What the store refuses for good is reported once; that the event was handled before is none. */
static void a_refusal_for_good_is_reported_once(void **state) {
    (void)state;
    told t = { 0 };
    hd_lab *world = hd_lab_open(NULL);
    hd_runtime *rt = open_shop(world, &t);
    refuse_one(world, rt, &t, HD_EXISTS);
    assert_int_equal(t.outcomes, 1);
    assert_int_equal(t.failures, 0);
    refuse_one(world, rt, &t, HD_EXPIRED);
    assert_int_equal(t.outcomes, 2);
    assert_int_equal(t.failures, 1);
    assert_int_equal(t.status, HD_EXPIRED);
    assert_string_equal(t.action, "till");
    (void)hd_lab_failures(rt);
    hd_lab_close(world);
}

static bool note_line(hd_log_entry *entry, void *ctx) {
    told *t = ctx;
    snprintf(t->action, sizeof t->action, "%s", entry->action);
    snprintf(t->space, sizeof t->space, "%s", entry->space);
    return false;
}

/* As those of nodes do. */
static void log_lines_of_a_handler_carry_its_name(void **state) {
    (void)state;
    told t = { 0 };
    hd_lab *world = hd_lab_open(NULL);
    hd_runtime *rt = open_shop(world, &t);
    hd_runtime_set_log(rt, note_line, &t);
    refuse_one(world, rt, &t, HD_OK);
    assert_string_equal(t.action, "till");
    assert_string_equal(t.space, "shop");
    hd_lab_close(world);
}

static hd_status hello_early(hd_tx *tx, const hd_event *e, void *ctx) {
    (void)e, (void)ctx;
    hd_tx_log(tx, HD_LOG_INFO, "hello");
    return HD_OK;
}

static hd_status keep_silent(hd_tx *tx, const hd_event *e, void *ctx) {
    (void)tx, (void)e, (void)ctx;
    return HD_OK;
}

/* And so do those of what looks ahead for it. */
static void log_lines_of_a_preflight_carry_the_name_of_its_handler(void **state) {
    (void)state;
    told t = { 0 };
    hd_lab *world = hd_lab_open(NULL);
    hd_runtime *rt = open_shop_with(world, &t, keep_silent, hello_early);
    hd_runtime_set_log(rt, note_line, &t);
    refuse_one(world, rt, &t, HD_OK);
    assert_string_equal(t.action, "till");
    assert_string_equal(t.space, "shop");
    hd_lab_close(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_keeps_the_place_that_it_waits_for),
        cmocka_unit_test(an_event_whose_turn_has_come_is_not_replaced),
        cmocka_unit_test(a_newer_event_comes_with_its_own_time),
        cmocka_unit_test(outcomes_of_a_full_stream_are_told_from_pump),
        cmocka_unit_test(outcomes_of_a_full_stream_are_told_by_close),
        cmocka_unit_test(what_waits_for_a_verdict_is_told_by_close),
        cmocka_unit_test(a_body_that_waits_after_it_has_started_something_runs_again),
        cmocka_unit_test(a_refusal_for_good_is_reported_once),
        cmocka_unit_test(log_lines_of_a_handler_carry_its_name),
        cmocka_unit_test(log_lines_of_a_preflight_carry_the_name_of_its_handler),
    };
    return cmocka_run_group_tests_name("events at the edges", tests, NULL, NULL);
}
