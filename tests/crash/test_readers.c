/* test_readers.c -- programs that read one file while another writes: they rest, follow, lag behind,
 * hang, come and go. The file and its WAL stay as small as what is in them, and nobody misses anything.
 *
 * HD_READER_STEPS: how many steps the random world takes. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "disk_world.h"
#include "lab.h"
#include "sqlite_world.h"
#include "times.h"
#include <heddle/store.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#define FILE_NAME "readers.db"
#define MB        (UINT64_C(1) << 20)
#define WAL_MAX   (17 * MB) /* cut to 16 when it starts anew */

static hd_runtime *open_as(const hd_env *env) {
    hd_options options = { .vfs = lab_disk_vfs(disk), .env = env };
    hd_runtime *rt;
    hd_error error;
    if (hd_open(FILE_NAME, &options, &rt, &error)) fail_msg("open: %s", error.message);
    return rt;
}

/* Looks at the file: without a file system that tells of changes it does so from time to time. */
static void look(lab_env *world, hd_runtime *rt) {
    lab_env_advance_ms(world, 300);
    assert_int_equal(hd_runtime_pump(rt), HD_OK);
}

static uint64_t wal_size(void) { return lab_disk_size(disk, FILE_NAME "-wal"); }

static int64_t number_in_file(const char *sql) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open_v2(FILE_NAME, &db, SQLITE_OPEN_READONLY, lab_disk_vfs(disk)), 0);
    int64_t n = db_number(db, sql);
    sqlite3_close(db);
    return n;
}

static void write_text(hd_runtime *rt, const char *cell, size_t size) {
    static char json[70000];
    static char filler = 'a';
    assert_true(size < sizeof json - 2);
    filler = filler == 'z' ? 'a' : (char)(filler + 1); /* the same again would be no change */
    memset(json, filler, size);
    json[0] = json[size - 1] = '"';
    json[size] = '\0';
    assert_int_equal(hd_write_json(rt, hd_cell_at(rt, cell), json), HD_OK);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
}

static int64_t read_number(hd_runtime *rt, const char *cell) {
    hd_pool *pool;
    assert_int_equal(hd_pool_open(hd_runtime_heap(rt), &pool), HD_OK);
    int64_t n = hd_value_as_int(hd_read(rt, pool, hd_cell_at(rt, cell)), -1);
    hd_pool_close(pool);
    return n;
}

static void commit_number(hd_runtime *rt, int64_t n) {
    char json[24], cell[32];
    snprintf(json, sizeof json, "%lld", (long long)n);
    snprintf(cell, sizeof cell, "main/d%lld", (long long)(n % 50));
    assert_int_equal(hd_write_json(rt, hd_cell_at(rt, cell), json), HD_OK);
    assert_int_equal(hd_write_json(rt, hd_cell_at(rt, "main/last"), json), HD_OK);
    assert_int_equal(hd_runtime_sync(rt), HD_OK);
}

/* ---- At rest (DECISIONS/0017, issue: "nobody holds a read transaction while at rest") ------------- */

static void the_wal_starts_anew_beside_a_program_that_rests(void **state) {
    lab_env *world = lab_env_open();
    hd_runtime *writer = open_as(NULL), *idle = open_as(lab_env_of(world));
    commit_number(writer, 1);
    look(world, idle);
    assert_int_equal(read_number(idle, "main/last"), 1);
    assert_int_equal(hd_runtime_deadline(idle), 0); /* it read: the next pump ends the snapshot */
    assert_int_equal(hd_runtime_pump(idle), HD_OK);
    for (int64_t n = 2; n < 6000; n++) commit_number(writer, n);
    assert_true(wal_size() <= WAL_MAX);
    look(world, idle);
    assert_int_equal(read_number(idle, "main/last"), 5999);
    hd_close(idle);
    hd_close(writer);
    lab_env_close(world);
}

/* Another program begins a long transaction: until it ends, the WAL cannot start anew. */
static sqlite3 *begin_snapshot(void) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open_v2(FILE_NAME, &db, SQLITE_OPEN_READWRITE, lab_disk_vfs(disk)), 0);
    assert_int_equal(db_run(db, "begin; select count(*) from meta"), 0);
    return db;
}

static void grow_wal(hd_runtime *writer, uint64_t until) {
    while (wal_size() <= until) write_text(writer, "main/big", 60000);
}

/* The sync of a commit that makes the WAL longer takes longer. So the store lengthens the WAL ahead of the commits,
 * also after SQLite has cut it. */
static void a_wal_that_was_cut_is_lengthened_ahead_again(void **state) {
    hd_runtime *writer = open_as(NULL);
    write_text(writer, "main/big", 60000);
    sqlite3 *reader = begin_snapshot();
    grow_wal(writer, 24 * MB);
    sqlite3_close(reader);
    while (wal_size() > WAL_MAX) write_text(writer, "main/big", 60000);
    reader = begin_snapshot();
    grow_wal(writer, WAL_MAX);
    uint32_t grown = 0, commits = 64;
    for (uint32_t i = 0; i < commits; i++) {
        uint64_t before = wal_size();
        write_text(writer, "main/small", 2000);
        grown += wal_size() != before;
    }
    assert_true(grown < commits / 2);
    sqlite3_close(reader);
    hd_close(writer);
}

static void a_transaction_holds_its_snapshot_only_while_it_is_open(void **state) {
    lab_env *world = lab_env_open();
    hd_runtime *writer = open_as(NULL), *reader = open_as(lab_env_of(world));
    commit_number(writer, 1);
    look(world, reader);
    hd_tx *tx;
    assert_int_equal(hd_tx_begin_read(reader, &tx), HD_OK);
    assert_int_equal(hd_value_as_int(hd_tx_get(tx, hd_cell_at(reader, "main/last")), -1), 1);
    assert_int_equal(hd_runtime_deadline(reader), 0);
    hd_tx_abort(tx);
    assert_true(hd_runtime_deadline(reader) > 0);
    for (int64_t n = 2; n < 6000; n++) commit_number(writer, n);
    assert_true(wal_size() <= WAL_MAX);
    hd_close(reader);
    hd_close(writer);
    lab_env_close(world);
}

static void the_wal_starts_anew_beside_one_that_follows(void **state) {
    lab_env *world = lab_env_open();
    hd_runtime *writer = open_as(NULL), *follower = open_as(lab_env_of(world));
    assert_int_equal(hd_runtime_follow(follower, "main"), HD_OK);
    for (int64_t n = 1; n < 6000; n++) {
        commit_number(writer, n);
        look(world, follower);
    }
    assert_true(wal_size() <= WAL_MAX);
    hd_close(follower);
    hd_close(writer);
    lab_env_close(world);
}

/* ---- Positions ------------------------------------------------------------------------------------ */

static const char position_sql[] = "select min(position) from reader";

/* The writer's thread moves the row when it has the time. */
static void wait_for_position(int64_t row) {
    while (number_in_file(position_sql) < row) sched_yield();
}

static void a_follower_that_only_follows_lets_others_prune(void **state) {
    lab_env *world = lab_env_open();
    hd_runtime *writer = open_as(NULL), *follower = open_as(lab_env_of(world));
    assert_int_equal(hd_runtime_follow(follower, "main"), HD_OK);
    for (int64_t n = 1; n <= 50; n++) commit_number(writer, n);
    lab_env_advance_ms(world, 6000); /* it looks */
    assert_int_equal(hd_runtime_pump(follower), HD_OK);
    lab_env_advance_ms(world, 2000);
    assert_int_equal(hd_runtime_pump(follower), HD_OK);
    int64_t last = number_in_file("select max(row) from log");
    wait_for_position(last);
    assert_int_equal(hd_store_prune(writer, NULL), HD_OK);
    assert_int_equal(number_in_file("select count(*) from log"), 0);
    hd_close(follower);
    hd_close(writer);
    lab_env_close(world);
}

static void a_position_is_written_without_waiting_for_the_disk(void **state) {
    lab_env *world = lab_env_open();
    hd_runtime *writer = open_as(NULL), *follower = open_as(lab_env_of(world));
    assert_int_equal(hd_runtime_follow(follower, "main"), HD_OK);
    commit_number(writer, 1);
    uint64_t syncs = lab_disk_calls(disk, LAB_OP_SYNC);
    for (int i = 0; i < 3; i++) {
        lab_env_advance_ms(world, 6000);
        assert_int_equal(hd_runtime_pump(follower), HD_OK);
    }
    wait_for_position(number_in_file("select max(row) from log"));
    assert_int_equal(lab_disk_calls(disk, LAB_OP_SYNC), syncs);
    hd_close(follower);
    hd_close(writer);
    lab_env_close(world);
}

static int64_t log_bytes(void) { return number_in_file("select sum(length(body)) from log"); }

static void a_reader_that_hangs_is_overtaken_and_reads_anew(void **state) {
    lab_env *world = lab_env_open();
    hd_runtime *writer = open_as(NULL), *stuck = open_as(lab_env_of(world));
    assert_int_equal(hd_runtime_follow(stuck, "main"), HD_OK);
    commit_number(writer, 1);
    look(world, stuck);
    for (int i = 0; i < 500; i++) write_text(writer, "main/text", 60000);
    commit_number(writer, 2);
    assert_int_equal(hd_store_prune(writer, NULL), HD_OK);
    assert_true(log_bytes() < (int64_t)(17 * MB)); /* 16 of them for the one that hangs */
    assert_true(log_bytes() > (int64_t)(15 * MB));
    look(world, stuck);
    assert_int_equal(read_number(stuck, "main/last"), 2);
    hd_close(stuck);
    hd_close(writer);
    lab_env_close(world);
    assert_int_equal(number_in_file("select count(*) from reader"), 0);
}

/* What a close of a reader costs does not depend on what others have written since. */
static void a_reader_closes_without_reading_what_others_wrote(void **state) {
    lab_env *world = lab_env_open();
    hd_runtime *writer = open_as(NULL), *follower = open_as(lab_env_of(world));
    assert_int_equal(hd_runtime_follow(follower, "main"), HD_OK);
    for (int i = 0; i < 200; i++) write_text(writer, "main/text", 60000);
    assert_int_equal(hd_store_checkpoint(writer, NULL),
                     HD_OK); /* its thread has nothing left to read */
    lab_env_advance_ms(world, 6000);
    assert_int_equal(hd_runtime_pump(follower), HD_OK);
    uint64_t reads = lab_disk_calls(disk, LAB_OP_READ);
    hd_close(follower);
    assert_true(lab_disk_calls(disk, LAB_OP_READ) - reads < 200);
    hd_close(writer);
    lab_env_close(world);
}

/* ---- Any of it ------------------------------------------------------------------------------------- */

enum { READERS = 3 };

typedef struct crowd {
    lab_env *world;
    lab_random random;
    hd_runtime *writer, *readers[READERS];
    hd_tx *open[READERS]; /* a reader in the middle of a transaction */
    int64_t last;

} crowd;

static void reader_opens_or_closes(crowd *c, uint32_t i) {
    if (c->open[i]) return;
    if (c->readers[i]) {
        hd_close(c->readers[i]);
        c->readers[i] = NULL;
        return;
    }
    c->readers[i] = open_as(lab_env_of(c->world));
    if (i) assert_int_equal(hd_runtime_follow(c->readers[i], "main"), HD_OK);
}

static void reader_begins_or_ends(crowd *c, uint32_t i) {
    if (!c->readers[i]) return;
    if (c->open[i]) {
        hd_tx_abort(c->open[i]);
        c->open[i] = NULL;
        return;
    }
    assert_int_equal(hd_tx_begin_read(c->readers[i], &c->open[i]), HD_OK);
    char cell[32];
    snprintf(cell, sizeof cell, "main/d%d", (int)lab_random_below(&c->random, 50));
    (void)hd_tx_get(c->open[i], hd_cell_at(c->readers[i], cell));
}

static void reader_pumps(crowd *c, uint32_t i) {
    if (c->readers[i] && !c->open[i]) assert_int_equal(hd_runtime_pump(c->readers[i]), HD_OK);
}

/* Every reader has heard of everything, and rests. */
static void all_catch_up(crowd *c) {
    for (uint32_t i = 0; i < READERS; i++) {
        if (c->open[i]) reader_begins_or_ends(c, i);
        if (!c->readers[i]) continue;
        lab_env_advance_ms(c->world, 6000);
        while (read_number(c->readers[i], "main/last") != c->last) {
            reader_pumps(c, i);
            lab_env_advance_ms(c->world, 100);
        }
        reader_pumps(c, i);
    }
}

static void writer_commits(crowd *c) {
    uint64_t n = 1 + lab_random_below(&c->random, 40);
    for (uint64_t i = 0; i < n; i++) commit_number(c->writer, ++c->last);
    if (lab_random_once_in(&c->random, 4)) write_text(c->writer, "main/text", 60000);
}

static void step(crowd *c) {
    uint32_t i = (uint32_t)lab_random_below(&c->random, READERS);
    switch (lab_random_below(&c->random, 12)) {
    case 0: reader_opens_or_closes(c, i); break;
    case 1: reader_begins_or_ends(c, i); break;
    case 2: lab_env_advance_ms(c->world, lab_random_below(&c->random, 3000)); break;
    case 3: assert_int_equal(hd_store_prune(c->writer, NULL), HD_OK); break;
    case 4: all_catch_up(c); break;
    case 5:
    case 6:
    case 7: reader_pumps(c, i); break;
    default: writer_commits(c);
    }
}

static void report_finding(const char *finding, void *ctx) {
    (void)ctx;
    fprintf(stderr, "finding: %s\n", finding);
}

/* With everybody at rest the WAL starts anew before long, however long it has become. */
static void check_sizes(crowd *c) {
    for (int i = 0; i < 1200; i++) commit_number(c->writer, ++c->last);
    assert_int_equal(hd_store_prune(c->writer, NULL), HD_OK);
    for (int i = 0; i < 1200; i++) commit_number(c->writer, ++c->last);
    assert_true(wal_size() <= WAL_MAX);
    assert_true(log_bytes() <= (int64_t)(17 * MB));
}

static void readers_come_and_go_and_nothing_grows(void **state) {
    lab_env *world = lab_env_open();
    crowd c = { .world = world, .random = lab_random_of(lab_seed()), .writer = open_as(NULL) };
    commit_number(c.writer, ++c.last);
    uint64_t steps = lab_times("HD_READER_STEPS", LAB_SLOW ? 300 : 1500);
    for (uint64_t i = 0; i < steps; i++) step(&c);
    all_catch_up(&c);
    check_sizes(&c);
    all_catch_up(&c);
    for (uint32_t i = 0; i < READERS; i++) hd_close(c.readers[i]);
    hd_close(c.writer);
    hd_options options = { .vfs = lab_disk_vfs(disk) };
    hd_error error;
    if (hd_store_check(FILE_NAME, &options, report_finding, NULL, &error))
        fail_msg("check: %s", error.message);
    assert_int_equal(number_in_file("select count(*) from reader"), 0);
    lab_env_close(world);
}

#define WITH_DISK(test) cmocka_unit_test_setup_teardown(test, new_disk, free_disk)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DISK(the_wal_starts_anew_beside_a_program_that_rests),
        WITH_DISK(a_wal_that_was_cut_is_lengthened_ahead_again),
        WITH_DISK(a_transaction_holds_its_snapshot_only_while_it_is_open),
        WITH_DISK(the_wal_starts_anew_beside_one_that_follows),
        WITH_DISK(a_follower_that_only_follows_lets_others_prune),
        WITH_DISK(a_position_is_written_without_waiting_for_the_disk),
        WITH_DISK(a_reader_that_hangs_is_overtaken_and_reads_anew),
        WITH_DISK(a_reader_closes_without_reading_what_others_wrote),
        WITH_DISK(readers_come_and_go_and_nothing_grows),
    };
    return cmocka_run_group_tests_name("readers", tests, NULL, NULL);
}
