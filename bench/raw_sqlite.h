/* raw_sqlite.h -- what SQLite alone takes: the baselines of the store's figures.
 *
 * The least any store on SQLite must do, as a plain C loop with prepared statements: append rows
 * in transactions, commit one row durably, select by id. Called by the store's group in the same
 * run, on a file in the same folder, so that both meet the same disk. */
#ifndef BENCH_RAW_SQLITE_H
#define BENCH_RAW_SQLITE_H

#include <stdbool.h>
#include <stdint.h>

/* Appending to a table with an integer key and a blob, with one prepared INSERT; WAL, synchronous FULL.
 * A fresh file is made at `path`, and removed on closing. NULL or false with a line on stderr when
 * SQLite refuses. */
typedef struct raw_log raw_log;
raw_log *raw_log_open(const char *path, uint32_t row_bytes);
/* In transactions of `rows_per_tx`: as many as are in flight. */
bool raw_log_append(raw_log *log, uint64_t rows, uint32_t rows_per_tx);
void raw_log_close(raw_log *log);

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
