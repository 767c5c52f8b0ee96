/* test_unlucky.c -- programs that meet each other at the wrong moment, or meet limits of the system.
 *
 * Many processes create one file at once; no descriptor is left; the file is deleted or replaced while it is
 * open; closing fails. In each case there is an answer at once, and it is the right one. */
#define _GNU_SOURCE
#include "folder.h"
#include "lab.h"
#include "sqlite_world.h"
#include <heddle/event.h>
#include <heddle/store.h>

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

enum { ROUNDS = 60, PROGRAMS = 4 };

static int rounds(void) {
    const char *times = getenv("HD_ROUNDS");
    return times ? atoi(times) : ROUNDS;
}

#define remove_store folder_remove_store

static int enter_folder(void **state) { return folder_make(state) || chdir(folder); }
static int leave_folder(void **state) { return chdir("/") || folder_remove(state); }

/* ---- one file, several programs that create it */

/* Opens the file when the pipe is closed, writes something, and leaves; returns how that went. */
static int create_as_one_of_many(const char *name, int gate, int number) {
    char byte, cell[32];
    hd_runtime *rt;
    if (read(gate, &byte, 1) != 0) return HD_USAGE;
    hd_error error = { 0 };
    hd_status status = hd_open(name, NULL, &rt, &error);
    if (status) {
        fprintf(stderr, "%s: %s\n", hd_status_name(status), error.message);
        return (int)status;
    }
    snprintf(cell, sizeof cell, "main/n%d", number);
    status = hd_write_json(rt, hd_cell_at(rt, cell), "1");
    hd_status closed = hd_close(rt);
    return (int)(status ? status : closed);
}

static int create_at_once(const char *name) {
    int gate[2], failed = 0;
    pid_t programs[PROGRAMS];
    assert_int_equal(pipe(gate), 0);
    for (int i = 0; i < PROGRAMS; i++) {
        programs[i] = fork();
        assert_true(programs[i] >= 0);
        if (programs[i]) continue;
        close(gate[1]);
        _exit(create_as_one_of_many(name, gate[0], i));
    }
    close(gate[0]);
    close(gate[1]);
    for (int i = 0; i < PROGRAMS; i++) {
        int status;
        assert_int_equal(waitpid(programs[i], &status, 0), programs[i]);
        failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    return failed;
}

static void check_all_wrote(const char *name) {
    hd_runtime *rt;
    hd_pool *pool;
    assert_int_equal(hd_open(name, NULL, &rt, NULL), HD_OK);
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    for (int i = 0; i < PROGRAMS; i++) {
        char cell[32];
        snprintf(cell, sizeof cell, "main/n%d", i);
        assert_int_equal(hd_value_as_int(hd_read(rt, pool, hd_cell_at(rt, cell)), 0), 1);
    }
    hd_pool_close(pool);
    assert_int_equal(hd_close(rt), HD_OK);
}

static void programs_that_create_one_file_at_once_all_succeed(void **state) {
    for (int i = 0; i < rounds(); i++) {
        assert_int_equal(create_at_once("race.db"), 0);
        check_all_wrote("race.db");
        remove_store("race.db");
    }
}

static void programs_that_fill_one_empty_file_at_once_all_succeed(void **state) {
    for (int i = 0; i < rounds(); i++) {
        close(open("race.db", O_CREAT | O_WRONLY, 0600));
        assert_int_equal(create_at_once("race.db"), 0);
        check_all_wrote("race.db");
        remove_store("race.db");
    }
}

static void creating_leaves_nothing_but_the_file(void **state) {
    hd_runtime *rt;
    assert_int_equal(hd_open("only.db", NULL, &rt, NULL), HD_OK);
    assert_int_equal(hd_close(rt), HD_OK);
    assert_int_equal(system("test \"$(ls)\" = only.db"), 0);
    remove_store("only.db");
}

/* ---- no descriptor left */

static hd_status set_two(hd_tx *tx, void *ctx) {
    return hd_tx_set_int(tx, hd_cell_at(hd_tx_runtime(tx), "main/n"), 2);
}

/* Both ways to wait for a verdict. */
static hd_status write_and_wait(hd_runtime *rt, bool in_transact) {
    if (in_transact) return hd_transact(rt, set_two, NULL);
    hd_status status = hd_write_json(rt, hd_cell_at(rt, "main/n"), "1");
    return status ? status : hd_runtime_sync(rt);
}

/* With `free` descriptors left: opens, writes, waits for the verdict. Never hangs, and never spins. */
static hd_status use_with(const char *name, rlim_t free_ones, bool in_transact) {
    hd_runtime *rt;
    hd_error error = { 0 };
    int lowest = open("/dev/null", O_RDONLY);
    close(lowest);
    struct rlimit limit = { (rlim_t)lowest + free_ones, (rlim_t)lowest + free_ones };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    hd_status status = hd_open(name, NULL, &rt, &error);
    if (status) return strlen(error.message) ? status : HD_USAGE;
    status = write_and_wait(rt, in_transact);
    hd_status closed = hd_close(rt);
    return status ? status : closed;
}

static void expect_errors_until_enough(const char *name, bool in_transact) {
    bool enough = false;
    for (rlim_t n = 0; !enough; n++) {
        assert_true(n < 64);
        pid_t program = fork();
        assert_true(program >= 0);
        if (!program) {
            alarm(20); /* ends it where it waits for ever */
            _exit((int)use_with(name, n, in_transact));
        }
        int status;
        assert_int_equal(waitpid(program, &status, 0), program);
        assert_true(WIFEXITED(status));
        hd_status told = (hd_status)WEXITSTATUS(status);
        enough = told == HD_OK;
        if (!enough && told != HD_IO) fail_msg("with %d left: %s", (int)n, hd_status_name(told));
        if (strcmp(name, "few.db")) remove_store(name);
    }
}

static void without_descriptors_there_is_an_error_at_once(void **state) {
    hd_runtime *rt;
    assert_int_equal(hd_open("few.db", NULL, &rt, NULL), HD_OK);
    assert_int_equal(hd_close(rt), HD_OK);
    expect_errors_until_enough("few.db", false);
    expect_errors_until_enough("few.db", true);
    expect_errors_until_enough("new.db", false); /* it is to be made each time */
    remove_store("few.db");
}

/* ---- the file goes away */

static int verdicts;
static hd_status verdict;

static void tell_verdict(hd_status status, void *ctx) {
    verdicts++;
    verdict = status;
    hd_tx *tx;
    assert_int_equal(hd_tx_begin(ctx, &tx), HD_CLOSED); /* it must not try again for ever */
}

static void commit_one(hd_runtime *rt, hd_status expected) {
    hd_tx *tx;
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    assert_int_equal(hd_tx_set_int(tx, hd_cell_at(rt, "main/n"), 2), HD_OK);
    assert_int_equal(hd_tx_commit(tx, tell_verdict, rt), expected);
}

static void lose_file(void (*lose)(void)) {
    hd_runtime *rt;
    verdicts = 0;
    assert_int_equal(hd_open("lost.db", NULL, &rt, NULL), HD_OK);
    hd_write_json(rt, hd_cell_at(rt, "main/n"), "1");
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    lose();
    alarm(20);
    assert_int_equal(hd_runtime_run(rt), HD_NOT_FOUND); /* it waits, and is told */
    alarm(0);
    assert_non_null(strstr(hd_runtime_error(rt)->message, "deleted or replaced"));
    commit_one(rt, HD_NOT_FOUND);
    assert_int_equal(hd_close(rt), HD_NOT_FOUND);
    assert_int_equal(verdicts, 0); /* the commit itself has failed */
    remove_store("lost.db");
    remove_store("other.db");
}

static void delete_it(void) { unlink("lost.db"); }
static void move_it(void) { rename("lost.db", "other.db"); }
static void replace_it(void) {
    hd_runtime *rt;
    assert_int_equal(hd_open("other.db", NULL, &rt, NULL), HD_OK);
    assert_int_equal(hd_close(rt), HD_OK);
    assert_int_equal(rename("other.db", "lost.db"), 0);
}

static void a_file_that_is_deleted_is_missed(void **state) { lose_file(delete_it); }
static void delete_wal(void) { unlink("lost.db-wal"); }
static void replace_wal(void) {
    unlink("lost.db-wal");
    int fd = open("lost.db-wal", O_CREAT | O_WRONLY, 0644);
    assert_true(fd >= 0);
    close(fd);
}
/* What was acknowledged is copied into the file when the program closes it. */
static void a_wal_that_is_deleted_is_missed(void **state) { lose_file(delete_wal); }
static void a_wal_that_is_replaced_is_missed(void **state) { lose_file(replace_wal); }
static void a_file_that_is_moved_is_missed(void **state) { lose_file(move_it); }
static void a_file_that_is_replaced_is_missed(void **state) { lose_file(replace_it); }

/* The runtime is busy and hears of nothing: what is written is not acknowledged. */
static void what_is_written_after_that_is_not_acknowledged(void **state) {
    hd_runtime *rt;
    verdicts = 0;
    assert_int_equal(hd_open("lost.db", NULL, &rt, NULL), HD_OK);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    delete_it();
    commit_one(rt, HD_OK);
    assert_int_equal(hd_close(rt), HD_NOT_FOUND);
    assert_int_equal(verdicts, 1);
    assert_int_equal(verdict, HD_NO_VERDICT);
    remove_store("lost.db");
}

static void count_verdict(hd_status status, void *ctx) {
    (void)ctx;
    verdicts++;
    verdict = status;
}
static hd_status handle(hd_tx *tx, const hd_event *event, void *ctx) {
    (void)event;
    hd_status status = hd_tx_set_int(tx, hd_cell_at(hd_tx_runtime(tx), "main/n"), 3);
    return status ? status : hd_tx_after_commit(tx, count_verdict, ctx);
}
static void tell_outcome(const char *id, hd_status status, void *ctx) {
    (void)id;
    *(hd_status *)ctx = status;
}

/* A handler has run, and an event was posted, while another program keeps the file locked; whether that is in the store
 * is not known when the file is lost. HD_CLOSED would say that the handler has not run. */
static void events_without_a_verdict_are_told_so(void **state) {
    hd_runtime *rt;
    sqlite3 *other;
    hd_status outcome = HD_PENDING, posted = HD_PENDING;
    verdicts = 0;
    assert_int_equal(hd_open("lost.db", NULL, &rt, NULL), HD_OK);
    hd_cell stream = hd_cell_at(rt, "main/stream");
    hd_handler_spec spec = { .stream = stream, .fn = handle, .reads_nothing = true };
    assert_int_equal(hd_handler_register(rt, &spec, NULL), HD_OK);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    assert_int_equal(sqlite3_open("lost.db", &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "begin immediate", NULL, NULL, NULL), SQLITE_OK);
    hd_send_options send = { .done = tell_outcome, .ctx = &outcome };
    hd_send_options post = { .done = tell_outcome, .ctx = &posted };
    assert_int_equal(hd_event_send(rt, stream, hd_null(), &send), HD_OK);
    assert_int_equal(hd_event_post(rt, hd_cell_at(rt, "main/other"), hd_null(), &post, NULL),
                     HD_OK);
    assert_int_equal(hd_runtime_settle(rt), HD_OK);
    delete_it();
    assert_int_equal(hd_close(rt), HD_NOT_FOUND);
    sqlite3_close(other);
    assert_int_equal(outcome, HD_NO_VERDICT);
    assert_int_equal(posted, HD_NO_VERDICT);
    assert_int_equal(verdicts, 1);
    assert_int_equal(verdict, HD_NO_VERDICT);
    remove_store("lost.db");
}

/* ---- commits that are too large, together or alone */

typedef struct told_verdict {
    int times;
    hd_status status;
} told_verdict;

static void note_verdict(hd_status status, void *ctx) {
    told_verdict *t = ctx;
    t->times++;
    t->status = status;
}

static void commit_text(hd_runtime *rt, const char *cell, char c, size_t length, told_verdict *t) {
    hd_tx *tx;
    char *text = malloc(length);
    assert_non_null(text);
    memset(text, c, length);
    *t = (told_verdict){ 0, HD_PENDING };
    assert_int_equal(hd_tx_begin(rt, &tx), HD_OK);
    hd_value v = hd_string_n(hd_tx_pool(tx), text, length);
    assert_int_equal(hd_tx_set(tx, hd_cell_at(rt, cell), v), HD_OK);
    assert_int_equal(hd_tx_commit(tx, note_verdict, t), HD_OK);
    free(text);
}

/* Scales the sizes down: SQLite holds rows of a billion bytes, and on these connections of 8 MiB. */
static int lower_limit(sqlite3 *db, char **error, const struct sqlite3_api_routines *api) {
    (void)error, (void)api;
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 8 << 20);
    return SQLITE_OK;
}

static void with_small_rows(bool on) {
    void (*entry)(void) = (void (*)(void))lower_limit;
    if (on) assert_int_equal(sqlite3_auto_extension(entry), SQLITE_OK);
    else (void)sqlite3_cancel_auto_extension(entry);
}

static hd_runtime *open_large(void) {
    hd_runtime *rt;
    assert_int_equal(hd_open("large.db", NULL, &rt, NULL), HD_OK);
    return rt;
}

static void close_large(hd_runtime *rt) {
    assert_int_equal(hd_close(rt), HD_OK);
    assert_int_equal(hd_store_check("large.db", NULL, NULL, NULL, NULL), HD_OK);
    remove_store("large.db");
}

/* Together they are more than SQLite holds in a row: each is stored, in several rows of the log. */
static void queue_together(size_t bytes) {
    enum { COMMITS = 5 };
    told_verdict told[COMMITS];
    hd_runtime *rt = open_large();
    for (int i = 0; i < COMMITS; i++) {
        char cell[32];
        snprintf(cell, sizeof cell, "main/n%d", i);
        commit_text(rt, cell, 'x', bytes, &told[i]);
    }
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    for (int i = 0; i < COMMITS; i++) {
        assert_int_equal(told[i].times, 1);
        assert_int_equal(told[i].status, HD_OK);
    }
    close_large(rt);
}

static void large_commits_queued_together_are_all_stored(void **state) {
    with_small_rows(true);
    queue_together((size_t)3300 << 10);
    with_small_rows(false);
}

/* As text control characters are six times as long. */
static void commit_between(size_t bytes, hd_status expected) {
    told_verdict told[3];
    hd_runtime *rt = open_large();
    commit_text(rt, "main/before", 'x', 10, &told[0]);
    commit_text(rt, "main/poison", 1, bytes, &told[1]);
    commit_text(rt, "main/after", 'x', 10, &told[2]);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(told[i].times, 1);
    assert_int_equal(told[0].status, HD_OK);
    assert_int_equal(told[1].status, expected);
    assert_int_equal(told[2].status, HD_OK);
    close_large(rt);
}

static void a_commit_that_can_never_be_stored_is_refused_alone(void **state) {
    with_small_rows(true);
    commit_between(1230 << 10, HD_OK); /* what fits is not refused */
    commit_between(1300 << 10, HD_LIMIT);
    with_small_rows(false);
}

static void check_parts(hd_runtime *rt, int parts, size_t bytes) {
    hd_pool *pool;
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    hd_value all = hd_read(rt, pool, hd_cell_at(rt, "main/doc"));
    assert_int_equal(hd_value_count(all), parts);
    for (int i = 0; i < parts; i++) {
        char key[16];
        size_t length = 0;
        snprintf(key, sizeof key, "n%d", i);
        assert_non_null(hd_value_text(hd_value_at(all, key), &length));
        assert_int_equal(length, bytes);
    }
    hd_pool_close(pool);
}

static int64_t patched(void) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open_v2("large.db", &db, SQLITE_OPEN_READONLY, NULL), 0);
    int64_t n = db_number(db, "select sum(patched) from head");
    sqlite3_close(db);
    return n;
}

/* Each change fits into a row, the document does not: it is folded nevertheless, and found again. When it
 * has become short again it is one text. */
static void a_document_grows_beyond_what_a_row_holds(void **state) {
    enum { PARTS = 5, BYTES = 375 << 10 }; /* times six */
    told_verdict told;
    with_small_rows(true);
    hd_runtime *rt = open_large();
    for (int i = 0; i < PARTS; i++) {
        char cell[32];
        snprintf(cell, sizeof cell, "main/doc#/n%d", i);
        commit_text(rt, cell, 1, BYTES, &told);
        assert_int_equal(hd_runtime_sync(rt), HD_OK);
        assert_int_equal(told.status, HD_OK);
        if (i != 2) assert_int_equal(hd_store_checkpoint(rt, NULL), HD_OK);
    }
    assert_true(patched() > 0);
    assert_int_equal(hd_store_prune(rt, NULL), HD_OK);
    assert_int_equal(hd_close(rt), HD_OK);
    assert_int_equal(hd_store_check("large.db", NULL, NULL, NULL, NULL), HD_OK);
    rt = open_large();
    check_parts(rt, PARTS, BYTES);
    assert_int_equal(hd_write_json(rt, hd_cell_at(rt, "main/doc#/n0"), "1"), HD_OK);
    assert_int_equal(hd_write_json(rt, hd_cell_at(rt, "main/doc#/n1"), "1"), HD_OK);
    assert_int_equal(hd_store_checkpoint(rt, NULL), HD_OK);
    assert_int_equal(patched(), 0);
    with_small_rows(false);
    close_large(rt);
}

/* The sizes of the issue: some gigabytes of memory and a minute. */
static void at_full_size(void **state) {
    if (!getenv("HD_FULL_SIZE")) skip();
    queue_together((size_t)210 << 20);
    commit_between((size_t)180 << 20, HD_LIMIT);
}

/* ---- programs with different limits */

static void deep_json(char *out, int depth) {
    for (int i = 0; i < depth; i++) *out++ = '[';
    for (int i = 0; i < depth; i++) *out++ = ']';
    *out = 0;
}

static hd_runtime *open_with_depth(uint32_t depth) {
    hd_runtime *rt;
    hd_options options = { .limits = { .depth = depth } };
    assert_int_equal(hd_open("deep.db", &options, &rt, NULL), HD_OK);
    return rt;
}

/* One program may write what another may not: the other goes on, and reads it. */
static void programs_with_different_limits_share_a_file(void **state) {
    char json[4096];
    for (int fold = 0; fold < 2; fold++) {
        hd_runtime *narrow = open_with_depth(8), *wide = open_with_depth(1000);
        deep_json(json, 900);
        assert_int_equal(hd_write_json(wide, hd_cell_at(wide, "main/deep"), json), HD_OK);
        assert_int_equal(hd_write_json(wide, hd_cell_at(wide, "main/flat#/a/b"), json), HD_OK);
        assert_int_equal(hd_runtime_sync(wide), HD_OK);
        if (fold) assert_int_equal(hd_store_checkpoint(wide, NULL), HD_OK);
        assert_int_equal(hd_write_json(narrow, hd_cell_at(narrow, "main/flat#/c"), "1"), HD_OK);
        deep_json(json, 9);
        assert_int_equal(hd_write_json(narrow, hd_cell_at(narrow, "main/own"), json), HD_LIMIT);
        deep_json(json, 7);
        assert_int_equal(hd_write_json(narrow, hd_cell_at(narrow, "main/own#/a/b"), json),
                         HD_LIMIT);
        assert_int_equal(hd_write_json(narrow, hd_cell_at(narrow, "main/own#/a"), json), HD_OK);
        assert_int_equal(hd_runtime_sync(narrow), HD_OK);
        hd_pool *pool;
        assert_int_equal(hd_pool_open(hd_runtime_heap(narrow), &pool), HD_OK);
        hd_value flat = hd_read(narrow, pool, hd_cell_at(narrow, "main/flat"));
        assert_int_equal(hd_value_as_int(hd_value_at(flat, "c"), 0), 1);
        assert_true(hd_value_exists(hd_value_at(hd_value_at(flat, "a"), "b")));
        assert_true(hd_value_exists(hd_read(narrow, pool, hd_cell_at(narrow, "main/deep"))));
        hd_pool_close(pool);
        assert_int_equal(hd_close(wide), HD_OK);
        assert_int_equal(hd_close(narrow), HD_OK);
        narrow = open_with_depth(8);
        assert_int_equal(hd_store_checkpoint(narrow, NULL), HD_OK);
        assert_int_equal(hd_close(narrow), HD_OK);
        hd_options options = { .limits = { .depth = 8 } };
        assert_int_equal(hd_store_check("deep.db", &options, NULL, NULL, NULL), HD_OK);
        remove_store("deep.db");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(creating_leaves_nothing_but_the_file),
        cmocka_unit_test(programs_that_create_one_file_at_once_all_succeed),
        cmocka_unit_test(programs_that_fill_one_empty_file_at_once_all_succeed),
        cmocka_unit_test(without_descriptors_there_is_an_error_at_once),
        cmocka_unit_test(a_file_that_is_deleted_is_missed),
        cmocka_unit_test(a_file_that_is_moved_is_missed),
        cmocka_unit_test(a_file_that_is_replaced_is_missed),
        cmocka_unit_test(a_wal_that_is_deleted_is_missed),
        cmocka_unit_test(a_wal_that_is_replaced_is_missed),
        cmocka_unit_test(what_is_written_after_that_is_not_acknowledged),
        cmocka_unit_test(events_without_a_verdict_are_told_so),
        cmocka_unit_test(large_commits_queued_together_are_all_stored),
        cmocka_unit_test(a_commit_that_can_never_be_stored_is_refused_alone),
        cmocka_unit_test(a_document_grows_beyond_what_a_row_holds),
        cmocka_unit_test(at_full_size),
        cmocka_unit_test(programs_with_different_limits_share_a_file),
    };
    return cmocka_run_group_tests_name("unlucky", tests, enter_folder, leave_folder);
}
