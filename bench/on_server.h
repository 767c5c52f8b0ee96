/* on_server.h -- stores on a server to be measured, each in a schema of its own. */
#ifndef BENCH_ON_SERVER_H
#define BENCH_ON_SERVER_H

#include "bench.h"
#include "raw_postgres.h"
#include <heddle/store.h>

typedef struct on_server {
    bench *b;
    const char *server;
    raw_pg *pg;
    char schema[64], url[640];
} on_server;

/* The name of a store that does not exist. */
void name_store(on_server *o);
void drop_store(on_server *o);
/* NULL after a line of bench_wrong. */
hd_runtime *open_store(on_server *o);

/* What the server has counted so far. */
typedef struct server_counts {
    double wal_bytes, syncs, transactions;
} server_counts;
/* A process on the server adds its numbers when it ends: this waits for those that are about to. */
server_counts count_server(on_server *o);
/* What was counted between the two. */
server_counts counts_since(server_counts before, server_counts after);

int compare_doubles(const void *a, const void *b);

/* ---- postgres_processes.c: what several processes do on one store */

/* How long a step takes that another process does through the store. */
void bench_steps_elsewhere(on_server *o);
/* Four processes write one space, beside one alone. */
void bench_four_writers(on_server *o);
/* A store of many documents is opened, and one of them is read. */
void bench_many_documents(on_server *o);

/* ---- postgres_leases.c */

/* How long leases take to move when a process joins, leaves and is killed. */
void bench_leases(on_server *o);

#endif
