/* lab_place.c -- making and removing the places of stores. */
#define _GNU_SOURCE
#include "lab_place.h"

#include "lab.h"
#include "store/postgres/conn.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool lab_on_server(void) {
    const char *store = getenv("HD_STORE");
    return store && !strcmp(store, "postgres");
}

/* ---- files */

static void make_file(lab_store_place *p) {
    const char *base = getenv("TMPDIR");
    snprintf(p->folder, sizeof p->folder, "%.40s/heddle.XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(p->folder)) lab_fail("no folder for a store: %s", strerror(errno));
    snprintf(p->name, sizeof p->name, "%s/store.db", p->folder);
}

static void remove_file(lab_store_place *p) {
    static const char *const endings[] = { "", "-wal", "-shm", "-journal" };
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        char path[300];
        snprintf(path, sizeof path, "%s%s", p->name, endings[i]);
        unlink(path);
    }
    rmdir(p->folder);
}

/* ---- servers */

/* A schema takes long to make: a process uses those that it has again, emptied. */
enum { SCHEMAS_MAX = 8 };
static struct {
    int pid; /* whose they are: a child has its own */
    bool taken[SCHEMAS_MAX];
} schemas;

static void make_schema(lab_store_place *p) {
    const char *server = getenv("HD_POSTGRES");
    if (!server)
        lab_fail("HD_STORE=postgres needs a database in HD_POSTGRES: see tools/with-postgres");
    if (schemas.pid != (int)getpid()) memset(&schemas, 0, sizeof schemas);
    schemas.pid = (int)getpid();
    int i = 0;
    while (i < SCHEMAS_MAX && schemas.taken[i]) i++;
    if (i == SCHEMAS_MAX) lab_fail("more worlds at once than schemas");
    schemas.taken[i] = true;
    *p->folder = '\0';
    p->schema = i;
    snprintf(p->name, sizeof p->name, "%s%cschema=lab_%d_%d", server,
             strchr(server, '?') ? '&' : '?', schemas.pid, i);
}

/* Also where nothing was made of it. */
static void remove_schema(lab_store_place *p) {
    hd_env env = hd_env_system();
    hd_error error;
    conn c = { 0 };
    if (conn_open(&c, p->name, &env, &error)) lab_fail("%s", error.message);
    c.pq.PQexitPipelineMode(c.c);
    c.pq.PQclear(
        conn_exec(&c, "do $$ begin if to_regclass('meta') is not null then"
                      " delete from log where row > 0; delete from space; delete from head;"
                      " delete from large; delete from patch; delete from node;"
                      " delete from session; delete from reader; delete from presence;"
                      " insert into log select 0, 0, '' on conflict do nothing;"
                      " update meta set number = 0 where key in ('checkpoint', 'kept', 'docs');"
                      " end if; end $$"));
    if (c.failure) lab_fail("%s", c.words);
    conn_close(&c);
    schemas.taken[p->schema] = false;
}

void lab_drop_schemas(const char *prefix) {
    hd_env env = hd_env_system();
    hd_error error;
    conn c = { 0 };
    char sql[400];
    if (conn_open(&c, getenv("HD_POSTGRES"), &env, &error)) lab_fail("%s", error.message);
    c.pq.PQexitPipelineMode(c.c);
    snprintf(sql, sizeof sql,
             "do $$ declare name text; begin for name in select nspname from pg_namespace where"
             " starts_with(nspname, '%s') loop execute format('drop schema %%I cascade', name);"
             " end loop; end $$",
             prefix);
    c.pq.PQclear(conn_exec(&c, sql));
    if (c.failure) lab_fail("%s", c.words);
    conn_close(&c);
}

void lab_place_make(lab_store_place *p) {
    if (lab_on_server()) make_schema(p);
    else make_file(p);
}

void lab_place_remove(lab_store_place *p) {
    if (*p->folder) remove_file(p);
    else remove_schema(p);
}
