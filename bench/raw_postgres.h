/* raw_postgres.h -- a PostgreSQL server for the benchmark, and what libpq alone takes: the baselines of stores on one.
 *
 * The least any store on PostgreSQL must do, as a plain C loop: insert a row, durably, one round trip each. Called by
 * the group in the same run, on the same server. */
#ifndef BENCH_RAW_POSTGRES_H
#define BENCH_RAW_POSTGRES_H

#include "bench.h"

/* ---- A server -------------------------------------------------------------------------------- */

/* The server that HD_POSTGRES names, else a private one that tools/with-postgres starts. */
typedef struct raw_server {
    char url[512];
    int child;   /* the process that keeps it; 0: it is not ours */
    int hold_fd; /* while this is open the server runs */
} raw_server;

/* False with a line of bench_note: there is none, and none can be started. */
bool raw_server_open(raw_server *s, bench *b);
void raw_server_close(raw_server *s);

/* ---- A connection ---------------------------------------------------------------------------- */

/* False and NULL with a line on stderr when the server refuses. */
typedef struct raw_pg raw_pg;
raw_pg *raw_pg_open(const char *url);
void raw_pg_close(raw_pg *pg);
/* The numbers of the first row of the result: as many as `count` says. */
bool raw_pg_ask(raw_pg *pg, const char *sql, double *numbers, int count);

/* From here on the program runs on one core, and its server, a private one on this machine, on another. The kernel
 * would choose anew every few seconds whether the two share a core, which changes the time of a commit by a third.
 * False: there is one core, or the server's processes are not ours to move. */
bool raw_pg_apart(raw_pg *pg);
void raw_pg_anywhere(raw_pg *pg);

/* Makes an empty table with an integer key and a text that is not compressed, as our log is. */
bool raw_pg_make_table(raw_pg *pg);
/* Inserts more rows of so many bytes into it, one prepared statement and one commit each. */
bool raw_pg_insert(raw_pg *pg, uint64_t rows, uint32_t row_bytes);

#endif
