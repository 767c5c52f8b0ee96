/* schema.c -- whether a schema of the database is a store, and making it one. */
#include "store/postgres/schema.h"

#include "store/postgres/store.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof pg_schema_steps / sizeof pg_schema_steps[0] == PG_FORMAT,
               "a step per format");

enum { MAKE_TRIES = 3 };

/* What a schema says it is. Texts of the simple protocol. */
typedef struct look {
    bool is_there; /* the schema */
    long tables;   /* and views */
    bool has_meta;
    bool has_rest; /* other tables of a store */
    bool standby, read_only, utf8, may_use, may_read, may_write;
    bool hides;        /* row-level security keeps rows from this user */
    long mark, format; /* 0: none */
} look;

static long long_at(const conn *c, const PGresult *r, int column) {
    return rows_of(c, r) ? strtol(word_at(c, r, 0, column), NULL, 10) : 0;
}

static bool yes_at(const conn *c, const PGresult *r, int column) {
    return rows_of(c, r) && *word_at(c, r, 0, column) == 't';
}

/* The schema that was named, whether or not it may be used. */
#define OURS "quote_ident(n.nspname) = current_setting('search_path')"
/* Whether there is a right on all of its tables. */
#define RIGHT(right)                                                                               \
    "(select coalesce(bool_and(has_table_privilege(k.oid, '" right "')), true) from pg_class k"    \
    " join pg_namespace n on n.oid = k.relnamespace where " OURS " and k.relkind = 'r')"

static hd_status look_at(conn *c, look *out) {
    *out = (look){ 0 };
    PGresult *r = conn_exec(
        c, "select (select count(*) from pg_class k join pg_namespace n on n.oid = k.relnamespace"
           " where " OURS " and k.relkind in ('r', 'v', 'm', 'p', 'f')),"
           " to_regclass('meta') is not null,"
           " pg_is_in_recovery(), getdatabaseencoding() = 'UTF8',"
           " current_setting('default_transaction_read_only') = 'on',"
           " (select coalesce(bool_and(has_schema_privilege(n.oid, 'usage')), true)"
           "  from pg_namespace n where " OURS "),"
           " exists(select from pg_namespace n where " OURS "),"
           " to_regclass('log') is not null and to_regclass('head') is not null"
           " and to_regclass('space') is not null");
    if (!r) return c->failure;
    out->tables = long_at(c, r, 0);
    out->has_meta = yes_at(c, r, 1);
    out->standby = yes_at(c, r, 2);
    out->utf8 = yes_at(c, r, 3);
    out->read_only = yes_at(c, r, 4);
    out->may_use = yes_at(c, r, 5);
    out->is_there = yes_at(c, r, 6);
    out->has_rest = yes_at(c, r, 7);
    c->pq.PQclear(r);
    return HD_OK;
}

/* What stands in `meta`. A table of that name that is not ours has other columns. */
static hd_status look_inside(conn *c, look *out) {
    PGresult *r = conn_exec(
        c,
        "select " RIGHT("insert") " and " RIGHT("update") " and " RIGHT("delete") ", " RIGHT(
            "select") ", "
                      "exists(select from pg_class k join pg_namespace n"
                      " on n.oid = k.relnamespace where " OURS " and row_security_active(k.oid))");
    if (!r) return c->failure;
    out->may_write = yes_at(c, r, 0);
    out->may_read = yes_at(c, r, 1);
    out->hides = yes_at(c, r, 2);
    c->pq.PQclear(r);
    if (!out->may_read) return HD_OK;
    r = conn_exec(c, "select coalesce(max(number) filter (where key = 'heddle'), 0),"
                     " coalesce(max(number) filter (where key = 'format'), 0) from meta");
    if (!r) return c->failure == HD_CORRUPT ? HD_OK : c->failure;
    out->mark = long_at(c, r, 0);
    out->format = long_at(c, r, 1);
    c->pq.PQclear(r);
    return HD_OK;
}

/* ---- Making --------------------------------------------------------------------------------- */

static bool execute(conn *c, const char *sql) {
    PGresult *r = conn_exec(c, sql);
    bool good = r != NULL;
    c->pq.PQclear(r);
    return good;
}

/* If two programs make one store at the same moment, the second one fails here, and then finds the store made. */
static hd_status make(conn *c, bool schema_is_there) {
    char head[256] = "begin";
    char *schema = c->pq.PQescapeIdentifier(c->c, c->url.schema, strlen(c->url.schema));
    if (!schema) return HD_NOMEM;
    if (!schema_is_there) snprintf(head, sizeof head, "begin; create schema %s", schema);
    c->pq.PQfreemem(schema);
    bool good = execute(c, head);
    for (int i = 0; good && i < PG_FORMAT; i++) good = execute(c, pg_schema_steps[i]);
    (void)execute(c, good ? "commit" : "rollback");
    return c->failure;
}

/* ---- Refusing ------------------------------------------------------------------------------- */

static hd_status refuse(const conn *c, hd_status status, const char *what, hd_error *error) {
    assert(status != HD_OK);
    env_error(error, status, "%s: %s", c->url.shown, what);
    return status;
}

/* The names are as they are written in SQL. Without room for both, what to do is worth more than the address. */
static hd_status refuse_right(conn *c, const char *what, hd_error *error) {
    char words[sizeof error->message];
    PGresult *r = conn_exec(c, "select quote_ident(current_user), current_setting('search_path')");
    if (!r) return refuse(c, c->failure, c->words, error);
    const char *user = word_at(c, r, 0, 0), *schema = word_at(c, r, 0, 1);
    snprintf(words, sizeof words,
             "the user %s may not %s; its owner: `grant usage on schema %s to %s; grant"
             " select, insert, update, delete on all tables in schema %s to %s`",
             c->pq.PQuser(c->c), what, schema, user, schema, user);
    c->pq.PQclear(r);
    bool fits = strlen(c->url.shown) + strlen(": ") + strlen(words) < sizeof words;
    if (fits) return refuse(c, HD_READ_ONLY, words, error);
    env_error(error, HD_READ_ONLY, "%s", words);
    return HD_READ_ONLY;
}

static hd_status judge(conn *c, const look *seen, bool writes, hd_error *error) {
    if (!seen->utf8) return refuse(c, HD_NOT_HEDDLE, "the database's encoding must be UTF8", error);
    if (writes && seen->standby)
        return refuse(c, HD_READ_ONLY, "the server is a read-only standby: name the primary",
                      error);
    if (writes && seen->read_only)
        return refuse(
            c, HD_READ_ONLY,
            "its transactions only read: default_transaction_read_only is on, for the user,"
            " the database or the server",
            error);
    if (!seen->may_use) return refuse_right(c, "use its schema", error);
    if (!seen->tables)
        return refuse(c, HD_NOT_FOUND, "there is no store here: make it with `heddle db init URL`",
                      error);
    if (seen->has_meta && !seen->may_read) return refuse_right(c, "read its tables", error);
    if (seen->hides)
        return refuse(c, HD_READ_ONLY,
                      "row-level security hides rows of its tables from this user: its owner"
                      " disables it, or lets the user bypass it",
                      error);
    if (!seen->has_meta && seen->has_rest)
        return refuse(c, HD_CORRUPT,
                      "the table `meta` is missing, and other tables of a store are there:"
                      " restore a backup",
                      error);
    if (seen->mark != strtol(PG_MARK, NULL, 10))
        return refuse(
            c, HD_NOT_HEDDLE,
            "the schema has tables that are not heddle's: name another one with ?schema=NAME",
            error);
    if (seen->format > PG_FORMAT)
        return refuse(c, HD_NEWER, "written by a newer version of heddle: upgrade heddle", error);
    return writes && !seen->may_write ? refuse_right(c, "write its tables", error) : HD_OK;
}

static hd_status look_whole(conn *c, look *seen) {
    c->failure = HD_OK;
    c->broken = false;
    hd_status status = look_at(c, seen);
    return !status && seen->has_meta ? look_inside(c, seen) : status;
}

static bool is_makeable(const look *seen) {
    return !seen->tables && seen->may_use && seen->utf8 && !seen->standby && !seen->read_only;
}

hd_status pg_schema_check(conn *c, bool create, bool writes, hd_error *error) {
    look seen;
    assert(c->c && c->mode == CONN_FREE && !c->queued && !c->syncs);
    c->pq.PQexitPipelineMode(c->c);
    hd_status status = look_whole(c, &seen), made = HD_OK;
    for (int i = 0; i < MAKE_TRIES && !status && create && is_makeable(&seen); i++) {
        made = make(c, seen.is_there);
        status = look_whole(c, &seen);
    }
    if (status || (made && !seen.tables)) {
        bool lacks_right = !status && made == HD_READ_ONLY;
        env_error(error, status ? status : made, "%s: %s: %s%s", c->url.shown,
                  status ? "looking at the schema" : "making the tables", c->words,
                  lacks_right ? ": `heddle db init` by a user who may create a schema" : "");
        return status ? status : made;
    }
    status = judge(c, &seen, writes, error);
    if (!status && !c->pq.PQenterPipelineMode(c->c)) status = HD_IO;
    return status;
}
