/* test_postgres.c -- the connections of a store on a server: what they hear of each other.
 *
 * Needs a server (HD_POSTGRES, tools/with-postgres); without one nothing is tested. */
#define _GNU_SOURCE
#include "lab.h"
#include "lab_place.h"

#include "store/log/authority.h"
#include "store/log/client.h"
#include "store/log/state.h"
#include "store/runtime.h"
#include "store/postgres/store.h"
#include "store/postgres/backend.h"
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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
        if (ops->notify_take(w->reading) > position) return true;
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
    assert_true(ops->notify_take(w.reading) > w.row);
    close_world(&w);
}

/* ---- telling others */

static uint64_t stopped_clock(void *ctx) {
    (void)ctx;
    return UINT64_C(1000000000);
}

/* Looks that go by the clock never come, and neither do notifications that wait for it. */
static hd_runtime *open_without_time(const char *name) {
    hd_env env = hd_env_system();
    hd_options options = { .env = &env };
    hd_runtime *rt;
    hd_error error = { 0 };
    env.monotonic_ns = stopped_clock;
    if (hd_open(name, &options, &rt, &error)) fail_msg("%s", error.message);
    return rt;
}

static bool is_at(hd_runtime *rt, const char *cell, int n) {
    hd_pool *pool;
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    int64_t is = hd_value_as_int(hd_read(rt, pool, hd_cell_at(rt, cell)), -1);
    hd_pool_close(pool);
    return is == n;
}

static void hear(hd_runtime *rt, const char *cell, int n) {
    struct pollfd fd = { .fd = hd_runtime_fd(rt), .events = POLLIN };
    assert_in_range(hd_runtime_pump(rt), 0, HD_PENDING);
    while (!is_at(rt, cell, n)) {
        bool waits = hd_runtime_deadline(rt) > 0;
        assert_true(poll(&fd, 1, waits ? LONG_MS : 0) || !waits);
        assert_in_range(hd_runtime_pump(rt), 0, HD_PENDING);
    }
}

static void say(hd_runtime *rt, const char *cell, int n) {
    char json[16];
    snprintf(json, sizeof json, "%d", n);
    assert_int_equal(hd_write_json(rt, hd_cell_at(rt, cell), json), HD_OK);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
}

/* A program that commits all the time tells so now and then; one that answers tells so at once, however often. */
static void answers_are_told_at_once(void **state) {
    lab_store_place where;
    if (!getenv("HD_POSTGRES")) skip();
    setenv("HD_STORE", "postgres", 1);
    lab_place_make(&where);
    hd_runtime *one = open_without_time(where.name), *two = open_without_time(where.name);
    assert_int_equal(hd_runtime_follow(one, "main"), HD_OK);
    assert_int_equal(hd_runtime_follow(two, "main"), HD_OK);
    for (int i = 1; i <= 40; i++) {
        say(one, "main/question", i);
        hear(two, "main/question", i);
        say(two, "main/answer", i);
        hear(one, "main/answer", i);
    }
    assert_int_equal(hd_close(one), HD_OK);
    assert_int_equal(hd_close(two), HD_OK);
    lab_place_remove(&where);
}

/* What it has not told yet, since it told of so much before, it tells when it closes. */
static void the_last_row_is_told_when_a_runtime_closes(void **state) {
    world w;
    uint64_t first, last;
    open_world(&w);
    assert_true(ops->notify_arm(w.reading));
    hd_runtime *rt = open_without_time(w.place.name);
    for (int i = 0; i < 40; i++) say(rt, "main/n", i);
    assert_int_equal(hd_close(rt), HD_OK);
    assert_int_equal(ops->row_ends(w.writing, &first, &last), HD_OK);
    assert_true(last >= 40);
    assert_true(is_told(&w, last - 1));
    close_world(&w);
}

/* When a connection to the store last sent something; `c`, which asks, does not count. */
static double last_sent(conn *c) {
    PGresult *r = conn_exec(c, "select extract(epoch from max(query_start)) from pg_stat_activity"
                               " where application_name = 'heddle' and pid <> pg_backend_pid()");
    assert_non_null(r);
    double when = atof(word_at(c, r, 0, 0));
    c->pq.PQclear(r);
    return when;
}

/* The runtime hears of its own row before it has taken the row's outcome, and does not look for it. */
static void a_runtime_does_not_look_for_its_own_rows(void **state) {
    world w;
    uint64_t first, last;
    open_world(&w);
    assert_true(ops->notify_arm(w.reading));
    hd_runtime *rt = open_without_time(w.place.name);
    conn *c = conn_of(w.writing);
    assert_int_equal(ops->row_ends(w.writing, &first, &last), HD_OK);
    c->pq.PQexitPipelineMode(c->c);
    assert_int_equal(hd_runtime_pump(rt), HD_OK); /* begins to listen, and looks once */
    assert_int_equal(hd_write_json(rt, hd_cell_at(rt, "main/n"), "1"), HD_OK);
    assert_int_equal(hd_runtime_pump(rt), HD_OK);
    assert_true(is_told(&w, last));
    double before = last_sent(c);
    assert_int_equal(hd_runtime_pump(rt), HD_OK);
    assert_int_equal(rt->r.pending_count, 0);
    assert_true(last_sent(c) == before);
    c->pq.PQenterPipelineMode(c->c);
    assert_int_equal(hd_close(rt), HD_OK);
    close_world(&w);
}

/* ---- round trips */

static int (*real_sync)(PGconn *);
static int syncs;

static int count_sync(PGconn *c) {
    syncs++;
    return real_sync(c);
}

/* The server sends the rows and the checkpoint in one answer. */
static void new_rows_cost_a_reader_one_round_trip(void **state) {
    world w;
    client reader = { 0 };
    hd_runtime *holder, *rt;
    open_world(&w);
    assert_int_equal(hd_open(NULL, NULL, &holder, NULL), HD_OK);
    assert_int_equal(hd_open(w.place.name, NULL, &rt, NULL), HD_OK);
    assert_int_equal(client_open(&reader, w.reading, &holder->r), HD_OK);
    say(rt, "main/n", 1);
    conn *c = conn_of(w.reading);
    real_sync = c->pq.PQpipelineSync;
    c->pq.PQpipelineSync = count_sync;
    uint64_t before = reader.position;
    holder->r.polling = true;
    assert_int_equal(client_advance(&reader, UINT64_MAX), HD_OK);
    holder->r.polling = false;
    assert_int_equal(reader.position, before + 1);
    assert_int_equal(syncs, 1);
    client_close(&reader);
    assert_int_equal(hd_close(rt), HD_OK);
    assert_int_equal(hd_close(holder), HD_OK);
    ops->close(w.writing);
    lab_place_remove(&w.place);
}

/* As on a database that does not know it. */
static void a_server_may_refuse_to_listen(void **state) {
    hd_env env = hd_env_system();
    hd_error error = { 0 };
    conn c = { .channel = "no name of a channel" };
    if (!getenv("HD_POSTGRES")) skip();
    assert_int_equal(conn_open(&c, getenv("HD_POSTGRES"), &env, &error), HD_OK);
    assert_false(c.broken);
    conn_close(&c);
}

/* ---- plans */

/* What the server means to do, if it has one plan for all parameters. */
static bool reads_by_index(conn *c, pg_sql which) {
    static const char *const types[] = { "", "(bigint)", "", "(bigint, bigint, text)",
                                         "(bigint, bigint, text, text)" };
    static const char *const values[] = { "", "(1)", "", "(1, 1, 'x')", "(1, 1, 'x', 'on')" };
    const pg_statement *s = &pg_statements[which];
    char sql[2000];
    size_t n = strlen(s->types);
    assert_true(!strcmp(s->types, "n") || !strncmp(s->types, "nntt", n));
    snprintf(sql, sizeof sql, "prepare p%s as %s", types[n], s->text);
    c->pq.PQclear(conn_exec(c, sql));
    snprintf(sql, sizeof sql, "explain execute p%s", values[n]);
    PGresult *r = conn_exec(c, sql);
    assert_non_null(r);
    bool good = true;
    for (int i = 0; i < rows_of(c, r); i++)
        good = good && !strstr(c->pq.PQgetvalue(r, i, 0), "Seq Scan on");
    c->pq.PQclear(r);
    c->pq.PQclear(conn_exec(c, "deallocate p"));
    return good;
}

/* A plan that was made while a table had a row or two is kept while it grows: it must not be to read all of it. */
static void statements_of_a_commit_read_by_index(void **state) {
    static const pg_sql often[] = { PG_LOG_APPEND, PG_LOG_CONTEND, PG_LOG_AFTER, PG_LOG_ROW,
                                    PG_LOG_ANY };
    world w;
    open_world(&w);
    conn *c = conn_of(w.writing);
    c->pq.PQexitPipelineMode(c->c);
    c->pq.PQclear(conn_exec(c, "vacuum analyze log"));
    c->pq.PQclear(conn_exec(c, "set plan_cache_mode to force_generic_plan"));
    for (size_t i = 0; i < sizeof often / sizeof *often; i++)
        assert_true(reads_by_index(c, often[i]));
    close_world(&w);
}

/* ---- what is waited for */

/* The synchronous_commit with which a transaction would end that appends row 1. */
static void assert_append_waits(conn *c, const char *expected) {
    PGresult *r = conn_exec(c, "begin; execute p(1, 1, 'x', 'local'); show synchronous_commit");
    assert_non_null(r);
    assert_string_equal(word_at(c, r, 0, 0), expected);
    c->pq.PQclear(r);
    c->pq.PQclear(conn_exec(c, "commit"));
}

/* A row that was added is waited for as the server's administrator wants it; a race that was lost is not. */
static void only_a_row_that_was_added_is_waited_for(void **state) {
    world w;
    char sql[2000];
    open_world(&w);
    conn *c = conn_of(w.writing);
    c->pq.PQexitPipelineMode(c->c);
    assert_string_equal(c->waits, "on");
    snprintf(sql, sizeof sql, "prepare p(bigint, bigint, text, text) as %s",
             pg_statements[PG_LOG_CONTEND].text);
    c->pq.PQclear(conn_exec(c, sql));
    assert_append_waits(c, "local");
    assert_append_waits(c, "off");
    close_world(&w);
}

/* `waits` of a connection whose user has the synchronous_commit `set`. */
static void assert_connection_waits(const char *set, bool soft, const char *expected) {
    char address[600];
    hd_env env = hd_env_system();
    hd_error error = { 0 };
    conn c = { .soft = soft };
    const char *name = getenv("HD_POSTGRES");
    snprintf(address, sizeof address, "%s%coptions=-csynchronous_commit%%3D%s", name,
             strchr(name, '?') ? '&' : '?', set);
    assert_int_equal(conn_open(&c, address, &env, &error), HD_OK);
    assert_string_equal(c.waits, expected);
    conn_close(&c);
}

/* store.h, HD_DURABILITY_FULL: an accepted commit is on disk, also where the user, the database or the server has
 * switched that off. */
static void commits_wait_for_the_disk_whatever_the_default_is(void **state) {
    if (!getenv("HD_POSTGRES")) skip();
    assert_connection_waits("off", false, "on");
    assert_connection_waits("local", false, "local");
    assert_connection_waits("remote_apply", false, "remote_apply");
    assert_connection_waits("on", true, "off");
}

/* ---- lost races */

enum { SMALL = 10, LARGE = 3 << 20 }; /* LARGE is more than a connection queues before it waits */

static hd_status append_beside_others(world *w, uint64_t row, uint64_t hash, size_t length) {
    char *bytes = malloc(length);
    assert_non_null(bytes);
    memset(bytes, 'x', length);
    w->writing->contended = true;
    assert_int_equal(ops->begin_write(w->writing, LOG_DURABLE), HD_OK);
    hd_status status = ops->append(w->writing, row, hash, text_of_bytes(bytes, length));
    if (!status) assert_int_equal(ops->commit(w->writing), HD_OK);
    ops->rollback(w->writing);
    free(bytes);
    return status;
}

static hd_status note_hash(void *ctx, const log_text *text, bool *stop) {
    (void)stop;
    *(uint64_t *)ctx = *(uint64_t *)ctx * 10 + text->hash;
    return HD_OK;
}

/* What the next attempt reads: hashes of the rows after `after`, and that the numbers are there. */
static void assert_next_reads(world *w, uint64_t after, uint64_t hashes) {
    uint64_t found = 0, number;
    assert_int_equal(ops->begin_write(w->writing, LOG_DURABLE), HD_OK);
    assert_int_equal(ops->read_after(w->writing, after, note_hash, &found), HD_OK);
    assert_int_equal(found, hashes);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ops->get_number(w->writing, LOG_CHECKPOINT, &number), HD_OK);
        assert_int_equal(ops->get_number(w->writing, LOG_KEPT, &number), HD_OK);
    }
    ops->rollback(w->writing);
}

/* An append is stored or refused, however long its row is, and one that was refused brings the rows that were
 * faster. */
static void a_refused_append_brings_the_winners(void **state) {
    static const size_t lengths[] = { SMALL, LARGE };
    for (size_t i = 0; i < 4; i++) {
        world w;
        open_world(&w);
        assert_int_equal(append_beside_others(&w, 1, 1, lengths[i & 1]), HD_OK);
        assert_int_equal(append_beside_others(&w, 1, 2, lengths[i >> 1]), HD_RESYNC);
        assert_next_reads(&w, 0, 1);
        assert_int_equal(append_beside_others(&w, 2, 2, lengths[i >> 1]), HD_OK);
        assert_int_equal(append_beside_others(&w, 1, 3, lengths[i & 1]), HD_RESYNC);
        assert_next_reads(&w, 0, 12);
        assert_next_reads(&w, 1, 2);
        close_world(&w);
    }
}

/* ---- prepared statements */

static void do_housework(log_store *s, hd_status expected) {
    uint64_t number;
    assert_int_equal(ops->begin_write(s, LOG_HOUSEWORK), HD_OK);
    assert_int_equal(ops->get_number(s, LOG_KEPT, &number), expected);
}

/* The server keeps what it has prepared before a statement of the same transaction fails. */
static void a_statement_that_fails_at_first_can_be_sent_again(void **state) {
    world w;
    open_world(&w);
    do_housework(w.writing, HD_OK);
    for (int i = 0; i < 3; i++) {
        do_housework(w.reading, HD_BUSY); /* one connection at a time */
        ops->rollback(w.reading);
    }
    assert_int_equal(ops->commit(w.writing), HD_OK); /* is waited for */
    do_housework(w.reading, HD_OK);
    ops->rollback(w.reading);
    close_world(&w);
}

/* ---- checkpoints */

enum { FOLDERS = 3, ROUNDS = 40, IN_ROUND = 10, WORTH = 4000 };

static fold_counts folded_by(hd_runtime *const *rt) {
    fold_counts sum = { 0 };
    for (int i = 0; i < FOLDERS; i++) {
        fold_counts one = log_authority_folds(rt[i]->r.authority);
        sum.slices += one.slices;
        sum.things += one.things;
        sum.passed += one.passed;
    }
    return sum;
}

static void write_documents(hd_runtime *rt, int who, int round) {
    static char text[WORTH];
    hd_tx *tx;
    memset(text, 'x', sizeof text);
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    for (int i = 0; i < IN_ROUND; i++) {
        char name[60];
        snprintf(name, sizeof name, "main/d%d-%d-%d", who, round, i);
        hd_value v = hd_string_n(hd_tx_pool(tx), text, sizeof text);
        assert_int_equal(hd_tx_set(tx, hd_cell_at(rt, name), v), HD_OK);
    }
    assert_int_equal(hd_tx_commit(tx, NULL, NULL), HD_OK);
}

/* Three runtimes write at once, and then nothing: whichever of them fold, each document is folded once. */
static void fold_together(uint64_t tail_bytes) {
    lab_store_place where;
    hd_runtime *rt[FOLDERS];
    hd_options options = { .tail_bytes = tail_bytes };
    hd_error error;
    if (!getenv("HD_POSTGRES")) skip();
    setenv("HD_STORE", "postgres", 1);
    lab_place_make(&where);
    for (int i = 0; i < FOLDERS; i++)
        if (hd_open(where.name, &options, &rt[i], &error)) fail_msg("%s", error.message);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < FOLDERS; i++) write_documents(rt[i], i, round);
        for (int i = 0; i < FOLDERS; i++) assert_int_equal(hd_runtime_sync(rt[i]), HD_OK);
    }
    for (int ms = 0; !tail_bytes && !folded_by(rt).things; ms += 10) {
        assert_true(ms < LONG_MS);
        (void)poll(NULL, 0, 10);
    }
    for (int i = 0; i < FOLDERS; i++)
        while (hd_store_checkpoint(rt[i], &error) == HD_BUSY) continue;
    fold_counts sum = folded_by(rt);
    print_message("%d slices, %d documents, %d times passed by\n", (int)sum.slices, (int)sum.things,
                  (int)sum.passed);
    assert_int_equal(sum.things, FOLDERS * ROUNDS * IN_ROUND);
    for (int i = 0; i < FOLDERS; i++) assert_int_equal(hd_close(rt[i]), HD_OK);
    assert_int_equal(hd_store_check(where.name, NULL, NULL, NULL, NULL), HD_OK);
    lab_place_remove(&where);
}

static void at_rest_a_document_is_folded_once(void **state) { fold_together(0); }

static void under_load_a_document_is_folded_once(void **state) { fold_together(128 << 10); }

/* ---- saying that a runtime lives */

static _Atomic uint64_t passed_ns;

static uint64_t passed(void *ctx) {
    (void)ctx;
    return UINT64_C(1000000000) + passed_ns;
}

/* Time passes with work. */
static void *allocate_slowly(void *block, size_t old_size, size_t size, void *ctx) {
    passed_ns += 200000;
    return hd_env_system().alloc(block, old_size, size, ctx);
}

static hd_runtime *open_with_tail(const char *name, const hd_env *env) {
    hd_options options = { .env = env };
    hd_error error = { 0 };
    hd_runtime *rt;
    if (hd_open(name, &options, &rt, &error)) fail_msg("%s", error.message);
    for (int round = 0; round < ROUNDS * 5; round++) {
        write_documents(rt, 0, round);
        if (round % 10 == 9) assert_int_equal(hd_runtime_sync(rt), HD_OK); /* a row of the log */
    }
    assert_int_equal(rt->r.authority->ops->stay(rt->r.authority), HD_OK);
    return rt;
}

/* A checkpoint that the program asks for may take longer than a runtime counts as alive without saying so. */
static void a_runtime_says_that_it_lives_during_a_long_checkpoint(void **state) {
    lab_store_place where;
    hd_env env = hd_env_system();
    if (!getenv("HD_POSTGRES")) skip();
    setenv("HD_STORE", "postgres", 1);
    lab_place_make(&where);
    env.monotonic_ns = passed;
    env.alloc = allocate_slowly;
    hd_runtime *rt = open_with_tail(where.name, &env);
    uint64_t before = passed_ns;
    assert_int_equal(hd_store_checkpoint(rt, NULL), HD_OK);
    assert_true(passed_ns - before > UINT64_C(3000000000));
    assert_true(rt->r.authority->ops->present_until(rt->r.authority) > passed(NULL));
    assert_int_equal(hd_close(rt), HD_OK);
    lab_place_remove(&where);
}

/* It says so once a second, which keeps it from folding at rest no more than anything else does. */
static void a_runtime_that_says_that_it_lives_folds_at_rest(void **state) {
    lab_store_place where;
    hd_env env = hd_env_system();
    if (!getenv("HD_POSTGRES")) skip();
    setenv("HD_STORE", "postgres", 1);
    lab_place_make(&where);
    hd_runtime *rt = open_with_tail(where.name, &env);
    for (int ms = 0; !log_authority_folds(rt->r.authority).things; ms += 10) {
        assert_true(ms < LONG_MS / 6);
        (void)poll(NULL, 0, 10);
    }
    assert_int_equal(hd_close(rt), HD_OK);
    lab_place_remove(&where);
}

/* The check learns the log as a writer would that opens the store: here one with rows that are not folded. */
static void a_log_that_is_not_folded_is_in_order(void **state) {
    lab_store_place where;
    hd_env env = hd_env_system();
    if (!getenv("HD_POSTGRES")) skip();
    setenv("HD_STORE", "postgres", 1);
    lab_place_make(&where);
    hd_runtime *rt = open_with_tail(where.name, &env);
    assert_int_equal(hd_store_check(where.name, NULL, NULL, NULL, NULL), HD_OK);
    assert_int_equal(hd_close(rt), HD_OK);
    lab_place_remove(&where);
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
    lab_store_place where;
    hd_env real = hd_env_system();
    if (!getenv("HD_POSTGRES")) skip();
    setenv("HD_STORE", "postgres", 1);
    lab_place_make(&where);
    assert_int_equal(live_once(where.name, &real), HD_OK);
    bool failed = true;
    for (uint64_t n = 1; failed; n += 1 + n / 40) {
        lab_env *world_ = lab_env_open();
        lab_env_fail_at(world_, n);
        hd_status status = live_once(where.name, lab_env_of(world_));
        failed = lab_env_failed(world_);
        if (!failed) assert_int_equal(status, HD_OK);
        lab_env_close(world_); /* complains about what was not freed */
    }
    assert_int_equal(live_once(where.name, &real), HD_OK);
    lab_place_remove(&where);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_that_never_come_are_a_lost_connection),
        cmocka_unit_test(a_lost_connection_is_noticed_while_listening),
        cmocka_unit_test(a_notification_behind_an_answer_is_heard),
        cmocka_unit_test(a_notification_within_an_answer_is_heard),
        cmocka_unit_test(a_server_may_refuse_to_listen),
        cmocka_unit_test(statements_of_a_commit_read_by_index),
        cmocka_unit_test(only_a_row_that_was_added_is_waited_for),
        cmocka_unit_test(commits_wait_for_the_disk_whatever_the_default_is),
        cmocka_unit_test(a_refused_append_brings_the_winners),
        cmocka_unit_test(a_statement_that_fails_at_first_can_be_sent_again),
        cmocka_unit_test(at_rest_a_document_is_folded_once),
        cmocka_unit_test(under_load_a_document_is_folded_once),
        cmocka_unit_test(a_runtime_says_that_it_lives_during_a_long_checkpoint),
        cmocka_unit_test(a_runtime_that_says_that_it_lives_folds_at_rest),
        cmocka_unit_test(a_log_that_is_not_folded_is_in_order),
        cmocka_unit_test(answers_are_told_at_once),
        cmocka_unit_test(the_last_row_is_told_when_a_runtime_closes),
        cmocka_unit_test(a_runtime_does_not_look_for_its_own_rows),
        cmocka_unit_test(new_rows_cost_a_reader_one_round_trip),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
