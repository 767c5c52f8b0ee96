/* raw_postgres.c -- see raw_postgres.h. */
#define _GNU_SOURCE
#include "raw_postgres.h"

#include "store/postgres/pq.h"
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- A server -------------------------------------------------------------------------------- */

/* Prints the address, and ends when nobody holds the other end of its input. */
static void keep_server(int in, int out) {
    static const char *const words[] = { "tools/with-postgres", "sh", "-c",
                                         "echo \"$HD_POSTGRES\"; exec cat >/dev/null", NULL };
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    closefrom(STDERR_FILENO + 1);
    execv(words[0], (char **)(uintptr_t)words);
    _exit(127);
}

static bool read_line(int fd, char *out, size_t size) {
    size_t n = 0;
    while (n + 1 < size && read(fd, out + n, 1) == 1 && out[n] != '\n') n++;
    out[n] = '\0';
    return n > 0;
}

static bool start_server(raw_server *s) {
    int in[2], out[2];
    if (pipe(in) || pipe(out)) return false;
    s->child = fork();
    if (s->child == 0) {
        close(in[1]);
        close(out[0]);
        keep_server(in[0], out[1]);
    }
    close(in[0]);
    close(out[1]);
    s->hold_fd = in[1];
    bool started = s->child > 0 && read_line(out[0], s->url, sizeof s->url);
    close(out[0]);
    return started;
}

bool raw_server_open(raw_server *s, bench *b) {
    const char *given = getenv("HD_POSTGRES");
    *s = (raw_server){ .hold_fd = -1 };
    if (given && *given) {
        snprintf(s->url, sizeof s->url, "%s", given);
        return true;
    }
    if (start_server(s)) return true;
    bench_note(b, "postgres: skipped, no PostgreSQL server can be started here");
    raw_server_close(s);
    return false;
}

void raw_server_close(raw_server *s) {
    if (s->hold_fd >= 0) close(s->hold_fd);
    if (s->child > 0) waitpid(s->child, NULL, 0);
    *s = (raw_server){ .hold_fd = -1 };
}

/* ---- A connection ---------------------------------------------------------------------------- */

struct raw_pg {
    pq pq;
    PGconn *conn;
    uint64_t rows;   /* of the table */
    cpu_set_t cores; /* that we may use */
};

static bool refused(const raw_pg *pg, const char *what) {
    fprintf(stderr, "raw libpq: %s: %s\n", what, pg->pq.PQerrorMessage(pg->conn));
    return false;
}

static bool connect_to(raw_pg *pg, const char *url) {
    const char *const keys[] = { "dbname", NULL }, *const values[] = { url, NULL };
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;
    pg->conn = pg->pq.PQconnectStartParams(keys, values, 1);
    while (pg->conn && state != PGRES_POLLING_OK && state != PGRES_POLLING_FAILED) {
        short events = state == PGRES_POLLING_READING ? POLLIN : POLLOUT;
        (void)poll(&(struct pollfd){ pg->pq.PQsocket(pg->conn), events, 0 }, 1, 10000);
        state = pg->pq.PQconnectPoll(pg->conn);
    }
    return pg->conn && (state == PGRES_POLLING_OK || refused(pg, "connect"));
}

raw_pg *raw_pg_open(const char *url) {
    hd_error error = { 0 };
    raw_pg *pg = calloc(1, sizeof *pg);
    if (!pg) return NULL;
    if (pq_load(&pg->pq, &error)) fprintf(stderr, "raw libpq: %s\n", error.message);
    else if (connect_to(pg, url)) return pg;
    raw_pg_close(pg);
    return NULL;
}

void raw_pg_close(raw_pg *pg) {
    if (pg && pg->conn) pg->pq.PQfinish(pg->conn);
    free(pg);
}

static bool is_good(const raw_pg *pg, const PGresult *r) {
    ExecStatusType status = pg->pq.PQresultStatus(r);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* Of the last statement of the text; NULL: it could not be sent. */
static PGresult *last_result(raw_pg *pg, const char *sql) {
    PGresult *last = NULL;
    if (!pg->pq.PQsendQuery(pg->conn, sql)) return NULL;
    for (PGresult *r; (r = pg->pq.PQgetResult(pg->conn)) != NULL; last = r) pg->pq.PQclear(last);
    return last;
}

bool raw_pg_ask(raw_pg *pg, const char *sql, double *numbers, int count) {
    PGresult *r = last_result(pg, sql);
    bool ok = is_good(pg, r) || refused(pg, sql);
    if (ok && count) ok = pg->pq.PQntuples(r) > 0;
    for (int i = 0; i < count && ok; i++) numbers[i] = atof(pg->pq.PQgetvalue(r, 0, i));
    pg->pq.PQclear(r);
    return ok;
}

/* Waits for the end of what was sent. */
static bool finish(raw_pg *pg, const char *what) {
    bool ok = true;
    for (PGresult *r; (r = pg->pq.PQgetResult(pg->conn)) != NULL; pg->pq.PQclear(r))
        if (ok && !is_good(pg, r)) ok = refused(pg, what);
    return ok;
}

/* ---- Cores ----------------------------------------------------------------------------------------- */

static pid_t parent_of(pid_t pid) {
    char path[32];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    if (!f) return 0;
    if (fscanf(f, "%*d (%*[^)]) %*c %d", &parent) != 1) parent = 0;
    fclose(f);
    return parent;
}

/* Processes that the server starts later run where the one that starts them does; threads of ours, too. */
static bool run_on(raw_pg *pg, const cpu_set_t *ours, const cpu_set_t *server) {
    double pid;
    if (!raw_pg_ask(pg, "select pg_backend_pid()", &pid, 1)) return false;
    pid_t parent = parent_of((pid_t)pid);
    return parent > 1 && !sched_setaffinity((pid_t)pid, sizeof *server, server) &&
           !sched_setaffinity(parent, sizeof *server, server) &&
           !sched_setaffinity(0, sizeof *ours, ours);
}

/* The first from `core` on. */
static size_t core_from(const cpu_set_t *set, size_t core) {
    while (core < CPU_SETSIZE && !CPU_ISSET(core, set)) core++;
    return core;
}

bool raw_pg_apart(raw_pg *pg) {
    cpu_set_t first, second;
    if (sched_getaffinity(0, sizeof pg->cores, &pg->cores) || CPU_COUNT(&pg->cores) < 2)
        return false;
    size_t core = core_from(&pg->cores, 0);
    CPU_ZERO(&first);
    CPU_ZERO(&second);
    CPU_SET(core, &first);
    CPU_SET(core_from(&pg->cores, core + 1), &second);
    return run_on(pg, &first, &second);
}

void raw_pg_anywhere(raw_pg *pg) {
    if (CPU_COUNT(&pg->cores)) (void)run_on(pg, &pg->cores, &pg->cores);
}

/* ---- The loop -------------------------------------------------------------------------------------- */

bool raw_pg_make_table(raw_pg *pg) {
    const char *sql = "insert into raw_log values($1, $2)";
    pg->rows = 0;
    return raw_pg_ask(pg,
                      "drop table if exists raw_log;"
                      "create table raw_log(row bigint primary key, body text not null)"
                      " with (toast_tuple_target = 8160);"
                      "alter table raw_log alter column body set storage external;"
                      "deallocate all",
                      NULL, 0) &&
           pg->pq.PQsendPrepare(pg->conn, "insert", sql, 0, NULL) && finish(pg, "prepare");
}

bool raw_pg_insert(raw_pg *pg, uint64_t rows, uint32_t row_bytes) {
    char number[24], *body = malloc((size_t)row_bytes + 1);
    const char *const values[] = { number, body };
    bool ok = body;
    for (uint32_t i = 0; i < row_bytes && ok; i++) body[i] = (char)('a' + i * 7 % 26);
    if (ok) body[row_bytes] = '\0';
    for (uint64_t i = 1; i <= rows && ok; i++) {
        snprintf(number, sizeof number, "%llu", (unsigned long long)++pg->rows);
        if (row_bytes) body[i % row_bytes] = (char)('A' + i % 26); /* no two rows alike */
        ok = pg->pq.PQsendQueryPrepared(pg->conn, "insert", 2, values, NULL, NULL, 0) &&
             finish(pg, "insert");
    }
    free(body);
    return ok;
}
