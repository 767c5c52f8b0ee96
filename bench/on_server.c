/* on_server.c -- see on_server.h. */
#define _GNU_SOURCE
#include "on_server.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void drop_store(on_server *o) {
    char sql[128];
    snprintf(sql, sizeof sql, "drop schema if exists %s cascade", o->schema);
    (void)raw_pg_ask(o->pg, sql, NULL, 0);
}

void name_store(on_server *o) {
    snprintf(o->schema, sizeof o->schema, "heddle_bench_%d", (int)getpid());
    snprintf(o->url, sizeof o->url, "%s%cschema=%s", o->server, strchr(o->server, '?') ? '&' : '?',
             o->schema);
    (void)raw_pg_ask(o->pg, "set client_min_messages = warning", NULL, 0);
    drop_store(o);
}

hd_runtime *open_store(on_server *o) {
    hd_runtime *rt = NULL;
    hd_error error = { 0 };
    if (hd_open(o->url, NULL, &rt, &error)) bench_wrong(o->b, "open: %s", error.message);
    return rt;
}

server_counts count_server(on_server *o) {
    double found[3] = { 0 };
    (void)poll(NULL, 0, 200);
    if (!raw_pg_ask(o->pg, "select pg_stat_force_next_flush()", NULL, 0) || /* of our own */
        !raw_pg_ask(
            o->pg,
            "select pg_current_wal_insert_lsn() - '0/0', (select wal_sync from pg_stat_wal),"
            " (select sum(xact_commit + xact_rollback) from pg_stat_database)",
            found, 3))
        bench_wrong(o->b, "the server's counts cannot be read");
    return (server_counts){ found[0], found[1], found[2] };
}

server_counts counts_since(server_counts before, server_counts after) {
    return (server_counts){ after.wal_bytes - before.wal_bytes, after.syncs - before.syncs,
                            after.transactions - before.transactions };
}
