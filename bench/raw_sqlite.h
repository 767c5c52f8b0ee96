/* raw_sqlite.h -- what SQLite alone takes: the baselines of the store's figures.
 *
 * The least any store on SQLite must do, as a plain C loop with prepared statements: append rows
 * in transactions, commit one row durably, select by id. Called by the store's group in the same
 * run, on a file in the same folder, so that both meet the same disk. */
#ifndef BENCH_RAW_SQLITE_H
#define BENCH_RAW_SQLITE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct raw_append {
    const char *path;     /* a fresh file is made there, and removed afterwards */
    uint32_t row_bytes;   /* of the blob in each row */
    uint32_t rows_per_tx; /* 1, 32, 256: as many as are in flight */
    uint32_t rows;        /* in total, rounded up to whole transactions */
    bool normal;          /* synchronous NORMAL instead of FULL */
} raw_append;

typedef struct raw_append_result {
    double rows_per_s; /* each row is one commit of the store */
    double best_tx_us; /* the fastest transaction, begin to acknowledged */
    double median_tx_us;
    uint64_t file_bytes; /* database and WAL at the end, before the checkpoint of closing */
} raw_append_result;

/* WAL, a table with an integer key and a blob, one prepared INSERT. False with a line on stderr
 * when SQLite refuses. */
bool raw_sqlite_append(const raw_append *spec, raw_append_result *out);

/* Commits of one row each, one after the other, as on an idle store: microseconds, median and
 * fastest. WAL, synchronous FULL. */
bool raw_sqlite_commit_us(const char *path, uint32_t row_bytes, uint32_t commits, double *median_us,
                          double *best_us);

/* Makes `documents` rows (id "doc-<i>" -> blob), then selects each by id, in another order than
 * they were made, with one prepared statement and everything in the cache: rows per second, the
 * fastest of `repeats` rounds. */
bool raw_sqlite_select_per_s(const char *path, uint32_t row_bytes, uint32_t documents, int repeats,
                             double *rows_per_s);

#endif
