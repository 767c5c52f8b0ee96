/* test_vfs.c -- does the lab disk lose what it should, and nothing else?
 *
 * The workloads are plain SQLite, whose promises are known: in WAL mode with FULL every
 * acknowledged transaction survives a power loss at any point. A disk that is too kind would show
 * no losses where SQLite makes no promise (OFF, acknowledged too early); one that is too cruel
 * would break the promise. Both sides are tested. */
#include "lab.h"
#include "sqlite_world.h"
#include "vfs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DB "test.db"

/* ---- a workload that can be judged afterwards ---- */

static sqlite3 *db_open(lab_disk *disk) {
    sqlite3 *db = NULL;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    assert_int_equal(sqlite3_open_v2(DB, &db, flags, lab_disk_vfs(disk)), SQLITE_OK);
    sqlite3_busy_timeout(db, 60000);
    return db;
}

static void db_must(sqlite3 *db, const char *sql) {
    char *message = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &message) == SQLITE_OK) return;
    print_error("%s: %s\n", sql, message);
    fail();
}

typedef struct {
    const char *setup; /* pragmas */
    int commits;
    bool ack_early; /* before COMMIT instead of after */
    uint32_t sector_size;
} workload;

/* Checkpoints come every few commits, so that crashes meet all phases of the WAL's life. */
static const char *const full = "pragma journal_mode=wal; pragma synchronous=full;"
                                "pragma wal_autocheckpoint=25";

static const char *const schema =
    "begin; create table if not exists log(k integer primary key, body);"
    "create table if not exists head(id integer primary key, k);"
    "commit";

/* Transaction k appends row k, brings `head` to k and makes the pages move about. */
static int commit_one(sqlite3 *db, int k, lab_disk *ack_early_to) {
    char sql[512];
    snprintf(sql, sizeof sql,
             "begin immediate; insert into log values(%d, randomblob(%d));"
             "update log set body = randomblob(%d) where k = %d;"
             "insert or replace into head values(1, %d)",
             k, 100 + k * 37 % 3000, 50 + k * 91 % 2000, k / 2, k);
    int rc = db_run(db, sql);
    if (!rc && ack_early_to) lab_disk_mark(ack_early_to, (uint64_t)k);
    if (!rc) rc = db_run(db, "commit");
    if (rc) db_run(db, "rollback");
    return rc;
}

static lab_recording *record(const workload *w) {
    lab_sqlite_seed(7);
    lab_disk *disk = lab_disk_new(&(lab_disk_options){ .sector_size = w->sector_size });
    lab_disk_record(disk);
    sqlite3 *db = db_open(disk);
    db_must(db, w->setup);
    db_must(db, schema);
    for (int k = 1; k <= w->commits; k++) {
        assert_int_equal(commit_one(db, k, w->ack_early ? disk : NULL), SQLITE_OK);
        if (!w->ack_early) lab_disk_mark(disk, (uint64_t)k);
    }
    sqlite3_close(db);
    lab_recording *rec = lab_disk_recorded(disk);
    lab_disk_free(disk);
    return rec;
}

typedef enum { SOUND, LOST, BROKEN } verdict;

/* Sound: intact, the transactions 1 to m whole, and m at least what was acknowledged. */
static verdict judge_db(sqlite3 *db, int64_t acked) {
    if (!db_intact(db)) return BROKEN;
    if (db_number(db, "select count(*) from sqlite_schema") == 0) return acked ? LOST : SOUND;
    if (db_number(db, "select count(*) from sqlite_schema") != 2) return BROKEN;
    int64_t last = db_number(db, "select coalesce(max(k), 0) from log");
    if (db_number(db, "select count(*) from log") != last) return BROKEN;
    if (db_number(db, "select coalesce(max(k), 0) from head") != last) return BROKEN;
    return last < acked ? LOST : SOUND;
}

static verdict judge(lab_disk *disk, int64_t acked) {
    sqlite3 *db = db_open(disk);
    verdict v = judge_db(db, acked);
    if (v == SOUND && db_run(db, "create table later(x)") != SQLITE_OK) v = BROKEN;
    sqlite3_close(db);
    return v;
}

static int64_t acked_before(const lab_recording *rec, size_t n) {
    size_t count;
    const uint64_t *marks = lab_recording_marks(rec, n, &count);
    return count ? (int64_t)marks[count - 1] : 0;
}

typedef struct {
    size_t cycles, lost, broken;
} tally;

static void show_first_failure(const tally *t, const lab_recording *rec, size_t n, uint64_t seed) {
    char last[80] = "nothing";
    if (n) lab_recording_describe(rec, n - 1, last, sizeof last);
    if (t->lost + t->broken == 1)
        print_message("    first: n=%zu (after %s) seed=%llu\n", n, last, (unsigned long long)seed);
}

/* Power fails after every single operation, `seeds` times each. */
static tally crash_everywhere(const workload *w, uint64_t seeds) {
    tally t = { 0 };
    lab_recording *rec = record(w);
    uint64_t seed = lab_seed();
    for (size_t n = 0; n <= lab_recording_count(rec); n++) {
        for (uint64_t i = 0; i < seeds; i++, seed++) {
            lab_disk *disk = lab_disk_at(rec, n, seed);
            verdict v = judge(disk, acked_before(rec, n));
            lab_disk_free(disk);
            t.cycles++;
            t.lost += v == LOST;
            t.broken += v == BROKEN;
            if (v != SOUND) show_first_failure(&t, rec, n, seed);
        }
    }
    lab_recording_free(rec);
    print_message("    %zu power losses: %zu lost, %zu broken\n", t.cycles, t.lost, t.broken);
    return t;
}

/* ---- power loss under SQLite ---- */

static void wal_full_keeps_every_acknowledged_commit(void **state) {
    tally t = crash_everywhere(&(workload){ .setup = full, .commits = 60 }, 6);
    assert_int_equal(t.lost, 0);
    assert_int_equal(t.broken, 0);
}

/* Pages are torn between their sectors. */
static void wal_full_keeps_them_on_small_sectors_too(void **state) {
    tally t = crash_everywhere(&(workload){ .setup = full, .commits = 30, .sector_size = 512 }, 4);
    assert_int_equal(t.lost, 0);
    assert_int_equal(t.broken, 0);
}

static void wal_normal_loses_commits_but_breaks_nothing(void **state) {
    const char *setup = "pragma journal_mode=wal; pragma synchronous=normal;"
                        "pragma wal_autocheckpoint=25";
    tally t = crash_everywhere(&(workload){ .setup = setup, .commits = 40 }, 3);
    assert_true(t.lost > 0);
    assert_int_equal(t.broken, 0);
}

/* The directory must be synced too, which SQLite does for EXTRA only. */
static void rollback_journal_extra_keeps_every_acknowledged_commit(void **state) {
    tally t =
        crash_everywhere(&(workload){ .setup = "pragma synchronous=extra", .commits = 25 }, 3);
    assert_int_equal(t.lost, 0);
    assert_int_equal(t.broken, 0);
}

static void rollback_journal_full_can_lose_the_deletion_of_its_journal(void **state) {
    tally t = crash_everywhere(&(workload){ .setup = "pragma synchronous=full", .commits = 25 }, 3);
    assert_true(t.lost > 0);
    assert_int_equal(t.broken, 0);
}

/* Negative control: a disk that kept unsynced writes would pass. */
static void without_syncs_commits_are_lost_and_files_break(void **state) {
    const char *setup = "pragma journal_mode=wal; pragma synchronous=off;"
                        "pragma wal_autocheckpoint=25";
    tally t = crash_everywhere(&(workload){ .setup = setup, .commits = 40 }, 3);
    assert_true(t.lost > 0);
    assert_true(t.broken > 0);
}

/* Negative control: the check would notice a store that acknowledges what is not yet durable. */
static void acknowledging_before_commit_is_caught(void **state) {
    tally t = crash_everywhere(&(workload){ .setup = full, .commits = 20, .ack_early = true }, 2);
    assert_true(t.lost > 0);
    assert_int_equal(t.broken, 0);
}

/* Power fails again and again while recovering. */
static void recovery_survives_power_loss_too(void **state) {
    lab_recording *rec = record(&(workload){ .setup = full, .commits = 40 });
    lab_random random = lab_random_of(lab_seed());
    for (int i = 0; i < 60; i++) {
        size_t n = (size_t)lab_random_below(&random, lab_recording_count(rec) + 1);
        lab_disk *disk = lab_disk_at(rec, n, lab_random_u64(&random));
        lab_disk_record(disk);
        assert_int_equal(judge(disk, acked_before(rec, n)), SOUND);
        lab_recording *recovery = lab_disk_recorded(disk);
        lab_disk_free(disk);
        for (size_t m = 0; m <= lab_recording_count(recovery); m++) {
            disk = lab_disk_at(recovery, m, lab_random_u64(&random));
            sqlite3 *db = db_open(disk);
            db_run(db, "drop table if exists later");
            assert_int_equal(judge_db(db, acked_before(rec, n)), SOUND);
            sqlite3_close(db);
            lab_disk_free(disk);
        }
        lab_recording_free(recovery);
    }
    lab_recording_free(rec);
}

/* ---- the disk itself ---- */

static void *file_bytes(lab_disk *disk, const char *name, size_t *size) {
    *size = (size_t)lab_disk_size(disk, name);
    void *bytes = malloc(*size + 1);
    assert_int_equal(lab_disk_read(disk, name, 0, bytes, *size), *size);
    return bytes;
}

static bool same_file(lab_disk *a, lab_disk *b, const char *name) {
    size_t a_size, b_size;
    void *a_bytes = file_bytes(a, name, &a_size), *b_bytes = file_bytes(b, name, &b_size);
    bool same = lab_disk_exists(a, name) == lab_disk_exists(b, name) && a_size == b_size &&
                memcmp(a_bytes, b_bytes, a_size) == 0;
    free(a_bytes);
    free(b_bytes);
    return same;
}

static bool same_disk(lab_disk *a, lab_disk *b) {
    return same_file(a, b, DB) && same_file(a, b, DB "-wal") && same_file(a, b, DB "-journal");
}

static void the_same_seed_gives_the_same_disk(void **state) {
    lab_recording *rec = record(&(workload){ .setup = full, .commits = 30 });
    size_t differing = 0;
    for (size_t n = 0; n <= lab_recording_count(rec); n += 3) {
        lab_disk *a = lab_disk_at(rec, n, n), *b = lab_disk_at(rec, n, n);
        lab_disk *other = lab_disk_at(rec, n, n + 1000);
        assert_true(same_disk(a, b));
        differing += !same_disk(a, other);
        lab_disk_free(a);
        lab_disk_free(b);
        lab_disk_free(other);
    }
    assert_true(differing > 0);
    lab_recording_free(rec);
}

static void a_seeded_workload_writes_the_same_bytes(void **state) {
    lab_recording *a = record(&(workload){ .setup = full, .commits = 20 });
    lab_recording *b = record(&(workload){ .setup = full, .commits = 20 });
    size_t n = lab_recording_count(a);
    assert_int_equal(lab_recording_count(b), n);
    lab_disk *after_a = lab_disk_at(a, n / 2, 1), *after_b = lab_disk_at(b, n / 2, 1);
    assert_true(same_disk(after_a, after_b));
    lab_disk_free(after_a);
    lab_disk_free(after_b);
    lab_recording_free(a);
    lab_recording_free(b);
}

/* A recording replayed, over keyframes, must not drift from the disk it was made on. */
static void a_recording_crashes_like_the_disk_it_was_made_on(void **state) {
    for (int commits = 1; commits < 60; commits += 7) {
        lab_disk *disk = lab_disk_new(NULL);
        lab_disk_record(disk);
        sqlite3 *db = db_open(disk);
        db_must(db, "pragma journal_mode=wal; pragma synchronous=off;"
                    "pragma wal_autocheckpoint=25");
        db_must(db, schema);
        for (int k = 1; k <= commits; k++) assert_int_equal(commit_one(db, k, NULL), SQLITE_OK);
        lab_recording *rec = lab_disk_recorded(disk);

        for (uint64_t seed = 0; seed < 20; seed++) {
            lab_disk *replayed = lab_disk_at(rec, lab_recording_count(rec), seed);
            lab_disk *live = lab_disk_clone(disk);
            lab_disk_crash(live, seed);
            assert_true(same_disk(replayed, live));
            lab_disk_free(live);
            lab_disk_free(replayed);
        }
        sqlite3_close(db);
        lab_disk_free(disk);
        lab_recording_free(rec);
    }
}

static void marks_before_an_operation_are_a_prefix(void **state) {
    lab_disk *disk = lab_disk_new(NULL);
    lab_disk_mark(disk, 99); /* not recording: ignored */
    lab_disk_record(disk);
    lab_disk_mark(disk, 5);
    lab_disk_write(disk, "f", 0, "abc", 3); /* create, write, sync, sync directory */
    lab_disk_mark(disk, 6);
    lab_recording *rec = lab_disk_recorded(disk);

    size_t count;
    assert_int_equal(lab_recording_count(rec), 6);
    lab_recording_marks(rec, 0, &count);
    assert_int_equal(count, 0);
    lab_recording_marks(rec, 5, &count);
    assert_int_equal(count, 1);
    const uint64_t *marks = lab_recording_marks(rec, 6, &count);
    assert_int_equal(count, 2);
    assert_int_equal(marks[0], 5);
    assert_int_equal(marks[1], 6);

    char text[80];
    lab_recording_describe(rec, 2, text, sizeof text);
    assert_string_equal(text, "write f 0+3");
    lab_recording_free(rec);
    lab_disk_free(disk);
}

static void a_clone_goes_its_own_way(void **state) {
    lab_disk *disk = lab_disk_new(NULL);
    sqlite3 *db = db_open(disk);
    db_must(db, full);
    db_must(db, schema);
    assert_int_equal(commit_one(db, 1, NULL), SQLITE_OK);
    lab_disk *clone = lab_disk_clone(disk);
    assert_int_equal(commit_one(db, 2, NULL), SQLITE_OK);

    sqlite3 *other = db_open(clone);
    assert_int_equal(db_number(db, "select max(k) from log"), 2);
    assert_int_equal(db_number(other, "select max(k) from log"), 1);
    sqlite3_close(other);
    sqlite3_close(db);
    lab_disk_free(clone);
    lab_disk_free(disk);
}

static void a_crash_kills_open_handles_only(void **state) {
    lab_disk *disk = lab_disk_new(NULL);
    sqlite3 *old = db_open(disk), *reader = db_open(disk);
    db_must(old, full);
    db_must(old, schema);
    assert_int_equal(commit_one(old, 1, NULL), SQLITE_OK);
    db_must(reader, "begin; select * from log");
    db_must(old, "begin; insert into log values(2, 'in flight')");

    lab_disk_crash(disk, 3);
    assert_int_not_equal(db_run(old, "commit"), SQLITE_OK);
    assert_int_not_equal(db_run(old, "select * from head"), SQLITE_OK);

    sqlite3 *new = db_open(disk); /* its locks are free although the old ones never unlocked */
    assert_int_equal(judge_db(new, 1), SOUND);
    assert_int_equal(commit_one(new, 2, NULL), SQLITE_OK);
    sqlite3_close(old);
    sqlite3_close(reader);
    assert_int_equal(commit_one(new, 3, NULL), SQLITE_OK);
    sqlite3_close(new);
    assert_int_equal(judge(disk, 3), SOUND);
    lab_disk_free(disk);
}

/* ---- what becomes of single sectors ---- */

static sqlite3_file *raw_open(lab_disk *disk, const char *name) {
    sqlite3_vfs *vfs = sqlite3_vfs_find(lab_disk_vfs(disk));
    sqlite3_file *file = calloc(1, (size_t)vfs->szOsFile);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_WAL;
    assert_int_equal(vfs->xOpen(vfs, name, file, flags, NULL), SQLITE_OK);
    return file;
}

static void raw_close(sqlite3_file *file) {
    file->pMethods->xClose(file);
    free(file);
}

typedef struct {
    int lost, survived, torn, garbage;
} sector_tally;

enum { SECTORS = 4, SECTOR = 512 };

/* Old content 'o', synced; new content 'n', not. What is in each sector after the crash? */
static void count_sectors(lab_disk *disk, sector_tally *t) {
    char bytes[SECTORS * SECTOR];
    size_t size = lab_disk_read(disk, "f", 0, bytes, sizeof bytes);
    assert_int_equal(size, sizeof bytes);
    for (int s = 0; s < SECTORS; s++) {
        int olds = 0, news = 0;
        for (int i = 0; i < SECTOR; i++) {
            olds += bytes[s * SECTOR + i] == 'o';
            news += bytes[s * SECTOR + i] == 'n';
        }
        if (olds == SECTOR) t->lost++;
        else if (news == SECTOR) t->survived++;
        else if (olds + news == SECTOR) t->torn++;
        else t->garbage++;
    }
}

static sector_tally crash_sectors(bool whole_sectors) {
    sector_tally t = { 0 };
    char old[SECTORS * SECTOR], new[SECTORS * SECTOR];
    memset(old, 'o', sizeof old);
    memset(new, 'n', sizeof new);
    for (uint64_t seed = 0; seed < 500; seed++) {
        lab_disk *disk = lab_disk_new(
            &(lab_disk_options){ .sector_size = SECTOR, .whole_sectors = whole_sectors });
        sqlite3_file *f = raw_open(disk, "f");
        f->pMethods->xWrite(f, old, sizeof old, 0);
        f->pMethods->xSync(f, SQLITE_SYNC_NORMAL);
        f->pMethods->xWrite(f, new, sizeof new, 0);
        lab_disk_crash(disk, seed);
        assert_int_equal(f->pMethods->xWrite(f, old, 1, 0), SQLITE_IOERR_WRITE);
        raw_close(f);
        count_sectors(disk, &t);
        lab_disk_free(disk);
    }
    return t;
}

static void a_power_loss_keeps_loses_and_tears_sectors(void **state) {
    sector_tally t = crash_sectors(false);
    print_message("    lost %d, survived %d, torn %d, garbage %d\n", t.lost, t.survived, t.torn,
                  t.garbage);
    assert_true(t.lost > 100 && t.survived > 100 && t.torn > 20 && t.garbage > 20);
}

static void whole_sectors_are_old_or_new(void **state) {
    sector_tally t = crash_sectors(true);
    assert_true(t.lost > 100 && t.survived > 100);
    assert_int_equal(t.torn + t.garbage, 0);
}

static void sizes_and_names_survive_or_not(void **state) {
    int absent = 0, empty = 0, partial = 0, whole = 0;
    char bytes[3 * 4096] = "x";
    for (uint64_t seed = 0; seed < 300; seed++) {
        lab_disk *disk = lab_disk_new(NULL);
        sqlite3_file *f = raw_open(disk, "f");
        f->pMethods->xWrite(f, bytes, sizeof bytes, 0);
        lab_disk_crash(disk, seed);
        raw_close(f);
        uint64_t size = lab_disk_size(disk, "f");
        if (!lab_disk_exists(disk, "f")) absent++;
        else if (size == 0) empty++;
        else if (size < sizeof bytes) partial++;
        else whole++;
        lab_disk_free(disk);
    }
    assert_true(absent > 20 && empty > 5 && partial > 5 && whole > 20);
}

/* A name once synced stays; a deletion without a synced directory may not have happened. */
static void deletions_may_be_undone_until_the_directory_is_synced(void **state) {
    int back[2] = { 0, 0 };
    for (int synced = 0; synced < 2; synced++) {
        for (uint64_t seed = 0; seed < 100; seed++) {
            lab_disk *disk = lab_disk_new(NULL);
            sqlite3_vfs *vfs = sqlite3_vfs_find(lab_disk_vfs(disk));
            lab_disk_write(disk, "f", 0, "abc", 3);
            assert_int_equal(vfs->xDelete(vfs, "f", synced), SQLITE_OK);
            assert_false(lab_disk_exists(disk, "f"));
            lab_disk_crash(disk, seed);
            back[synced] += lab_disk_exists(disk, "f");
            lab_disk_free(disk);
        }
    }
    assert_true(back[0] > 10 && back[0] < 90);
    assert_int_equal(back[1], 0);
}

static void a_settled_disk_loses_nothing(void **state) {
    for (uint64_t seed = 0; seed < 50; seed++) {
        lab_disk *disk = lab_disk_new(NULL);
        sqlite3_file *f = raw_open(disk, "f");
        f->pMethods->xWrite(f, "abc", 3, 0);
        lab_disk_settle(disk);
        lab_disk_crash(disk, seed);
        raw_close(f);
        assert_int_equal(lab_disk_size(disk, "f"), 3);
        lab_disk_free(disk);
    }
}

/* ---- threads ---- */

enum { WRITERS = 3, READERS = 2, COMMITS_EACH = 40 };

typedef struct {
    lab_disk *disk;
    int number;
    int failures;
    atomic_int started;
} hammer;

static void *hammer_write(void *arg) {
    hammer *h = arg;
    sqlite3 *db = db_open(h->disk);
    h->failures += db_run(db, "pragma synchronous=full; pragma wal_autocheckpoint=20") != SQLITE_OK;
    for (int k = 1; k <= COMMITS_EACH; k++) {
        char sql[256];
        snprintf(sql, sizeof sql,
                 "begin immediate; insert into work values(%d, %d, randomblob(300));"
                 "update total set n = n + 1; commit",
                 h->number, k);
        h->failures += db_run(db, sql) != SQLITE_OK;
        lab_disk_mark(h->disk, (uint64_t)(h->number * 1000 + k));
    }
    sqlite3_close(db);
    return NULL;
}

/* Every snapshot must be of one moment: the total is the number of rows. */
static void *hammer_read(void *arg) {
    hammer *h = arg;
    sqlite3 *db = db_open(h->disk);
    while (h->failures == 0) {
        int64_t off = db_number(db, "select (select n from total) - (select count(*) from work)");
        h->failures += off != 0;
        if (db_number(db, "select n from total") == WRITERS * COMMITS_EACH) break;
    }
    sqlite3_close(db);
    return NULL;
}

static void hammer_disk(lab_disk *disk) {
    pthread_t threads[WRITERS + READERS];
    hammer hammers[WRITERS + READERS] = { 0 };
    for (int i = 0; i < WRITERS + READERS; i++) {
        hammers[i].disk = disk;
        hammers[i].number = i;
        void *(*body)(void *) = i < WRITERS ? hammer_write : hammer_read;
        assert_int_equal(pthread_create(&threads[i], NULL, body, &hammers[i]), 0);
    }
    for (int i = 0; i < WRITERS + READERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(hammers[i].failures, 0);
    }
}

static void judge_hammered(lab_disk *disk, const uint64_t *marks, size_t count) {
    sqlite3 *db = db_open(disk);
    assert_true(db_intact(db));
    int64_t rows = db_number(db, "select count(*) from work");
    assert_int_equal(db_number(db, "select n from total"), rows);
    assert_true(rows >= (int64_t)count);
    for (size_t i = 0; i < count; i++) {
        char sql[128];
        snprintf(sql, sizeof sql, "select count(*) from work where writer = %d and k = %d",
                 (int)(marks[i] / 1000), (int)(marks[i] % 1000));
        assert_int_equal(db_number(db, sql), 1);
    }
    sqlite3_close(db);
}

static void threads_share_a_disk_and_lose_nothing_acknowledged(void **state) {
    lab_disk *disk = lab_disk_new(NULL);
    sqlite3 *db = db_open(disk);
    db_must(db, "pragma journal_mode=wal; create table work(writer, k, body,"
                " primary key(writer, k)); create table total(n); insert into total values(0)");
    lab_disk_settle(disk);
    lab_disk_record(disk);
    hammer_disk(disk);
    sqlite3_close(db);
    lab_recording *rec = lab_disk_recorded(disk);

    lab_random random = lab_random_of(lab_seed());
    for (int i = 0; i < 300; i++) {
        size_t n = (size_t)lab_random_below(&random, lab_recording_count(rec) + 1), count;
        const uint64_t *marks = lab_recording_marks(rec, n, &count);
        lab_disk *after = lab_disk_at(rec, n, lab_random_u64(&random));
        judge_hammered(after, marks, count);
        lab_disk_free(after);
    }
    lab_recording_free(rec);
    lab_disk_free(disk);
}

/* Writers and readers that meet the power loss in the middle of a call just get errors. */
static void *run_until_dead(void *arg) {
    hammer *h = arg;
    sqlite3 *db = db_open(h->disk);
    sqlite3_busy_timeout(db, 0);
    db_run(db, "pragma wal_autocheckpoint=10");
    for (int k = 0, rc = 0; rc == SQLITE_OK || rc == SQLITE_BUSY; k++) {
        rc = db_run(db, k % 2 ? "select * from log" : "insert into log values(null, 1)");
        if (k == 0) atomic_fetch_add(&h->started, 1);
    }
    sqlite3_close(db);
    return NULL;
}

static void power_may_fail_while_threads_work(void **state) {
    for (uint64_t seed = 0; seed < 20; seed++) {
        lab_disk *disk = lab_disk_new(NULL);
        sqlite3 *db = db_open(disk);
        db_must(db, "pragma journal_mode=wal");
        db_must(db, schema);
        pthread_t threads[3];
        hammer h = { .disk = disk };
        for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, run_until_dead, &h);
        while (atomic_load(&h.started) < 3 || lab_disk_calls(disk, LAB_OP_WRITE) < 60 + seed * 5)
            db_run(db, "select 1 from log");
        lab_disk_crash(disk, seed);
        for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
        sqlite3_close(db);

        db = db_open(disk);
        assert_true(db_intact(db));
        sqlite3_close(db);
        lab_disk_free(disk);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wal_full_keeps_every_acknowledged_commit),
        cmocka_unit_test(wal_full_keeps_them_on_small_sectors_too),
        cmocka_unit_test(wal_normal_loses_commits_but_breaks_nothing),
        cmocka_unit_test(rollback_journal_extra_keeps_every_acknowledged_commit),
        cmocka_unit_test(rollback_journal_full_can_lose_the_deletion_of_its_journal),
        cmocka_unit_test(without_syncs_commits_are_lost_and_files_break),
        cmocka_unit_test(acknowledging_before_commit_is_caught),
        cmocka_unit_test(recovery_survives_power_loss_too),
        cmocka_unit_test(the_same_seed_gives_the_same_disk),
        cmocka_unit_test(a_seeded_workload_writes_the_same_bytes),
        cmocka_unit_test(a_recording_crashes_like_the_disk_it_was_made_on),
        cmocka_unit_test(marks_before_an_operation_are_a_prefix),
        cmocka_unit_test(a_clone_goes_its_own_way),
        cmocka_unit_test(a_crash_kills_open_handles_only),
        cmocka_unit_test(a_power_loss_keeps_loses_and_tears_sectors),
        cmocka_unit_test(whole_sectors_are_old_or_new),
        cmocka_unit_test(sizes_and_names_survive_or_not),
        cmocka_unit_test(deletions_may_be_undone_until_the_directory_is_synced),
        cmocka_unit_test(a_settled_disk_loses_nothing),
        cmocka_unit_test(threads_share_a_disk_and_lose_nothing_acknowledged),
        cmocka_unit_test(power_may_fail_while_threads_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
