/* test_late.c -- posted events on a store whose documents arrive late, as from a remote store (7.6). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <heddle/event.h>
#include <heddle/lab.h>

static hd_lab *lab;
static int stored_count;
static hd_status stored_status;

static int open_late(void **state) {
    lab = hd_lab_open(&(hd_lab_options){ .load_late = true });
    stored_count = 0;
    stored_status = HD_PENDING;
    return 0;
}
static int close_late(void **state) {
    hd_lab_close(lab);
    return 0;
}

static hd_status append_payload(hd_tx *tx, const hd_event *event, void *ctx) {
    return hd_tx_append(tx, hd_cell_at(hd_tx_runtime(tx), "main/got"), event->payload);
}

static void handle(hd_runtime *rt) {
    hd_handler_spec spec = { .stream = hd_cell_at(rt, "main/clicks"),
                             .name = "append",
                             .fn = append_payload,
                             .reads_nothing = true };
    assert_int_equal(hd_handler_register(rt, &spec, NULL), HD_OK);
}

static void tell_stored(const char *id, hd_status status, void *ctx) {
    stored_count++;
    stored_status = status;
}

static void post(hd_runtime *rt, int64_t n) {
    hd_pool *pool;
    char id[HD_EVENT_ID_SIZE];
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    assert_int_equal(hd_event_post(rt, hd_cell_at(rt, "main/clicks"), hd_int(pool, n),
                                   &(hd_send_options){ .done = tell_stored }, id),
                     HD_OK);
    hd_pool_close(pool);
}

static void a_post_without_an_id_is_stored(void **state) {
    hd_runtime *a = hd_lab_runtime(lab, "a");
    post(a, 1);
    hd_lab_settle(lab);
    assert_int_equal(stored_count, 1);
    assert_int_equal(stored_status, HD_OK);
}

/* Idle: hd_lab_idle waits for a post with an id, which has to read whether the event is there already. */
static void a_post_with_an_id_is_stored(void **state) {
    hd_runtime *a = hd_lab_runtime(lab, "a");
    hd_send_options named = { .id = "one", .done = tell_stored };
    assert_int_equal(hd_event_post(a, hd_cell_at(a, "main/clicks"), hd_null(), &named, NULL),
                     HD_OK);
    hd_lab_idle(lab);
    assert_int_equal(stored_count, 1);
    assert_int_equal(stored_status, HD_OK);
}

static void a_handler_registered_later_takes_what_was_posted(void **state) {
    hd_runtime *a = hd_lab_runtime(lab, "a");
    post(a, 1);
    post(a, 2);
    hd_lab_settle(lab);
    handle(a);
    hd_lab_settle(lab);
    hd_lab_expect_cell(a, "main/got", "[1,2]");
}

static void another_program_takes_what_was_posted(void **state) {
    hd_runtime *a = hd_lab_runtime(lab, "a");
    post(a, 1);
    post(a, 2);
    hd_lab_settle(lab);
    hd_lab_runtime_close(a);
    hd_runtime *b = hd_lab_runtime(lab, "b");
    handle(b);
    hd_lab_settle(lab);
    hd_lab_expect_cell(b, "main/got", "[1,2]");
}

static void a_program_that_follows_takes_what_is_posted_elsewhere(void **state) {
    hd_runtime *a = hd_lab_runtime(lab, "a"), *b = hd_lab_runtime(lab, "b");
    handle(b);
    hd_lab_settle(lab);
    post(a, 1);
    hd_lab_settle(lab);
    post(a, 2);
    hd_lab_settle(lab);
    hd_lab_expect_cell(b, "main/got", "[1,2]");
}

static void each_is_handled_once_though_two_programs_take_it(void **state) {
    hd_runtime *a = hd_lab_runtime(lab, "a"), *b = hd_lab_runtime(lab, "b");
    post(a, 1);
    hd_lab_settle(lab);
    handle(a);
    handle(b);
    hd_lab_settle(lab);
    hd_lab_expect_cell(a, "main/got", "[1]");
    hd_lab_expect_cell(b, "main/got", "[1]");
}

#define T(name) cmocka_unit_test_setup_teardown(name, open_late, close_late)

/* ---- nodes */

typedef struct world {
    hd_cell n, late, x, y, seen;
    int64_t first, second; /* what `look` saw last */
    int looks, mixed;
} world;
static world w;

static hd_status copy_as(hd_tx *tx, hd_cell to, hd_value v) {
    return hd_value_status(v) ? hd_value_status(v) : hd_tx_set(tx, to, v);
}

/* x is n; for an n above 1 a document is needed that is not here yet. */
static hd_status compute_x(hd_tx *tx, void *ctx) {
    hd_value n = hd_tx_get(tx, w.n);
    if (hd_value_as_int(n, 0) > 1) {
        hd_value late = hd_tx_get(tx, w.late);
        if (hd_value_status(late)) return hd_value_status(late);
    }
    return copy_as(tx, w.x, n);
}
static hd_status compute_y(hd_tx *tx, void *ctx) { return copy_as(tx, w.y, hd_tx_get(tx, w.x)); }

static hd_status look(hd_tx *tx, void *ctx) {
    hd_value n = hd_tx_get(tx, w.n), y = hd_tx_get(tx, w.y);
    if (hd_value_status(n) || hd_value_status(y))
        return hd_value_status(n) ? hd_value_status(n) : hd_value_status(y);
    w.looks++;
    w.first = hd_value_as_int(n, -1);
    w.second = hd_value_as_int(y, -1);
    w.mixed += w.first != w.second;
    return HD_OK;
}

/* A document is loaded before it can be written: the first attempt asks for it. */
static void set_late(hd_runtime *rt, const char *name, int64_t n) {
    hd_status status = HD_PENDING;
    for (int i = 0; status && i < 10; i++) {
        hd_tx *tx;
        assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
        status = hd_tx_set_int(tx, hd_cell_at(rt, name), n);
        if (!status) status = hd_tx_commit(tx, NULL, NULL);
        else hd_tx_abort(tx);
        hd_lab_settle(lab);
    }
    assert_int_equal(status, HD_OK);
}

/* 7.3, I4: a node does not run while a node upstream waits for a document, also where the nodes between the two
 * are clean: it would see the new n with the y of the old one. */
static void a_run_that_waits_for_a_document_is_waited_for_through_clean_nodes(void **state) {
    hd_runtime *b = hd_lab_runtime(lab, "b");
    set_late(b, "main/late", 5);
    set_late(b, "main/n", 1);
    hd_runtime *a = hd_lab_runtime(lab, "a");
    w = (world){ .n = hd_cell_at(a, "main/n"),
                 .late = hd_cell_at(a, "main/late"),
                 .x = hd_cell_at(a, "main/x"),
                 .y = hd_cell_at(a, "main/y") };
    hd_compute(a, "x", compute_x, NULL, w.x);
    hd_compute(a, "y", compute_y, NULL, w.y);
    hd_effect(a, "look", look, NULL);
    hd_lab_settle(lab);
    assert_true(w.looks > 0 && !w.mixed && w.second == 1);
    w.looks = 0;
    set_late(a, "main/n", 2);
    assert_int_equal(w.mixed, 0);
    assert_int_equal(w.looks, 1);
    assert_int_equal(w.second, 2);
}

static void ignore(hd_value v, void *ctx) {}

/* A program whose x is live through a sink, on a store in which n and `late` are. */
static hd_runtime *open_with_live_x(int64_t n) {
    hd_runtime *b = hd_lab_runtime(lab, "b");
    set_late(b, "main/late", 5);
    set_late(b, "main/n", n);
    hd_runtime *a = hd_lab_runtime(lab, "a");
    w = (world){ .n = hd_cell_at(a, "main/n"),
                 .late = hd_cell_at(a, "main/late"),
                 .x = hd_cell_at(a, "main/x"),
                 .y = hd_cell_at(a, "main/x") };
    hd_compute(a, "x", compute_x, NULL, w.x);
    hd_sink(a, w.x, ignore, NULL);
    return a;
}

/* 7.3, I4: the same where the reader finds out during its run that it reads what such a node writes. */
static void a_run_that_waits_for_a_document_is_waited_for_by_a_new_reader(void **state) {
    hd_runtime *a = open_with_live_x(1);
    hd_lab_settle(lab);
    hd_effect(a, "look", look, NULL);
    assert_int_equal(hd_write_json(a, w.n, "2"), HD_OK);
    hd_lab_settle(lab);
    assert_int_equal(w.mixed, 0);
    assert_int_equal(w.looks, 1);
    assert_int_equal(w.second, 2);
}

/* The first run of x waits: a reader does not see that x is absent. */
static void a_first_run_that_waits_for_a_document_is_waited_for(void **state) {
    hd_runtime *a = open_with_live_x(2);
    hd_effect(a, "look", look, NULL);
    hd_lab_settle(lab);
    assert_int_equal(w.mixed, 0);
    assert_int_equal(w.looks, 1);
    assert_int_equal(w.second, 2);
}

static int refusals;
static hd_status refuse(hd_tx *tx, const hd_event *event, void *ctx) {
    refusals++;
    return hd_tx_fail(tx, HD_FAILED, "not today");
}
static void refuse_at(hd_runtime *rt, const char *stream) {
    hd_handler_spec spec = { .stream = hd_cell_at(rt, stream),
                             .fn = refuse,
                             .reads_nothing = true };
    assert_int_equal(hd_handler_register(rt, &spec, NULL), HD_OK);
}

/* hd_tx_event_retry: a failed event is tried again by who registers a handler for its stream, and by nobody else. */
static void a_failed_event_waits_for_a_handler_of_its_stream(void **state) {
    hd_runtime *a = hd_lab_runtime(lab, "a");
    refusals = 0;
    post(a, 1);
    refuse_at(a, "main/clicks");
    hd_lab_settle(lab);
    assert_int_equal(refusals, 1);
    refuse_at(a, "main/other");
    hd_lab_settle(lab);
    assert_int_equal(refusals, 1);
    (void)hd_lab_failures(a);
    hd_lab_runtime_close(a);
    hd_runtime *b = hd_lab_runtime(lab, "b");
    refuse_at(b, "main/other");
    hd_lab_settle(lab);
    assert_int_equal(refusals, 1);
    refuse_at(b, "main/clicks");
    hd_lab_settle(lab);
    assert_int_equal(refusals, 2);
    (void)hd_lab_failures(b);
}

/* Each time once: no firing is refused. */
static void a_periodic_event_fires(void **state) {
    hd_runtime *a = hd_lab_runtime(lab, "a");
    handle(a);
    assert_int_equal(hd_event_post(a, hd_cell_at(a, "main/clicks"), hd_int(NULL, 1),
                                   &(hd_send_options){ .id = "tick", .every_ms = 1000 }, NULL),
                     HD_OK);
    assert_int_equal(hd_runtime_sync(a), HD_OK);
    for (int i = 0; i < 4; i++) {
        hd_lab_advance_ms(lab, 1000);
        hd_lab_idle(lab);
    }
    assert_int_equal(hd_runtime_sync(a), HD_OK);
    hd_lab_settle(lab);
    assert_string_equal(hd_lab_get(a, "main/got"), "[1,1,1,1]");
    hd_store_stats stats;
    hd_runtime_store_stats(a, &stats);
    assert_int_equal(stats.rejected, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(a_run_that_waits_for_a_document_is_waited_for_through_clean_nodes),
        T(a_run_that_waits_for_a_document_is_waited_for_by_a_new_reader),
        T(a_first_run_that_waits_for_a_document_is_waited_for),
        T(a_post_without_an_id_is_stored),
        T(a_handler_registered_later_takes_what_was_posted),
        T(another_program_takes_what_was_posted),
        T(a_program_that_follows_takes_what_is_posted_elsewhere),
        T(each_is_handled_once_though_two_programs_take_it),
        T(a_failed_event_waits_for_a_handler_of_its_stream),
        T(a_periodic_event_fires),
        T(a_post_with_an_id_is_stored),
    };
    return cmocka_run_group_tests_name("late", tests, NULL, NULL);
}
