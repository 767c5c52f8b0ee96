/* check.c -- what is wrong with the tables of a file by themselves, and how large they are. */
#define _POSIX_C_SOURCE 200809L
#include "base/process.h"
#include "store/log/rows.h"
#include "store/sqlite/store.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- Checking ------------------------------------------------------------------------------- */

typedef struct checking {
    hd_check_fn fn;
    void *ctx;
} checking;

HD_PRINTF(2, 3)
static void finding(const checking *k, const char *format, ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    k->fn(line, k->ctx);
}

static hd_status integrity_row(void *ctx, sqlite3_stmt *s, bool *stop) {
    (void)stop;
    const char *says = sqlite_word(s, 0);
    if (strcmp(says, "ok") != 0) finding(ctx, "integrity: %s", says);
    return HD_OK;
}

static hd_status part_row(void *ctx, sqlite3_stmt *s, bool *stop) {
    (void)stop;
    const char *text = sqlite_word(s, 3);
    uint64_t hash = log_hash(text, (size_t)sqlite3_column_bytes(s, 3));
    if (hash != (uint64_t)sqlite3_column_int64(s, 2))
        finding(ctx, "%s of document %lld: hash is wrong", sqlite_word(s, 0),
                (long long)sqlite3_column_int64(s, 1));
    return HD_OK;
}

static hd_status orphan_row(void *ctx, sqlite3_stmt *s, bool *stop) {
    (void)stop;
    finding(ctx, "%s: row for document %lld, which has no head", sqlite_word(s, 0),
            (long long)sqlite3_column_int64(s, 1));
    return HD_OK;
}

hd_status sqlite_check(log_store *s, hd_check_fn fn, void *ctx) {
    checking k = { fn, ctx };
    file *f = file_of(s);
    assert(fn && file_in_transaction(f));
    hd_status status = sqlite_each_of(f, "pragma integrity_check", integrity_row, &k);
    if (!status)
        status = sqlite_each_of(f,
                                "select 'large', doc, hash, value from large"
                                " union all select 'patch', doc, hash, body from patch",
                                part_row, &k);
    if (!status)
        status = sqlite_each_of(f,
                                "select 'large', doc from large where doc not in"
                                " (select doc from head where large) union all"
                                " select 'patch', doc from patch where doc not in"
                                " (select doc from head where large)",
                                orphan_row, &k);
    return status;
}

/* ---- Measuring ------------------------------------------------------------------------------ */

static const char sizes_sql[] =
    "select (select count(*) from log), (select sum(length(cast(body as blob))) from log),"
    " (select min(row) from log), (select max(row) from log), checkpoint,"
    " (select count(*) from log where row > checkpoint),"
    " (select sum(length(cast(body as blob))) from log where row > checkpoint),"
    " (select count(*) from large),"
    " (select count(*) from head where value is null and not large)"
    " from (select value as checkpoint from meta where key = 'checkpoint')";

static hd_status take_sizes(void *ctx, sqlite3_stmt *s, bool *stop) {
    store_sizes *out = ctx;
    uint64_t *const to[] = { &out->log_rows,   &out->log_bytes,  &out->first_row,
                             &out->last_row,   &out->checkpoint, &out->tail_rows,
                             &out->tail_bytes, &out->large,      &out->tombstones };
    assert(sqlite3_column_count(s) == sizeof to / sizeof *to);
    for (size_t i = 0; i < sizeof to / sizeof *to; i++)
        *to[i] = (uint64_t)sqlite3_column_int64(s, (int)i);
    *stop = true;
    return HD_OK;
}

/* Rows whose process lives. Those of killed programs stay until the next one cleans up. */
static hd_status count_living(void *ctx, sqlite3_stmt *s, bool *stop) {
    (void)stop;
    *(uint64_t *)ctx += process_lives(sqlite3_column_int64(s, 0), 0);
    return HD_OK;
}

static hd_status take_memos(void *ctx, sqlite3_stmt *s, bool *stop) {
    ((store_sizes *)ctx)->memos = (uint64_t)sqlite3_column_int64(s, 0);
    *stop = true;
    return HD_OK;
}

hd_status sqlite_measure(log_store *s, store_sizes *out) {
    file *f = file_of(s);
    struct stat st;
    *out = (store_sizes){ .format = (uint64_t)f->format };
    if (stat(sqlite3_db_filename(f->db, "main"), &st) == 0) out->bytes = (uint64_t)st.st_size;
    hd_status status = sqlite_each_of(f, sizes_sql, take_sizes, out);
    if (!status)
        status = sqlite_each_of(f, "select pid from session", count_living, &out->sessions);
    if (!status) status = sqlite_each_of(f, "select pid from reader", count_living, &out->readers);
    if (status || f->format < NODE_FORMAT) return status;
    return sqlite_each_of(f, "select count(*) from node", take_memos, out);
}
