/* test_letters.c -- posted events that their handler refuses: what is kept of them, trying again, dropping; and the
 * streams of a runtime. From the public headers. */
#include <heddle.h>
#include <heddle/introspect.h>
#include <heddle/lab.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static hd_lab *lab;
static hd_runtime *a, *b;
static hd_pool *pool;
static int bodies;
static bool accepts;
static char id[HD_EVENT_ID_SIZE], cell_name[128];

static int start_in(bool in_file) {
    lab = hd_lab_open(&(hd_lab_options){ .in_file = in_file });
    a = hd_lab_runtime(lab, "a");
    b = hd_lab_runtime(lab, "b");
    hd_pool_open(hd_runtime_heap(a), &pool);
    bodies = 0;
    accepts = false;
    return 0;
}
static int start(void **state) { return start_in(false); }
static int start_file(void **state) { return start_in(true); }
static int finish(void **state) {
    (void)hd_lab_failures(a); /* those of the handler are what the tests are about */
    (void)hd_lab_failures(b);
    hd_pool_close(pool);
    hd_lab_close(lab);
    return 0;
}
#define T(name)                                                                                    \
    { #name, name, start, finish, NULL }, { #name " in a file", name, start_file, finish, NULL }

static hd_status handle(hd_tx *tx, const hd_event *event, void *ctx) {
    bodies++;
    return accepts ? hd_tx_return(tx, hd_bool(true)) : hd_tx_fail(tx, HD_FAILED, "not today");
}

static void add_handler(hd_runtime *rt) {
    hd_handler_spec spec = {
        .stream = hd_cell_at(rt, "main/in"), .fn = handle, .name = "clerk", .reads_nothing = true
    };
    assert_int_equal(hd_handler_register(rt, &spec, NULL), HD_OK);
}

/* Posts an event that the handler of `a` refuses; `name` is the sender's id. */
static void post_refused(const char *name) {
    add_handler(a);
    hd_send_options options = { .id = name };
    assert_int_equal(hd_event_post(b, hd_cell_at(b, "main/in"), hd_bool(true), &options, id),
                     HD_OK);
    hd_lab_settle(lab);
    snprintf(cell_name, sizeof cell_name, "main/event/%s", id);
    assert_int_equal(bodies, 1);
}

static hd_value meta(hd_runtime *rt, const char *cell, const char *key) {
    hd_tx *tx;
    assert_int_equal(hd_tx_begin_read(rt, &tx), HD_OK);
    hd_value v = hd_tx_get_meta(tx, hd_cell_at(rt, cell), key);
    if (hd_value_exists(v)) v = hd_value_take(pool, hd_value_ref(v));
    hd_tx_abort(tx);
    return v;
}

static hd_status retry(hd_tx *tx, void *ctx) {
    return hd_tx_event_retry(tx, hd_cell_at(hd_tx_runtime(tx), cell_name));
}
static hd_status drop(hd_tx *tx, void *ctx) {
    return hd_tx_event_drop(tx, hd_cell_at(hd_tx_runtime(tx), cell_name), ctx);
}

static const char *receipt(void) {
    static char name[128];
    snprintf(name, sizeof name, "main/receipt/%s", id);
    return name;
}

/* hd_tx_event_retry: what failed stays, with the reason and the attempts so far. */
static void a_refused_event_says_why(void **state) {
    post_refused("order-1");
    hd_value failed = meta(a, cell_name, "failed");
    assert_string_equal(hd_value_as_text(hd_value_at(failed, "message"), ""), "not today");
    assert_string_equal(hd_value_as_text(hd_value_at(failed, "handler"), ""), "clerk");
    assert_int_equal(hd_value_as_int(hd_value_at(failed, "attempts"), 0), 1);
    hd_value event = hd_read(a, pool, hd_cell_at(a, cell_name));
    assert_string_equal(hd_value_as_text(hd_value_at(event, "as"), ""), "order-1");
    assert_true(hd_value_exists(hd_value_at(event, "time")));
}

/* Tried again by the runtime that has the handler, whoever asks; attempts add up. */
static void a_refused_event_is_tried_again(void **state) {
    post_refused(NULL);
    assert_int_equal(hd_transact(b, retry, NULL), HD_OK); /* by another runtime */
    hd_lab_settle(lab);
    assert_int_equal(bodies, 2);
    assert_int_equal(hd_transact(a, retry, NULL), HD_OK); /* by the one that has the handler */
    hd_lab_settle(lab);
    assert_int_equal(bodies, 3);
    accepts = true;
    assert_int_equal(hd_transact(b, retry, NULL), HD_OK);
    hd_lab_settle(lab);
    assert_int_equal(bodies, 4);
    assert_true(hd_value_as_bool(hd_read(a, pool, hd_cell_at(a, receipt())), false));
    assert_int_equal(hd_transact(a, retry, NULL), HD_NOT_FOUND);
}

static void add_other_handler(hd_runtime *rt) {
    hd_handler_spec spec = { .stream = hd_cell_at(rt, "main/other"),
                             .fn = handle,
                             .reads_nothing = true };
    assert_int_equal(hd_handler_register(rt, &spec, NULL), HD_OK);
}

/* hd_tx_event_retry: a failed event is tried again by who registers a handler for its own stream. */
static void a_handler_of_another_stream_retries_nothing(void **state) {
    post_refused("order-1");
    add_other_handler(a);
    hd_lab_settle(lab);
    assert_int_equal(bodies, 1);
    add_other_handler(b);
    hd_lab_settle(lab);
    assert_int_equal(bodies, 1);
    add_handler(b);
    hd_lab_settle(lab);
    assert_int_equal(bodies, 2);
}

/* hd_event_post: under a sender's id that waits, failed or not, nothing changes; the poster is told that it is
 * there. */
static void to_post_an_id_again_is_no_retry(void **state) {
    char again[HD_EVENT_ID_SIZE];
    hd_send_options options = { .id = "order-1" };
    post_refused("order-1");
    assert_int_equal(hd_event_post(a, hd_cell_at(a, "main/in"), hd_null(), &options, again), HD_OK);
    assert_string_equal(again, id);
    hd_lab_settle(lab);
    assert_int_equal(hd_event_post(b, hd_cell_at(b, "main/in"), hd_null(), &options, again), HD_OK);
    hd_lab_settle(lab);
    assert_int_equal(bodies, 1);
    assert_string_equal(hd_value_as_text(hd_value_at(meta(a, cell_name, "failed"), "message"), ""),
                        "not today");
}

/* Dropped: it is over, its receipt says why, and the sender's id is used up. */
static void a_dropped_event_is_over(void **state) {
    post_refused("order-1");
    assert_int_equal(hd_transact(b, drop, "lost in the mail"), HD_OK);
    hd_lab_settle(lab);
    assert_int_equal(bodies, 1);
    hd_value v = hd_read(a, pool, hd_cell_at(a, receipt()));
    assert_string_equal(hd_value_as_text(hd_value_at(v, "dropped"), ""), "lost in the mail");
    assert_true(hd_value_as_bool(meta(a, receipt(), "dropped"), false));
    assert_false(hd_value_exists(hd_read(a, pool, hd_cell_at(a, cell_name))));
    char again[HD_EVENT_ID_SIZE];
    hd_send_options options = { .id = "order-1" };
    assert_int_equal(hd_event_post(a, hd_cell_at(a, "main/in"), hd_null(), &options, again),
                     HD_EXISTS);
    hd_lab_settle(lab);
    assert_int_equal(bodies, 1);
    assert_int_equal(hd_transact(a, drop, NULL), HD_NOT_FOUND);
}

/* A cell that is no event's is refused. */
static void only_events_are_letters(void **state) {
    snprintf(cell_name, sizeof cell_name, "main/n");
    assert_int_equal(hd_transact(a, retry, NULL), HD_USAGE);
    assert_int_equal(hd_transact(a, drop, NULL), HD_USAGE);
}

/* What a handler's receipt says of a posted event: its stream, when it was posted, the sender's id. */
static void a_receipt_tells_the_story_of_its_event(void **state) {
    accepts = true;
    post_refused("order-1");
    assert_string_equal(hd_value_as_text(meta(a, receipt(), "stream"), ""), "main/in");
    assert_string_equal(hd_value_as_text(meta(a, receipt(), "as"), ""), "order-1");
    assert_true(hd_value_exists(meta(a, receipt(), "time")));
}

/* ---- streams */

static char streams[256];
static bool note_stream(const hd_stream_info *info, void *ctx) {
    char name[64];
    hd_cell_print(ctx, info->stream, name, sizeof name);
    snprintf(streams + strlen(streams), sizeof streams - strlen(streams),
             "%s %s %llu/%llu/%llu %d;", name, info->handler ? info->handler : "-",
             (unsigned long long)info->queued, (unsigned long long)info->handled,
             (unsigned long long)info->failed, info->waits);
    return true;
}

/* hd_runtime_streams: streams, their handlers, and how many events waited, were handled, failed. */
static void a_runtime_lists_its_streams(void **state) {
    post_refused(NULL);
    accepts = true;
    assert_int_equal(hd_event_send(a, hd_cell_at(a, "main/in"), hd_null(), NULL), HD_OK);
    streams[0] = 0;
    hd_runtime_streams(a, note_stream, a);
    assert_string_equal(streams, "main/in clerk 1/0/1 0;");
    hd_lab_settle(lab);
    streams[0] = 0;
    hd_runtime_streams(a, note_stream, a);
    assert_string_equal(streams, "main/in clerk 0/1/1 0;");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(a_refused_event_says_why),
        T(a_refused_event_is_tried_again),
        T(a_dropped_event_is_over),
        T(only_events_are_letters),
        T(a_handler_of_another_stream_retries_nothing),
        T(to_post_an_id_again_is_no_retry),
        T(a_runtime_lists_its_streams),
        T(a_receipt_tells_the_story_of_its_event),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
