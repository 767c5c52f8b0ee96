/* test_postgres.c -- the connections of a store on a server: what they hear of each other.
 *
 * Needs a server (HD_POSTGRES, tools/with-postgres); without one nothing is tested. */
#define _GNU_SOURCE
#include "lab.h"
#include "lab_place.h"

#include "store/postgres/store.h"
#include "store/postgres/backend.h"
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

enum { LONG_MS = 60000 };

typedef struct world {
    lab_store_place place;
    hd_env env;
    log_store *writing, *reading;
    uint64_t row;
} world;

static const log_backend *const ops = &postgres_backend;

static void open_world(world *w) {
    hd_options options = { 0 };
    hd_error error = { 0 };
    *w = (world){ .env = hd_env_system() };
    if (!getenv("HD_POSTGRES")) skip();
    setenv("HD_STORE", "postgres", 1);
    lab_place_make(&w->place);
    if (ops->open(w->place.name, &options, &w->env, LOG_WRITING, &w->writing, &error) ||
        ops->open(w->place.name, &options, &w->env, LOG_READING, &w->reading, &error))
        fail_msg("%s", error.message);
}

static void close_world(world *w) {
    ops->close(w->reading);
    ops->close(w->writing);
    lab_place_remove(&w->place);
}

/* Appends a row, tells of it, and waits until the server has done both. */
static void append_and_tell(world *w) {
    uint64_t first, last;
    assert_int_equal(ops->begin_write(w->writing, LOG_DURABLE), HD_OK);
    assert_int_equal(ops->append(w->writing, ++w->row, 0, text_of_bytes("x", 1)), HD_OK);
    assert_int_equal(ops->commit(w->writing), HD_OK);
    ops->work(w->writing);
    assert_int_equal(ops->row_ends(w->writing, &first, &last), HD_OK);
    assert_int_equal(last, w->row);
}

static void read_and_let_go(world *w) {
    uint64_t checkpoint;
    assert_int_equal(ops->begin_read(w->reading), HD_OK);
    assert_int_equal(ops->get_number(w->reading, LOG_CHECKPOINT, &checkpoint), HD_OK);
    ops->rollback(w->reading);
}

static bool becomes_readable(world *w) {
    struct pollfd fd = { .fd = ops->notify_fd(w->reading), .events = POLLIN };
    return poll(&fd, 1, LONG_MS) > 0;
}

/* True as soon as the descriptor has told of a row after `position`; false if it becomes silent. */
static bool is_told(world *w, uint64_t position) {
    while (becomes_readable(w))
        if (ops->notify_take(w->reading, position)) return true;
    return false;
}

/* A reader that has ended a transaction without waiting for the answer hears of the next row. */
static void a_notification_behind_an_answer_is_heard(void **state) {
    world w;
    open_world(&w);
    assert_true(ops->notify_arm(w.reading));
    for (int i = 0; i < 5; i++) {
        read_and_let_go(&w);
        append_and_tell(&w);
        assert_true(is_told(&w, w.row - 1));
    }
    close_world(&w);
}

/* A notification that libpq reads together with the answer to a statement makes the descriptor readable. */
static void a_notification_within_an_answer_is_heard(void **state) {
    world w;
    bool any;
    open_world(&w);
    assert_true(ops->notify_arm(w.reading));
    for (int i = 0; i < 5; i++) {
        append_and_tell(&w);
        assert_true(becomes_readable(&w)); /* it has come, and nothing has read it */
        assert_int_equal(ops->has_after(w.reading, w.row - 1, &any), HD_OK);
        assert_true(any);
        assert_true(is_told(&w, w.row - 1));
    }
    close_world(&w);
}

static PGresult *gives_nothing(PGconn *c) {
    (void)c;
    return NULL;
}

/* libpq can call a connection good that the server has closed, and has no answer left then. The statement fails, the
 * connection is given up, and the next statement finds a new one. */
static void answers_that_never_come_are_a_lost_connection(void **state) {
    world w;
    bool any;
    open_world(&w);
    conn *c = conn_of(w.reading);
    PGresult *(*get_result)(PGconn *) = c->pq.PQgetResult;
    c->pq.PQgetResult = gives_nothing;
    assert_int_equal(ops->has_after(w.reading, 0, &any), HD_BUSY);
    assert_null(c->c);
    c->pq.PQgetResult = get_result;
    while (ops->has_after(w.reading, 0, &any) == HD_BUSY)
        continue; /* it connects again after a while */
    assert_false(any);
    close_world(&w);
}

/* The same for answers that nothing waits for. */
static void a_lost_connection_is_noticed_while_listening(void **state) {
    world w;
    open_world(&w);
    assert_true(ops->notify_arm(w.reading));
    conn *c = conn_of(w.reading);
    read_and_let_go(&w);
    assert_true(c->syncs > 0);
    assert_true(becomes_readable(&w));
    c->pq.PQgetResult = gives_nothing;
    assert_true(ops->notify_take(w.reading, w.row));
    close_world(&w);
}

/* ---- memory */

/* What a program does with a store, as far as its memory goes. */
static hd_status use_store(hd_runtime *rt) {
    hd_pool *pool;
    hd_status status = hd_pool_open(hd_runtime_heap(rt), &pool);
    if (status) return status;
    hd_cell cell = hd_cell_at(rt, "main/a"), other = hd_cell_at(rt, "main/b");
    status = cell.id && other.id ? hd_write_json(rt, cell, "{\"n\": [1, 2, 3]}") : HD_NOMEM;
    if (!status) status = hd_write_json(rt, other, "\"text\"");
    if (!status) status = hd_runtime_sync(rt);
    if (!status) status = hd_value_status(hd_read(rt, pool, cell));
    hd_pool_close(pool);
    return status;
}

static bool count_entry(const hd_listing *entry, void *ctx) { return ++*(int *)ctx, true; }

/* Opens a store that exists, writes, folds the log, and looks. */
static hd_status live_once(const char *name, const hd_env *env) {
    hd_runtime *rt;
    hd_error error = { 0 };
    int count = 0;
    hd_options options = { .env = env };
    hd_status status = hd_open(name, &options, &rt, &error);
    if (status) return status;
    status = use_store(rt);
    if (!status) status = hd_store_checkpoint(rt, &error);
    if (!status) status = hd_runtime_list(rt, "main", NULL, NULL, count_entry, &count);
    if (!status) assert_int_equal(count, 2);
    hd_status closed = hd_close(rt);
    return status ? status : closed;
}

/* Whichever allocation fails, nothing leaks, a call says so or does it again, and what is stored is whole. */
static void any_allocation_may_fail(void **state) {
    lab_store_place place;
    hd_env real = hd_env_system();
    if (!getenv("HD_POSTGRES")) skip();
    setenv("HD_STORE", "postgres", 1);
    lab_place_make(&place);
    assert_int_equal(live_once(place.name, &real), HD_OK);
    bool failed = true;
    for (uint64_t n = 1; failed; n += 1 + n / 40) {
        lab_env *world_ = lab_env_open();
        lab_env_fail_at(world_, n);
        hd_status status = live_once(place.name, lab_env_of(world_));
        failed = lab_env_failed(world_);
        if (!failed) assert_int_equal(status, HD_OK);
        lab_env_close(world_); /* complains about what was not freed */
    }
    assert_int_equal(live_once(place.name, &real), HD_OK);
    lab_place_remove(&place);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_that_never_come_are_a_lost_connection),
        cmocka_unit_test(a_lost_connection_is_noticed_while_listening),
        cmocka_unit_test(a_notification_behind_an_answer_is_heard),
        cmocka_unit_test(a_notification_within_an_answer_is_heard),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
