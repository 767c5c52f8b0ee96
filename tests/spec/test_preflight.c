/* Preflight and the consistency gate (CONFORMANCE L; 73, 166). */
#include "lab_events.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "events_control.h"
#include "lab_inside.h"

/* Keeps the sum of what it reads: what the handler saw. */
static hd_status see(lab_handler *self, hd_tx *tx, const hd_event *event) {
    double sum = 0;
    char reads[256];
    snprintf(reads, sizeof reads, "%s", self->spec.reads);
    for (char *word = strtok(reads, " "); word; word = strtok(NULL, " ")) {
        hd_value v = lab_tx_get(self, tx, word);
        if (hd_value_status(v)) return hd_value_status(v);
        sum += hd_value_exists(v) ? hd_value_number(v) : 0;
    }
    return lab_tx_set(self, tx, "saw", hd_int(NULL, (int64_t)sum));
}

#define lab_seer(l, ...) lab_handle(l, .stream = "see", .body = see, __VA_ARGS__)

static double plus_one(const double *in) { return in[0] + 1; }

/* C245, I4: a computation that only the handler reads, and that is invalid, runs first. */
static void i4_a_computation_that_only_the_handler_reads_runs_first(void **state) {
    lab *l = lab_start();
    lab_set(l, "n", 1);
    lab_compute(l, "c", "n", plus_one);
    lab_seer(l, .reads = "c");
    lab_idle(l);
    assert_ran(l, "");
    lab_fire(l, "see", "1", NULL);
    lab_idle(l);
    assert_ran(l, "c see");
    assert_json(l, "saw", "2");
    lab_set(l, "n", 5);
    lab_idle(l);
    assert_ran(l, "");
    lab_fire(l, "see", "1", NULL);
    lab_idle(l);
    assert_ran(l, "c see");
    assert_json(l, "saw", "6");
    assert_false(lab_is_live(l, "c"));
    lab_close(l);
}

/* C246: two invalid inputs: both run first. C249: one that the handler does not read does not. */
static void all_invalid_inputs_run_first_and_nothing_else(void **state) {
    lab *l = lab_start();
    lab_set(l, "n", 1);
    lab_compute(l, "c", "n", plus_one);
    lab_compute(l, "d", "n", plus_one);
    lab_compute(l, "elsewhere", "n", plus_one);
    lab_seer(l, .reads = "c d");
    lab_fire(l, "see", "1", NULL);
    lab_idle(l);
    assert_ran(l, "c d see");
    assert_json(l, "saw", "4");
    lab_close(l);
}

/* C247: a chain: both links run, and the handler sees the final value. C248: also where the direct
 * input is clean and the invalid one stands two hops upstream; each runs once. */
static void a_chain_runs_to_its_end_before_the_handler(void **state) {
    lab *l = lab_start();
    lab_set(l, "n", 1);
    lab_compute(l, "c1", "n", plus_one);
    lab_compute(l, "c2", "c1", plus_one);
    lab_compute(l, "c3", "c2", plus_one);
    lab_seer(l, .reads = "c3");
    lab_fire(l, "see", "1", NULL);
    lab_idle(l);
    assert_ran(l, "c1 c2 c3 see");
    assert_json(l, "saw", "4");
    lab_set(l, "n", 10);
    lab_fire(l, "see", "1", NULL);
    lab_idle(l);
    assert_ran(l, "c1 c2 c3 see");
    assert_json(l, "saw", "13");
    lab_close(l);
}

static hd_status change_and_send(lab_handler *self, hd_tx *tx, const hd_event *event) {
    hd_status status = lab_tx_set(self, tx, "n", hd_int(NULL, 7));
    hd_value link = hd_cell_link(self->rt, hd_tx_pool(tx), hd_cell_at(self->rt, "main/lift"));
    hd_value payload = hd_object_set(hd_tx_pool(tx), hd_object(), "at", link);
    return status ? status : lab_tx_send(self, tx, "b", payload, NULL);
}

static hd_status follow_payload(lab_handler *self, hd_tx *tx, const hd_event *event) {
    hd_value v =
        hd_tx_follow(tx, hd_cell_at(self->rt, "main/b"), hd_value_at(event->payload, "at"));
    return lab_tx_set(self, tx, "saw", v);
}

/* C250: a handler writes a computation's input and sends on a link to its output: the computation
 * runs before the second handler. */
static void what_a_link_in_the_payload_leads_to_is_up_to_date(void **state) {
    lab *l = lab_start();
    lab_set(l, "n", 1);
    lab_compute(l, "lift", "n", plus_one);
    lab_handle(l, .stream = "a", .reads = "n", .body = change_and_send);
    lab_handle(l, .stream = "b", .body = follow_payload,
               .event_schema = "{\"type\":\"object\",\"properties\":{\"at\":{\"asCell\":true}}}");
    lab_fire(l, "a", "1", NULL);
    lab_idle(l);
    assert_ran(l, "a lift b");
    assert_json(l, "saw", "8");
    assert_int_equal(lab_event_stats(l).outside_reads, 0);
    lab_close(l);
}

/* Inputs are read through the boundaries of their schema. */
static hd_status see_inside(lab_handler *self, hd_tx *tx, const hd_event *event) {
    hd_value v = lab_tx_get(self, tx, "box");
    return lab_tx_set(self, tx, "saw",
                      hd_tx_follow(tx, hd_cell_at(self->rt, "main/box"), hd_value_at(v, "at")));
}
static void the_closure_goes_through_cell_boundaries(void **state) {
    lab *l = lab_start();
    lab_set(l, "n", 1);
    lab_set_json(l, "box", "{\"at\": {\"$link\": {\"id\": \"c\"}}}");
    lab_compute(l, "c", "n", plus_one);
    lab_handle(l, .stream = "see", .reads = "box", .body = see_inside,
               .input_schema = "{\"type\":\"object\",\"properties\":{\"at\":{\"asCell\":true}}}");
    lab_fire(l, "see", "1", NULL);
    lab_idle(l);
    assert_ran(l, "c see");
    assert_json(l, "saw", "2");
    lab_close(l);
}

/* C251: an input behind a throttle: the head waits without spinning, and runs after the window.
 * C252: other work does not lose its wake. C253: a second event keeps behind it. C166: idle waits. */
static void a_throttled_input_parks_the_head(void **state) {
    lab *l = lab_start();
    lab_set(l, "n", 1);
    lab_add(l, .name = "c", .reads = "n", .formula = plus_one, .throttle_ms = 100);
    lab_effect(l, "other", "m");
    lab_seer(l, .reads = "c");
    lab_handle(l, .stream = "next");
    lab_fire(l, "see", "1", NULL);
    lab_idle(l);
    assert_ran(l, "c other see");
    lab_set(l, "n", 2);
    lab_fire(l, "see", "1", NULL);
    lab_fire(l, "next", "1", NULL);
    uint64_t passes = lab_stats(l).passes;
    for (int i = 0; i < 5; i++) lab_turn(l);
    assert_ran(l, "");
    assert_true(lab_stats(l).passes - passes < 5);
    assert_int_equal(hd_runtime_event_waits(lab_runtime_now(l)), HD_EVENT_WAITS_NODES);
    assert_false(hd_runtime_is_idle(lab_runtime_now(l)));
    lab_set(l, "m", 1);
    lab_turn(l);
    assert_ran(l, "other");
    assert_true(hd_runtime_deadline(lab_runtime_now(l)) != UINT64_MAX);
    lab_idle(l);
    assert_ran(l, "c see next");
    assert_json(l, "saw", "3");
    lab_close(l);
}

/* C166: a head behind a debounce. */
static void a_debounced_input_holds_idle(void **state) {
    lab *l = lab_start();
    lab_set(l, "n", 1);
    lab_add(l, .name = "c", .reads = "n", .formula = plus_one, .debounce_ms = 50);
    lab_seer(l, .reads = "c");
    lab_fire(l, "see", "1", NULL);
    lab_idle(l);
    lab_ran(l);
    lab_set(l, "n", 2);
    lab_fire(l, "see", "1", NULL);
    lab_turn(l);
    lab_turn(l);
    assert_ran(l, "");
    assert_false(hd_runtime_is_idle(lab_runtime_now(l)));
    uint64_t began = lab_now_ms(l);
    lab_idle(l);
    assert_ran(l, "c see");
    assert_true(lab_now_ms(l) - began >= 45);
    assert_json(l, "saw", "3");
    lab_close(l);
}

/* C255: a clean closure beside a wide graph costs next to nothing. */
static void a_clean_closure_is_dispatched_at_once(void **state) {
    lab *l = lab_start();
    char name[16];
    lab_set(l, "n", 1);
    for (int i = 0; i < 32; i++) {
        snprintf(name, sizeof name, "w%d", i);
        lab_compute(l, name, "n", plus_one);
        char effect[16];
        snprintf(effect, sizeof effect, "e%d", i);
        lab_effect(l, effect, name);
    }
    lab_seer(l, .reads = "w3");
    lab_idle(l);
    lab_ran(l);
    uint64_t before = lab_event_stats(l).preflight_visits;
    lab_fire(l, "see", "1", NULL);
    lab_turn(l);
    assert_ran(l, "see");
    assert_true(lab_event_stats(l).preflight_visits - before < 10);
    lab_close(l);
}

enum { WRITERS = 200 };
static hd_status add_writers(lab_node *self, hd_tx *tx) {
    double sum = 0;
    char name[16];
    for (int i = 0; i < WRITERS; i++) {
        snprintf(name, sizeof name, "w%d", i);
        sum += lab_tx_number(self, tx, name);
    }
    return lab_tx_put(self, tx, "hub", sum);
}

/* C256: two hundred writers feed one hub and one is invalid: the right value, few visits. */
static void a_hub_with_many_writers_is_no_walk(void **state) {
    lab *l = lab_start();
    for (int i = 0; i < WRITERS; i++) {
        char source[16], name[16];
        snprintf(name, sizeof name, "w%d", i);
        snprintf(source, sizeof source, "n%d", i);
        lab_set(l, source, 1);
        lab_compute(l, name, source, NULL);
    }
    lab_add(l, .name = "hub", .body = add_writers);
    lab_seer(l, .reads = "hub");
    lab_fire(l, "see", "1", NULL);
    lab_idle(l);
    assert_json(l, "saw", "200");
    lab_ran(l);
    uint64_t before = lab_event_stats(l).preflight_visits;
    lab_set(l, "n17", 5);
    lab_fire(l, "see", "1", NULL);
    lab_idle(l);
    assert_ran(l, "w17 hub see");
    assert_json(l, "saw", "204");
    assert_true(lab_event_stats(l).preflight_visits - before < 20);
    lab_close(l);
}

static double flip(const double *in) { return 1 - in[0]; }
static double same(const double *in) { return in[0]; }

/* C257: two nodes that keep invalidating each other, demanded by the event alone: bounded by the
 * budget of a pass, and slowed down. */
static void a_quarrel_upstream_is_bounded(void **state) {
    lab *l = lab_start();
    lab_compute(l, "x", "y", flip);
    lab_compute(l, "y", "x", same);
    lab_seer(l, .reads = "x");
    lab_fire(l, "see", "1", NULL);
    for (int i = 0; i < 20; i++) lab_turn(l);
    assert_in_range(lab_find(l, "x")->runs, 2, 10); /* as often as one pass allows */
    assert_in_range(lab_find(l, "y")->runs, 2, 10);
    assert_int_equal(hd_runtime_event_waits(lab_runtime_now(l)), HD_EVENT_WAITS_NODES);
    bool backed_off = lab_info(l, "x").why_not == HD_WHY_NOT_BACKOFF ||
                      lab_info(l, "y").why_not == HD_WHY_NOT_BACKOFF;
    assert_true(backed_off);
    assert_true(hd_runtime_deadline(lab_runtime_now(l)) != UINT64_MAX);
    lab_cancel(l, "y");
    lab_idle(l);
    lab_close(l);
}

static hd_status materialise(lab_node *self, hd_tx *tx) {
    return lab_tx_put(self, tx, "store#/deep", lab_tx_number(self, tx, "n") * 10);
}

/* C73: a closure inside the envelope of an invalid materialiser: that runs before the handler. */
static void an_invalid_materialiser_runs_before_the_handler(void **state) {
    lab *l = lab_start();
    lab_set(l, "n", 1);
    lab_add(l, .name = "m", .body = materialise, .declares = "n", .output = "-",
            .envelopes = "store");
    lab_seer(l, .reads = "store#/deep");
    lab_fire(l, "see", "1", NULL);
    lab_idle(l);
    assert_ran(l, "m see");
    assert_json(l, "saw", "10");
    lab_set(l, "n", 2);
    lab_fire(l, "see", "1", NULL);
    lab_idle(l);
    assert_ran(l, "m see");
    assert_json(l, "saw", "20");
    lab_close(l);
}

static hd_status materialise_aside(lab_node *self, hd_tx *tx) {
    return lab_tx_put(self, tx, "aside#/deep", lab_tx_number(self, tx, "n"));
}

/* C258: also where a clean computation stands between. One whose envelope nobody on the way reads from does
 * not matter: it may have to wait as long as it likes. */
static void a_materialiser_behind_a_clean_reader_runs_first(void **state) {
    lab *l = lab_start();
    lab_set(l, "n", 1);
    lab_add(l, .name = "aside", .body = materialise_aside, .declares = "n", .output = "-",
            .envelopes = "aside", .throttle_ms = 5000);
    lab_add(l, .name = "m", .body = materialise, .declares = "n", .output = "-",
            .envelopes = "store");
    lab_compute(l, "c", "store#/deep", plus_one);
    lab_compute(l, "stranger", "aside#/deep", plus_one); /* reads there, and is not on the way */
    lab_seer(l, .reads = "c");
    lab_fire(l, "see", "1", NULL);
    lab_idle(l);
    assert_json(l, "saw", "11");
    lab_ran(l);
    lab_set(l, "n", 2);
    lab_fire(l, "see", "1", NULL);
    lab_turn(l);
    lab_turn(l);
    assert_ran(l, "m c see");
    assert_json(l, "saw", "21");
    assert_int_equal(lab_info(l, "aside").why_not, HD_WHY_NOT_THROTTLE);
    lab_close(l);
}

/* Where documents arrive late, also what is to be written has to be there first. */
static void write_late(lab_runtime *r, const char *cell, const char *json) {
    while (hd_write_json(lab_rt(r), lab_cell(r, cell), json) == HD_PENDING)
        hd_runtime_pump(lab_rt(r));
    assert_status(hd_runtime_sync(lab_rt(r)), HD_OK);
}

/* C259, I4: a document of the closure is on its way: the head waits for it, whatever else ticks, and
 * runs once; that it is not there counts as arrival. C262: nothing on its way: at once. C261: what
 * arrived first leads to another one: parked again. */
static void i4_a_head_waits_for_what_is_on_its_way(void **state) {
    lab *l = lab_start_late();
    lab_outcome o = { 0 };
    lab_runtime *b = lab_on(l, "b");
    write_late(b, "far", "{\"$link\": {\"id\": \"farther\"}}");
    write_late(b, "farther", "4");
    lab_on(l, "a");
    lab_effect(l, "other", "m saw"); /* makes both known */
    lab_idle(l);
    lab_ran(l);
    lab_handler *h = lab_seer(l, .reads = "far nowhere");
    lab_fire(l, "see", "1", &o);
    lab_hold(lab_on(l, "a"));
    for (int i = 0; i < 3; i++) {
        lab_add(l, .name = "tick", .effect = true, .anonymous = true);
        lab_turn(l);
        assert_ran(l, "tick");
        assert_int_equal(hd_runtime_event_waits(lab_runtime_now(l)), HD_EVENT_WAITS_LOAD);
    }
    lab_mend(lab_on(l, "a"));
    int parked = 0; /* turns at which it waits for a load: of one document, then of the next */
    for (; !h->runs && parked < 10; parked++) {
        assert_int_equal(hd_runtime_event_waits(lab_runtime_now(l)), HD_EVENT_WAITS_LOAD);
        lab_turn(l);
    }
    assert_true(parked > 1);
    lab_idle(l);
    assert_int_equal(h->runs, 1);
    assert_json(l, "saw", "4");
    hd_runtime_sync(lab_runtime_now(l));
    assert_outcome(o, HD_OK);
    lab_ran(l);
    lab_fire(l, "see", "1", NULL);
    lab_turn(l);
    assert_int_equal(h->runs, 2);
    lab_close(l);
}

/* C260: a document of the closure cannot be loaded: the event is dropped, its sender told once, and the
 * next one is handled. */
static void a_load_that_fails_ends_the_event_once(void **state) {
    lab *l = lab_start_late();
    lab_outcome bad = { 0 }, good = { 0 };
    lab_runtime *b = lab_on(l, "b");
    write_late(b, "far", "4");
    lab_runtime *a = lab_on(l, "a");
    lab_catch(l);
    lab_effect(l, "other", "saw buy_log");
    lab_idle(l);
    lab_handler *h = lab_seer(l, .reads = "far");
    lab_fire(l, "see", "1", &bad);
    lab_turn(l);
    assert_int_equal(hd_runtime_event_waits(lab_rt(a)), HD_EVENT_WAITS_LOAD);
    assert_status(lab_fail_load(a, "far", HD_CORRUPT), HD_OK);
    lab_idle(l);
    assert_outcome(bad, HD_CORRUPT);
    assert_int_equal(h->runs, 0);
    assert_string_equal(lab_failures(l), "see HD_CORRUPT");
    lab_fire(l, "see", "1", &good);
    lab_idle(l);
    assert_status(hd_runtime_sync(lab_rt(a)), HD_OK);
    assert_outcome(good, HD_OK);
    assert_outcome(bad, HD_CORRUPT);
    assert_json(l, "saw", "4");
    lab_close(l);
}

static hd_status disturbed(lab_handler *self, hd_tx *tx, const hd_event *event) {
    hd_value v = lab_tx_get(self, tx, "hot");
    if (hd_value_status(v)) return hd_value_status(v);
    if (event->attempt == 1) write_late(self->data, "hot", "2");
    return lab_tx_set(self, tx, "saw", v);
}

/* I4: a head waits for a document; before that arrives, one that was sent earlier comes back and stands
 * in front of it. Nobody tells the second in line, and nobody has to. */
static void i4_an_arrival_counts_also_for_who_stands_behind(void **state) {
    lab *l = lab_start_late();
    lab_outcome first = { 0 }, second = { 0 };
    lab_runtime *b = lab_on(l, "b");
    write_late(b, "hot", "1");
    write_late(b, "far", "4");
    lab_on(l, "a");
    lab_effect(l, "other", "hot saw");
    for (int i = 0; i < 4; i++) lab_turn(l); /* both arrive */
    lab_handle(l, .stream = "first", .reads = "hot", .body = disturbed, .data = b);
    lab_seer(l, .reads = "far");
    lab_fire(l, "first", "1", &first);
    lab_fire(l, "see", "1", &second);
    lab_turn(l);
    assert_int_equal(hd_runtime_event_waits(lab_runtime_now(l)), HD_EVENT_WAITS_TIME);
    lab_advance_ms(l, 5);
    assert_status(hd_runtime_sync(lab_runtime_now(l)), HD_OK);
    assert_outcome(first, HD_OK);
    assert_outcome(second, HD_OK);
    assert_json(l, "saw", "4");
    lab_close(l);
}

static hd_status meddle(hd_tx *tx, const hd_event *event, void *ctx) {
    lab_handler *self = ctx;
    assert_status(lab_tx_set(self, tx, "saw", hd_int(NULL, 9)), HD_READ_ONLY);
    assert_status(lab_tx_send(self, tx, "see", hd_null(), NULL), HD_USAGE);
    return HD_OK;
}

/* C254: finding out what a handler reads is not the beginning of a commit: it writes nothing, sends
 * nothing, and is never submitted. */
static void a_preflight_only_reads(void **state) {
    lab *l = lab_start();
    lab_set(l, "n", 3);
    lab_handler *h = lab_seer(l, .reads = "n", .preflight = meddle);
    hd_store_stats before, after;
    hd_runtime_store_stats(lab_runtime_now(l), &before);
    lab_fire(l, "see", "1", NULL);
    lab_idle(l);
    hd_runtime_store_stats(lab_runtime_now(l), &after);
    assert_int_equal(h->runs, 1);
    assert_json(l, "saw", "3");
    assert_int_equal(after.commits - before.commits, 1);
    lab_close(l);
}

static hd_status captured(hd_tx *tx, const hd_event *event, void *ctx) {
    lab_handler *self = ctx;
    hd_value v = lab_tx_get(self, tx, "captured");
    if (hd_value_kind(v) == HD_KIND_BOOL) return HD_PENDING;
    return hd_value_kind(v) == HD_KIND_STRING ? hd_tx_fail(tx, HD_FAILED, "it failed") : HD_OK;
}

/* C263: something that the handler captured is not ready: the head waits for a change of what was
 * read, and idle may come; a value that says "failed" ends the event with an error. */
static void a_value_that_is_not_ready_parks_the_head(void **state) {
    lab *l = lab_start();
    lab_outcome o = { 0 }, bad = { 0 };
    lab_catch(l);
    lab_set_json(l, "captured", "true");
    lab_seer(l, .reads = "captured", .preflight = captured);
    lab_fire(l, "see", "1", &o);
    lab_idle(l);
    assert_ran(l, "");
    assert_int_equal(hd_runtime_event_waits(lab_runtime_now(l)), HD_EVENT_WAITS_READS);
    lab_set(l, "captured", 1);
    lab_idle(l);
    assert_ran(l, "see");
    lab_set_json(l, "captured", "\"error\"");
    lab_fire(l, "see", "1", &bad);
    lab_idle(l);
    assert_ran(l, "");
    assert_outcome(bad, HD_FAILED);
    lab_close(l);
}

static void without_the_gate_c245_fails(void **state) {
    struct CMUnitTest test =
        cmocka_unit_test(i4_a_computation_that_only_the_handler_reads_runs_first);
    must_miss(EVENTS_WITHOUT_GATE, test);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(i4_a_computation_that_only_the_handler_reads_runs_first),
        cmocka_unit_test(all_invalid_inputs_run_first_and_nothing_else),
        cmocka_unit_test(a_chain_runs_to_its_end_before_the_handler),
        cmocka_unit_test(what_a_link_in_the_payload_leads_to_is_up_to_date),
        cmocka_unit_test(the_closure_goes_through_cell_boundaries),
        cmocka_unit_test(a_throttled_input_parks_the_head),
        cmocka_unit_test(a_debounced_input_holds_idle),
        cmocka_unit_test(a_clean_closure_is_dispatched_at_once),
        cmocka_unit_test(a_hub_with_many_writers_is_no_walk),
        cmocka_unit_test(a_quarrel_upstream_is_bounded),
        cmocka_unit_test(an_invalid_materialiser_runs_before_the_handler),
        cmocka_unit_test(a_materialiser_behind_a_clean_reader_runs_first),
        cmocka_unit_test(i4_a_head_waits_for_what_is_on_its_way),
        cmocka_unit_test(a_load_that_fails_ends_the_event_once),
        cmocka_unit_test(i4_an_arrival_counts_also_for_who_stands_behind),
        cmocka_unit_test(a_preflight_only_reads),
        cmocka_unit_test(a_value_that_is_not_ready_parks_the_head),
        cmocka_unit_test(without_the_gate_c245_fails),
    };
    LAB_EVERYWHERE(tests);
}
