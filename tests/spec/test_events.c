/* Events: queue and dispatch (CONFORMANCE K). Retries are in test_events_retry.c. */
#include "lab_events.h"
#include "lab_place.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void sync_all(lab *l) { assert_status(hd_runtime_sync(lab_runtime_now(l)), HD_OK); }

/* ---- order */

/* C215: two events on a stream: the handler runs twice, in order; the stream's value is untouched. */
static void two_events_run_the_handler_twice(void **state) {
    lab *l = lab_start();
    lab_outcome a = { 0 }, b = { 0 };
    lab_handle(l, .stream = "buy");
    lab_fire(l, "buy", "1", &a);
    lab_fire(l, "buy", "2", &b);
    assert_ran(l, "");
    lab_idle(l);
    assert_ran(l, "buy buy");
    assert_json(l, "buy_log", "[1,2]");
    assert_json(l, "buy", "-");
    sync_all(l);
    assert_outcome(a, HD_OK);
    assert_outcome(b, HD_OK);
    assert_string_not_equal(a.id, b.id);
    lab_close(l);
}

/* C216, I4: 1, 2, 3 are handled in that order, whatever their streams. */
static void i4_events_are_handled_in_the_order_of_sending(void **state) {
    lab *l = lab_start();
    lab_handle(l, .stream = "a");
    lab_handle(l, .stream = "b");
    lab_fire(l, "a", "1", NULL);
    lab_fire(l, "b", "2", NULL);
    lab_fire(l, "a", "3", NULL);
    lab_idle(l);
    assert_ran(l, "a b a");
    lab_close(l);
}

static hd_status append_twice(lab_handler *self, hd_tx *tx, const hd_event *event) {
    for (int i = 0; i < 2; i++) {
        const char *cell = i ? "evens" : "odds";
        hd_value list = lab_tx_get(self, tx, cell);
        if (hd_value_kind(list) != HD_KIND_ARRAY) list = hd_array();
        hd_status status =
            lab_tx_set(self, tx, cell, hd_array_append(hd_tx_pool(tx), list, event->payload));
        if (status) return status;
    }
    return HD_OK;
}

static hd_status count_both(lab_node *self, hd_tx *tx) {
    size_t n = hd_value_count(hd_tx_get(tx, lab_cell(self->at, "odds"))) +
               hd_value_count(hd_tx_get(tx, lab_cell(self->at, "evens")));
    return lab_tx_put(self, tx, "count", (double)n);
}

/* C217: seven rapid appends to two arrays: both hold all seven, derived counts end at seven each. */
static void rapid_appends_are_all_there(void **state) {
    lab *l = lab_start();
    lab_add(l, .name = "count", .body = count_both);
    lab_effect(l, "show", "count");
    lab_handle(l, .stream = "add", .reads = "odds evens", .body = append_twice);
    for (int i = 1; i <= 7; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", i);
        lab_fire(l, "add", text, NULL);
    }
    lab_idle(l);
    assert_json(l, "odds", "[1,2,3,4,5,6,7]");
    assert_json(l, "evens", "[1,2,3,4,5,6,7]");
    assert_json(l, "count", "14");
    lab_close(l);
}

/* C222: an event's commit has no verdict yet: the next one proceeds on what is visible here. C168:
 * and idle does not wait for it. C169: the barrier does. */
static void the_next_event_does_not_wait_for_a_verdict(void **state) {
    lab *l = lab_start();
    lab_outcome a = { 0 }, b = { 0 };
    lab_handle(l, .stream = "buy");
    lab_cut(lab_on(l, "a"));
    lab_fire(l, "buy", "1", &a);
    lab_fire(l, "buy", "2", &b);
    lab_idle(l);
    assert_json(l, "buy_log", "[1,2]");
    assert_int_equal(a.told + b.told, 0);
    assert_int_equal(lab_event_stats(l).in_flight, 2);
    assert_true(hd_runtime_is_idle(lab_runtime_now(l)));
    lab_mend(lab_on(l, "a"));
    sync_all(l);
    assert_outcome(a, HD_OK);
    assert_outcome(b, HD_OK);
    lab_close(l);
}

static hd_status add_payload(lab_handler *self, hd_tx *tx, const hd_event *event) {
    return lab_tx_add(self, tx, "n", hd_value_number(event->payload));
}

/* C223: computations follow what a handler wrote, and effects see it. */
static void effects_see_what_handlers_write(void **state) {
    lab *l = lab_start();
    lab_compute(l, "copy", "n", NULL);
    lab_effect(l, "show", "copy");
    lab_handle(l, .stream = "add", .reads = "n", .body = add_payload);
    lab_idle(l);
    lab_ran(l);
    lab_fire(l, "add", "5", NULL);
    lab_fire(l, "add", "2", NULL);
    lab_idle(l);
    assert_ran(l, "add copy show add copy show");
    assert_seen(l, "show", "7");
    lab_close(l);
}

/* ---- handlers come and go */

/* C218: a handler that was removed does not run; the sender hears (C227). */
static void a_removed_handler_does_not_run(void **state) {
    lab *l = lab_start();
    lab_outcome o = { 0 };
    lab_catch(l);
    lab_handler *h = lab_handle(l, .stream = "buy");
    hd_handler_unregister(lab_runtime_now(l), h->handler);
    lab_fire(l, "buy", "1", &o);
    lab_idle(l);
    assert_ran(l, "");
    assert_outcome(o, HD_NOT_FOUND);
    assert_string_equal(lab_failures(l), " HD_NOT_FOUND");
    lab_close(l);
}

/* C219: a second handler takes the place of the first, with one warning. */
static void a_second_handler_replaces_the_first(void **state) {
    lab *l = lab_start();
    lab_handle(l, .stream = "buy", .name = "first");
    lab_handle(l, .stream = "buy", .name = "second");
    lab_handle(l, .stream = "buy", .name = "third");
    lab_fire(l, "buy", "1", NULL);
    lab_idle(l);
    assert_ran(l, "third");
    assert_int_equal(lab_env_logged(lab_world(l), "takes the place of the first"), 1);
    lab_close(l);
}

/* C220: a stream may be a place inside a document. */
static void a_stream_may_be_inside_a_document(void **state) {
    lab *l = lab_start();
    lab_handle(l, .stream = "doc#/ui/click", .reads = "x", .body = append_twice);
    lab_fire(l, "doc#/ui/click", "1", NULL);
    lab_idle(l);
    assert_json(l, "odds", "[1]");
    assert_json(l, "doc", "-");
    lab_close(l);
}

/* C221: a stream that is only declared by a schema; and one that a link leads to. */
static void a_stream_may_be_reached_by_schema_or_link(void **state) {
    lab *l = lab_start();
    hd_runtime *rt = lab_runtime_now(l);
    hd_pool *pool;
    hd_schema *schema;
    hd_pool_open(hd_runtime_heap(rt), &pool);
    hd_value source = hd_json_parse(pool, "{\"asStream\":true}", 17, NULL);
    assert_status(hd_schema_compile(hd_runtime_heap(rt), source, &schema, NULL), HD_OK);
    lab_handle(l, .stream = "buy");
    hd_cell cell = hd_cell_with_schema(rt, hd_cell_at(rt, "main/buy"), schema);
    assert_status(hd_event_send(rt, cell, hd_int(pool, 1), NULL), HD_OK);
    lab_set_json(l, "elsewhere", "{\"go\": {\"$link\": {\"id\": \"buy\"}}}");
    assert_status(hd_event_send(rt, hd_cell_at(rt, "main/elsewhere#/go"), hd_int(pool, 2), NULL),
                  HD_OK);
    lab_idle(l);
    assert_json(l, "buy_log", "[1,2]");
    hd_pool_close(pool);
    hd_schema_close(schema);
    lab_close(l);
}

/* A handler that says nothing about its inputs is refused. */
static void declaring_nothing_is_refused(void **state) {
    lab *l = lab_start();
    hd_runtime *rt = lab_runtime_now(l);
    hd_handler h;
    hd_handler_spec spec = { .stream = hd_cell_at(rt, "main/s"),
                             .fn = (hd_handler_fn)(void (*)(void))append_twice };
    assert_status(hd_handler_register(rt, &spec, &h), HD_USAGE);
    assert_int_equal(h.id, 0);
    lab_close(l);
}

/* ---- presync */

typedef struct presync_world {
    hd_presync *sync;
    hd_status says;
    int calls;
} presync_world;

static hd_status ask_first(hd_presync *sync, const hd_event *event, void *ctx) {
    presync_world *w = ((lab_handler *)ctx)->data;
    w->sync = sync;
    w->calls++;
    return w->says;
}

/* C224: while inputs are synced the body waits; when that fails, it runs all the same. */
static void the_body_waits_for_its_inputs_to_be_synced(void **state) {
    lab *l = lab_start();
    presync_world w = { .says = HD_PENDING };
    lab_outcome o = { 0 };
    lab_handle(l, .stream = "buy", .presync = ask_first, .data = &w);
    lab_fire(l, "buy", "1", &o);
    lab_turn(l);
    lab_turn(l);
    assert_ran(l, "");
    assert_int_equal(w.calls, 1);
    assert_int_equal(hd_runtime_event_waits(lab_runtime_now(l)), HD_EVENT_WAITS_PRESYNC);
    hd_presync_done(w.sync, HD_IO);
    lab_idle(l);
    assert_ran(l, "buy");
    w.says = HD_FAILED;
    lab_fire(l, "buy", "2", NULL);
    lab_idle(l);
    assert_ran(l, "buy");
    sync_all(l);
    assert_outcome(o, HD_OK);
    lab_close(l);
}

/* ---- failing */

static hd_status note_stop(void *ctx) {
    (*(int *)ctx)++;
    return HD_OK;
}

static hd_status count_mail(const char *key, hd_value message, void *ctx) {
    ++*(int *)ctx;
    return HD_OK;
}
static bool count_entry(const hd_listing *entry, void *ctx) {
    ++*(int *)ctx;
    return true;
}

static hd_status throw_up(lab_handler *self, hd_tx *tx, const hd_event *event) {
    hd_status status = lab_tx_set(self, tx, "n", hd_bool(true));
    if (!status) status = hd_tx_outbox(tx, "mail", hd_bool(true));
    if (!status) status = hd_tx_launch(tx, note_stop, self->data);
    return status ? status : hd_tx_fail(tx, HD_FAILED, "no thanks");
}

/* C225: a handler that fails commits nothing, its outbox stays empty, the error is reported once,
 * it is not retried, and the sender hears once. */
static void a_handler_that_fails_leaves_nothing(void **state) {
    lab *l = lab_start();
    hd_runtime *rt = lab_runtime_now(l);
    int stopped = 0, mail = 0, documents = 0;
    lab_outcome o = { 0 };
    lab_catch(l);
    assert_status(hd_channel_register(rt, "main", "mail", count_mail, &mail), HD_OK);
    lab_handle(l, .stream = "buy", .reads = "n", .body = throw_up, .data = &stopped);
    lab_fire(l, "buy", "1", &o);
    lab_idle(l);
    sync_all(l);
    lab_advance_ms(l, 1000);
    lab_idle(l);
    assert_int_equal(mail, 0);
    assert_status(hd_runtime_list(rt, "main", NULL, NULL, count_entry, &documents), HD_OK);
    assert_int_equal(documents, 0); /* no message, no receipt */
    assert_ran(l, "buy");
    assert_json(l, "n", "-");
    assert_outcome(o, HD_FAILED);
    assert_string_equal(lab_failures(l), "buy HD_FAILED");
    assert_int_equal(stopped, 1);
    lab_close(l);
}

static hd_status abort_it(lab_handler *self, hd_tx *tx, const hd_event *event) {
    hd_status status = lab_tx_set(self, tx, "n", hd_bool(true));
    hd_tx_abort(tx);
    return status;
}

/* C226: a handler that aborts its transaction is dropped after one attempt. C233: the sender hears
 * once. */
static void a_handler_that_aborts_is_dropped(void **state) {
    lab *l = lab_start();
    lab_outcome o = { 0 };
    lab_handle(l, .stream = "buy", .reads = "n", .body = abort_it);
    lab_fire(l, "buy", "1", &o);
    lab_idle(l);
    assert_ran(l, "buy");
    assert_json(l, "n", "-");
    assert_outcome(o, HD_ABORTED);
    lab_close(l);
}

static hd_status bad_preflight(hd_tx *tx, const hd_event *event, void *ctx) {
    return hd_tx_fail(tx, HD_FAILED, "cannot tell");
}

/* C228: finding out what it reads fails: dropped, told once, reported; the queue goes on. */
static void a_failing_preflight_does_not_wedge_the_queue(void **state) {
    lab *l = lab_start();
    lab_outcome o = { 0 };
    lab_catch(l);
    lab_handle(l, .stream = "bad", .preflight = bad_preflight, .reads = "n");
    lab_handle(l, .stream = "buy");
    lab_fire(l, "bad", "1", &o);
    lab_fire(l, "buy", "2", NULL);
    lab_idle(l);
    assert_ran(l, "buy");
    assert_outcome(o, HD_FAILED);
    assert_string_equal(lab_failures(l), "bad HD_FAILED");
    lab_close(l);
}

/* ---- handlers that are loaded */

typedef struct loader {
    lab *l;
    const char *stream;
    hd_status says;
    bool registers;
    int asked;
} loader;

static hd_status load(hd_runtime *rt, hd_cell stream, void *ctx) {
    loader *w = ctx;
    w->asked++;
    if (w->registers) lab_handle(w->l, .stream = w->stream);
    return w->says;
}

/* C229: while the handler of an event is loaded, a later event keeps behind it. */
static void an_event_keeps_its_place_while_its_handler_is_loaded(void **state) {
    lab *l = lab_start();
    loader w = { l, "slow", HD_PENDING, false, 0 };
    hd_runtime_set_handler_load(lab_runtime_now(l), load, &w);
    lab_handle(l, .stream = "quick");
    lab_fire(l, "slow", "1", NULL);
    lab_fire(l, "quick", "2", NULL);
    lab_turn(l);
    lab_turn(l);
    assert_ran(l, "");
    assert_int_equal(hd_runtime_event_waits(lab_runtime_now(l)), HD_EVENT_WAITS_HANDLER);
    lab_handle(l, .stream = "slow");
    hd_handler_loaded(lab_runtime_now(l), hd_cell_at(lab_runtime_now(l), "main/slow"), HD_OK);
    lab_idle(l);
    assert_ran(l, "slow quick");
    assert_int_equal(w.asked, 1);
    lab_close(l);
}

/* The answer comes before the function has said that it will come later. */
static hd_status answer_at_once(hd_runtime *rt, hd_cell stream, void *ctx) {
    loader *w = ctx;
    w->asked++;
    if (w->registers) lab_handle(w->l, .stream = w->stream);
    hd_handler_loaded(rt, stream, w->says);
    return HD_PENDING;
}

/* C230: a handler that was loaded, or could not be, before the function returns HD_PENDING is not waited for. */
static void a_handler_that_is_loaded_at_once_is_not_waited_for(void **state) {
    lab *l = lab_start();
    loader w = { l, "s", HD_FAILED, false, 0 };
    lab_outcome failed = { 0 }, good = { 0 };
    hd_runtime_set_handler_load(lab_runtime_now(l), answer_at_once, &w);
    lab_fire(l, "s", "1", &failed);
    lab_idle(l);
    assert_outcome(failed, HD_NOT_FOUND);
    w.says = HD_OK;
    w.registers = true;
    lab_fire(l, "s", "2", &good);
    lab_idle(l);
    sync_all(l);
    assert_outcome(good, HD_OK);
    assert_int_equal(w.asked, 2);
    lab_failures(l);
    lab_close(l);
}

/* C230: loading fails: settled exactly once. C231: loading that registers nothing is not tried
 * twice; loading that registers the handler has the event handled. */
static void a_handler_that_cannot_be_loaded_ends_the_event_once(void **state) {
    lab *l = lab_start();
    loader w = { l, "s", HD_FAILED, false, 0 };
    lab_outcome failed = { 0 }, empty = { 0 }, good = { 0 };
    hd_runtime_set_handler_load(lab_runtime_now(l), load, &w);
    lab_fire(l, "s", "1", &failed);
    lab_idle(l);
    assert_outcome(failed, HD_FAILED);
    w.says = HD_OK;
    lab_fire(l, "s", "2", &empty);
    lab_idle(l);
    assert_outcome(empty, HD_NOT_FOUND);
    assert_int_equal(w.asked, 2);
    w.registers = true;
    lab_fire(l, "s", "3", &good);
    lab_idle(l);
    sync_all(l);
    assert_outcome(good, HD_OK);
    assert_ran(l, "s");
    lab_close(l);
}

typedef struct follow_up {
    lab_outcome child;
} follow_up;
static hd_status send_to_slow(lab_handler *self, hd_tx *tx, const hd_event *event) {
    hd_value v = lab_tx_get(self, tx, "hot");
    hd_status status =
        hd_value_status(v) ? hd_value_status(v) : lab_tx_set(self, tx, "n", hd_bool(true));
    return status
               ? status
               : lab_tx_send(self, tx, "slow", event->payload, &((follow_up *)self->data)->child);
}

/* C230: the origin of an event fails while the event's handler is loaded: told once, and the handler that
 * comes then does not bring it back. */
static void an_event_whose_origin_failed_is_not_brought_back(void **state) {
    lab *l = lab_start();
    follow_up f = { 0 };
    loader w = { l, "slow", HD_PENDING, false, 0 };
    lab_runtime *b = lab_on(l, "b"), *a = lab_on(l, "a");
    hd_runtime_set_retry_window(lab_rt(a), 0);
    hd_runtime_set_handler_load(lab_rt(a), load, &w);
    lab_catch(l);
    lab_handle(l, .stream = "go", .reads = "hot", .body = send_to_slow, .data = &f);
    lab_cut(a);
    lab_fire(l, "go", "1", NULL);
    for (int i = 0; i < 5; i++) lab_turn(l);
    assert_int_equal(w.asked, 1);
    assert_int_equal(hd_runtime_event_waits(lab_rt(a)), HD_EVENT_WAITS_HANDLER);
    lab_write(b, "hot", "2");
    assert_status(hd_runtime_sync(lab_rt(b)), HD_OK);
    lab_mend(a);
    sync_all(l);
    assert_outcome(f.child, HD_ORIGIN_FAILED);
    lab_handle(l, .stream = "slow");
    hd_handler_loaded(lab_rt(a), hd_cell_at(lab_rt(a), "main/slow"), HD_OK);
    lab_idle(l);
    sync_all(l);
    assert_ran(l, "go");
    assert_outcome(f.child, HD_ORIGIN_FAILED);
    assert_json(l, "slow_log", "-");
    lab_fire(l, "slow", "2", NULL); /* the stream is as good as any */
    lab_idle(l);
    assert_json(l, "slow_log", "[2]");
    lab_close(l);
}

/* ---- ids */

static char seen_ids[8][HD_EVENT_ID_SIZE];

static hd_status send_three(lab_handler *self, hd_tx *tx, const hd_event *event) {
    hd_status status = HD_OK;
    for (int i = 0; i < 3 && !status; i++)
        status = lab_tx_send(self, tx, "note", hd_int(NULL, i), NULL);
    return status;
}

static hd_status note_id(lab_handler *self, hd_tx *tx, const hd_event *event) {
    uint64_t *n = self->data;
    snprintf(seen_ids[(*n)++ % 8], HD_EVENT_ID_SIZE, "%s", event->id);
    return HD_OK;
}

/* The same origin, and the next number. */
static bool is_next(const char *id, const char *after) {
    size_t origin = (size_t)(strrchr(id, '.') - id);
    return !strncmp(id, after, origin + 1) && id[origin + 1] + 1 == after[origin + 1];
}

/* C240: events of one transaction have different ids, numbered in the order of sending; so have those of
 * other transactions, and those without one. */
static void every_send_has_an_id_of_its_own(void **state) {
    lab *l = lab_start();
    hd_runtime *rt = lab_runtime_now(l);
    uint64_t n = 0;
    lab_handle(l, .stream = "many", .reads = "x", .body = send_three);
    lab_handle(l, .stream = "note", .body = note_id, .reads = "x", .data = &n);
    lab_fire(l, "many", "1", NULL);
    hd_tx *tx;
    hd_tx_begin(rt, &tx);
    hd_tx_send(tx, hd_cell_at(rt, "main/note"), hd_null(), NULL);
    hd_tx_send(tx, hd_cell_at(rt, "main/note"), hd_null(), NULL);
    assert_status(hd_tx_commit(tx, NULL, NULL), HD_OK);
    lab_fire(l, "note", "4", NULL);
    lab_fire(l, "note", "5", NULL);
    lab_idle(l);
    assert_int_equal(n, 7);
    for (int i = 0; i < 7; i++)
        for (int j = 0; j < i; j++) assert_string_not_equal(seen_ids[i], seen_ids[j]);
    assert_true(is_next(seen_ids[0], seen_ids[1])); /* of the transaction */
    assert_false(is_next(seen_ids[1], seen_ids[2]));
    assert_true(is_next(seen_ids[2], seen_ids[3])); /* from outside */
    lab_close(l);
}

static void id_of(hd_runtime *rt, const char *stream, const char *id, uint64_t ms, char *out) {
    assert_status(hd_event_id_of(rt, hd_cell_at(rt, stream), id, ms, out), HD_OK);
}

/* C241: a sender's id is scoped: the same principal, stream and id are the same event; another
 * stream, path, scope, space or principal another, and no delimiter forges it. */
static void a_senders_id_is_scoped(void **state) {
    lab *l = lab_start();
    hd_runtime *rt = lab_runtime_now(l), *other;
    char first[HD_EVENT_ID_SIZE], same[HD_EVENT_ID_SIZE], another[HD_EVENT_ID_SIZE];
    const char *streams[] = { "main/t", "main/s#/x", "main@user/s", "main@session/s", "other/s" };
    id_of(rt, "main/s", "7", 0, first);
    id_of(rt, "main/s", "7", 0, same);
    assert_string_equal(first, same);
    for (size_t i = 0; i < 5; i++) {
        id_of(rt, streams[i], "7", 0, another);
        assert_string_not_equal(first, another);
    }
    id_of(rt, "main/s", "7", 1000, another);
    assert_string_not_equal(first, another);
    id_of(rt, "main/s", "7\",\"principal\":\"eve", 0, another);
    assert_string_not_equal(first, another);
    hd_status status;
    lab_runtime *eve = lab_runtime_try(l, "eve", "eve", &status);
    other = lab_rt(eve);
    id_of(other, "main/s", "7", 0, another);
    assert_string_not_equal(first, another);
    lab_close(l);
}

/* C242: an id without anybody to scope it, and an empty one, are refused; nothing is queued. */
static void an_id_that_cannot_be_scoped_is_refused(void **state) {
    lab *l = lab_start();
    hd_status status;
    lab_handle(l, .stream = "buy");
    assert_status(lab_fire_id(l, "buy", "1", "", NULL), HD_USAGE);
    lab_runtime *nobody = lab_runtime_try(l, "nobody", "", &status);
    if (nobody) {
        hd_send_options options = { .id = "1" };
        assert_status(hd_event_send(lab_rt(nobody), hd_cell_at(lab_rt(nobody), "main/buy"),
                                    hd_null(), &options),
                      HD_USAGE);
    }
    assert_int_equal(lab_event_stats(l).queued, 0);
    lab_close(l);
}

/* ---- the backlog */

/* C243: a stream that is full: the newest payload takes the last place of its origin; an id of the
 * sender's coalesces with itself, and is otherwise refused, never rewritten. */
static void a_full_stream_says_so(void **state) {
    lab *l = lab_start();
    lab_outcome last = { 0 }, newest = { 0 }, twin = { 0 }, other = { 0 }, named = { 0 };
    uint64_t n = 0;
    lab_handle(l, .stream = "buy", .body = note_id, .reads = "x", .data = &n);
    assert_status(lab_fire_id(l, "buy", "0", "mine", &named), HD_OK);
    for (int i = 1; i < HD_EVENT_BACKLOG - 1; i++)
        assert_status(lab_fire(l, "buy", "1", NULL), HD_OK);
    assert_status(lab_fire(l, "buy", "2", &last), HD_OK);
    assert_int_equal(lab_event_stats(l).queued, HD_EVENT_BACKLOG);
    assert_status(lab_fire(l, "buy", "3", &newest), HD_OK);
    assert_status(lab_fire_id(l, "buy", "4", "mine", &twin), HD_OK);
    assert_status(lab_fire_id(l, "buy", "5", "theirs", &other), HD_BUSY);
    assert_int_equal(other.told, 0);
    assert_int_equal(lab_event_stats(l).queued, HD_EVENT_BACKLOG);
    lab_idle(l);
    sync_all(l);
    assert_int_equal(n, HD_EVENT_BACKLOG);
    assert_outcome(last, HD_BUSY);
    assert_outcome(twin, HD_EXISTS);
    assert_outcome(newest, HD_OK);
    assert_outcome(named, HD_OK);
    hd_event_stats stats = lab_event_stats(l);
    assert_int_equal(stats.collapsed, 2);
    assert_int_equal(stats.refused, 1);
    lab_close(l);
}

static hd_status flood(lab_handler *self, hd_tx *tx, const hd_event *event) {
    for (int i = 0; i < HD_EVENT_BACKLOG; i++)
        if (lab_tx_send(self, tx, "buy", hd_int(NULL, i), NULL)) return HD_FAILED;
    return lab_tx_send(self, tx, "buy", hd_int(NULL, 1000), NULL);
}

/* C243: within one origin. */
static void the_last_wins_within_one_origin(void **state) {
    lab *l = lab_start();
    lab_handle(l, .stream = "flood", .reads = "x", .body = flood);
    lab_handle(l, .stream = "buy");
    lab_fire(l, "flood", "1", NULL);
    lab_idle(l);
    hd_pool *pool;
    hd_pool_open(hd_runtime_heap(lab_runtime_now(l)), &pool);
    hd_value log =
        hd_read(lab_runtime_now(l), pool, hd_cell_at(lab_runtime_now(l), "main/buy_log"));
    assert_int_equal(hd_value_count(log), HD_EVENT_BACKLOG);
    assert_int_equal(hd_value_as_int(hd_value_index(log, HD_EVENT_BACKLOG - 1), 0), 1000);
    hd_pool_close(pool);
    lab_close(l);
}

/* ---- bodies that cannot go on */

static hd_status wait_for_nothing(lab_handler *self, hd_tx *tx, const hd_event *event) {
    return HD_PENDING;
}

/* C244: a body that wants to wait for nothing in particular is run again, later each time, and
 * fails after eight more; a one-shot is dropped at once; each sender hears once. */
static void a_body_that_waits_for_nothing_fails_in_the_end(void **state) {
    lab *l = lab_start();
    lab_outcome o = { 0 }, once = { 0 };
    lab_catch(l);
    lab_handler *h = lab_handle(l, .stream = "wait", .reads = "x", .body = wait_for_nothing);
    lab_handle(l, .stream = "once", .reads = "x", .body = wait_for_nothing, .one_shot = true);
    lab_fire(l, "wait", "1", &o);
    lab_idle(l);
    assert_outcome(o, HD_PENDING);
    assert_int_equal(h->runs, 9);
    lab_ran(l);
    lab_fire(l, "once", "1", &once);
    lab_idle(l);
    assert_ran(l, "once");
    assert_outcome(once, HD_PENDING);
    assert_string_equal(lab_failures(l), "wait HD_PENDING; once HD_PENDING");
    lab_close(l);
}

static hd_status read_far(lab_handler *self, hd_tx *tx, const hd_event *event) {
    hd_value v = lab_tx_get(self, tx, "far");
    return hd_value_status(v) ? hd_value_status(v) : lab_append(self, tx, event);
}

/* C214, C244: a body that meets a document which is not there yet runs again on its arrival,
 * however often. */
static void a_body_that_meets_an_unknown_document_runs_on_its_arrival(void **state) {
    lab *l = lab_start_late();
    lab_outcome o = { 0 };
    lab_handler *h = lab_handle(l, .stream = "buy", .reads = "buy_log", .body = read_far);
    lab_fire(l, "buy", "1", &o);
    lab_idle(l);
    sync_all(l);
    assert_int_equal(h->runs, 2);
    assert_json(l, "buy_log", "[1]");
    assert_outcome(o, HD_OK);
    lab_close(l);
}

/* ---- idle */

/* C165: an event that is not to run before some time holds idle while it is queued. */
static void an_event_for_later_holds_idle(void **state) {
    lab *l = lab_start();
    hd_runtime *rt = lab_runtime_now(l);
    const hd_env *env = lab_env_of(lab_world(l));
    lab_handle(l, .stream = "buy");
    lab_idle(l);
    hd_send_options options = { .not_before_ns = env->monotonic_ns(env->ctx) + 5000000 };
    hd_event_send(rt, hd_cell_at(rt, "main/buy"), hd_bool(true), &options);
    lab_turn(l);
    lab_turn(l);
    assert_false(hd_runtime_is_idle(rt));
    assert_true(hd_runtime_deadline(rt) <=
                options.not_before_ns); /* the store may be looked at before */
    assert_ran(l, "");
    lab_idle(l);
    assert_ran(l, "buy");
    assert_true(hd_runtime_is_idle(rt));
    lab_close(l);
}

/* ---- reads outside */

static hd_status read_undeclared(lab_handler *self, hd_tx *tx, const hd_event *event) {
    lab_tx_get(self, tx, "declared");
    lab_tx_get(self, tx, "declared#/part");
    lab_tx_get(self, tx, "undeclared");
    return HD_OK;
}

/* A body that reads what it did not declare is counted, and told of once. */
static void reads_outside_the_declared_inputs_are_counted(void **state) {
    lab *l = lab_start();
    lab_handle(l, .stream = "buy", .reads = "declared", .body = read_undeclared);
    lab_fire(l, "buy", "1", NULL);
    lab_fire(l, "buy", "1", NULL);
    lab_idle(l);
    assert_int_equal(lab_event_stats(l).outside_reads, 2);
    assert_int_equal(lab_env_logged(lab_world(l), "does not declare"), 1);
    lab_close(l);
}

/* ---- telemetry */

typedef struct traced {
    int preflights, commits;
    hd_event_trace first, last;
} traced;

static void note_trace(const hd_event_trace *t, void *ctx) {
    traced *w = ctx;
    if (!w->preflights) w->first = *t;
    if (t->stage == HD_EVENT_PREFLIGHT) w->preflights++;
    else w->commits++;
    w->last = *t;
}

static hd_status write_forty(lab_handler *self, hd_tx *tx, const hd_event *event) {
    hd_status status = HD_OK;
    for (int i = 0; i < 40 && !status; i++) {
        char cell[16];
        snprintf(cell, sizeof cell, "w%d", i);
        status = lab_tx_set(self, tx, cell, hd_int(NULL, i));
    }
    return status;
}

/* C324: nobody is told of preflights by default; asked for, there is one record each, with counts.
 * C325: a commit of forty writes: count 40, a sample of 25, truncated. */
static void telemetry_is_there_when_it_is_asked_for(void **state) {
    lab *l = lab_start();
    traced w = { 0 };
    lab_handle(l, .stream = "forty", .reads = "a b", .body = write_forty);
    hd_runtime_set_event_trace(lab_runtime_now(l), note_trace, &w);
    lab_fire(l, "forty", "1", NULL);
    lab_idle(l);
    assert_int_equal(w.preflights, 1);
    assert_int_equal(w.first.closure, 2);
    assert_int_equal(w.commits, 1);
    assert_int_equal(w.last.writes, 40);
    assert_true(w.last.truncated);
    assert_int_equal(w.last.sample[24].id, hd_cell_at(lab_runtime_now(l), "main/w24").id);
    hd_runtime_set_event_trace(lab_runtime_now(l), NULL, NULL);
    lab_fire(l, "forty", "1", NULL);
    lab_idle(l);
    assert_int_equal(w.preflights + w.commits, 2);
    lab_close(l);
}

/* C353: a handler's commits carry its durable identity. */
static void commits_carry_the_identity_of_their_handler(void **state) {
    lab *l = lab_start();
    traced w = { 0 };
    hd_runtime_set_event_trace(lab_runtime_now(l), note_trace, &w);
    lab_handle(l, .stream = "a", .name = "handler of a");
    lab_handle(l, .stream = "b", .name = "handler of b");
    lab_fire(l, "a", "1", NULL);
    lab_idle(l);
    assert_string_equal(w.last.handler, "handler of a");
    lab_fire(l, "a", "2", NULL);
    lab_idle(l);
    assert_string_equal(w.last.handler, "handler of a");
    lab_fire(l, "b", "1", NULL);
    lab_idle(l);
    assert_string_equal(w.last.handler, "handler of b");
    lab_close(l);
}

/* ---- a handler that goes */

static hd_status removes_its_handler(lab_node *self, hd_tx *tx) {
    lab_handler *h = self->data;
    hd_value heard = hd_tx_get(tx, lab_cell(self->at, "bye_log"));
    if (hd_value_count(heard)) hd_handler_unregister(h->rt, h->handler);
    return HD_OK;
}

/* C353: the commit names who made it, also if that is gone before it is on its way. */
static void a_handler_may_go_before_its_commit_is_sent(void **state) {
    lab *l = lab_start();
    lab_on(l, "b"); /* nobody is alone: it is sent */
    lab_on(l, "a");
    lab_handler *h = lab_handle(l, .stream = "bye", .reads = "bye_log");
    lab_add(l, .name = "watch", .effect = true, .body = removes_its_handler, .data = h);
    lab_settle(l);
    lab_outcome o = { 0 };
    lab_fire(l, "bye", "1", &o);
    lab_idle(l);
    sync_all(l);
    assert_outcome(o, HD_OK);
    assert_json(l, "bye_log", "[1]");
    lab_close(l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_events_run_the_handler_twice),
        cmocka_unit_test(i4_events_are_handled_in_the_order_of_sending),
        cmocka_unit_test(rapid_appends_are_all_there),
        cmocka_unit_test(the_next_event_does_not_wait_for_a_verdict),
        cmocka_unit_test(effects_see_what_handlers_write),
        cmocka_unit_test(a_removed_handler_does_not_run),
        cmocka_unit_test(a_second_handler_replaces_the_first),
        cmocka_unit_test(a_stream_may_be_inside_a_document),
        cmocka_unit_test(a_stream_may_be_reached_by_schema_or_link),
        cmocka_unit_test(declaring_nothing_is_refused),
        cmocka_unit_test(the_body_waits_for_its_inputs_to_be_synced),
        cmocka_unit_test(a_handler_that_fails_leaves_nothing),
        cmocka_unit_test(a_handler_that_aborts_is_dropped),
        cmocka_unit_test(a_failing_preflight_does_not_wedge_the_queue),
        cmocka_unit_test(an_event_keeps_its_place_while_its_handler_is_loaded),
        cmocka_unit_test(a_handler_that_cannot_be_loaded_ends_the_event_once),
        cmocka_unit_test(a_handler_that_is_loaded_at_once_is_not_waited_for),
        cmocka_unit_test(an_event_whose_origin_failed_is_not_brought_back),
        cmocka_unit_test(every_send_has_an_id_of_its_own),
        cmocka_unit_test(a_senders_id_is_scoped),
        cmocka_unit_test(an_id_that_cannot_be_scoped_is_refused),
        cmocka_unit_test(a_full_stream_says_so),
        cmocka_unit_test(the_last_wins_within_one_origin),
        cmocka_unit_test(a_body_that_waits_for_nothing_fails_in_the_end),
        cmocka_unit_test(a_body_that_meets_an_unknown_document_runs_on_its_arrival),
        cmocka_unit_test(an_event_for_later_holds_idle),
        cmocka_unit_test(reads_outside_the_declared_inputs_are_counted),
        cmocka_unit_test(telemetry_is_there_when_it_is_asked_for),
        cmocka_unit_test(commits_carry_the_identity_of_their_handler),
        cmocka_unit_test(a_handler_may_go_before_its_commit_is_sent),
    };
    LAB_EVERYWHERE(tests);
}
