/* conn.c -- pipelines, results, and what failures mean. */
#define _GNU_SOURCE
#include "store/postgres/conn.h"

#include "base/poller.h"
#include <assert.h>
#include <endian.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Statements between two waits, and their bytes: the server's answers must fit into its socket. */
    QUEUE_MAX = 128,
    QUEUE_BYTES = 1 << 20,
    CONNECT_MS = 5000,   /* for the first connection */
    RECONNECT_MS = 1000, /* for the attempt to come back */
    CONN_RETRY_MS = 100,
    GLANCE_MS = 1000 /* how often a wait for an answer looks at the clock */
};

/* ---- Failures ------------------------------------------------------------------------------ */

/* One line, without the password: what libpq writes in lines of their own are sentences here. */
static void take_words(conn *c, const char *text) {
    size_t n = 0;
    bool gap = false, line_ended = false;
    for (; text && *text && n + 3 < sizeof c->words; text++) {
        bool space = *text == '\n' || *text == '\t' || *text == ' ';
        gap |= space;
        line_ended |= *text == '\n';
        if (space) continue;
        if (n && line_ended && !strchr(".,:;?!", c->words[n - 1])) c->words[n++] = '.';
        if (n && gap) c->words[n++] = ' ';
        gap = line_ended = false;
        c->words[n++] = *text;
    }
    c->words[n] = '\0';
    url_hide(&c->url, c->words);
    if (text && *text) env_end_cut(c->words, sizeof c->words);
}

typedef struct state_status {
    const char *state; /* the beginning of an SQLSTATE */
    hd_status status;
    /* The store is not there, or may not be used; that may change while a program runs. */
    bool withheld;
} state_status;

/* The first that fits. */
static const state_status states[] = {
    { "40", HD_BUSY, false },        /* lost to another transaction */
    { "55P03", HD_BUSY, false },     /* another process does the housework */
    { "57P", HD_BUSY, false },       /* the server shuts down, or starts */
    { "08", HD_BUSY, false },        /* the connection is lost */
    { "53100", HD_FULL, false },     /* the disk is full */
    { "53200", HD_BUSY, false },     /* the server is out of memory */
    { "53", HD_BUSY, false },        /* too many connections */
    { "25006", HD_READ_ONLY, true }, /* a standby */
    { "42501", HD_READ_ONLY, true }, /* the user lacks the right */
    { "42P01", HD_CORRUPT, true },   /* a table is gone */
    { "42703", HD_CORRUPT, false },  /* a column is gone */
    { "42939", HD_USAGE, false },    /* no schema may have this name */
    { "23505", HD_CORRUPT, false }, /* a number that is new has a row: `meta` was changed by hand */
    { "3F", HD_CORRUPT, true },     /* the schema is gone */
    { "54", HD_LIMIT, false },       { "58", HD_IO, false },
    { "XX001", HD_CORRUPT, false },  { "XX002", HD_CORRUPT, false },
};

/* A program that has opened the store waits for it as if the server were away: a database may be restored, and a right
 * granted again. Whoever opens the store is told what is wrong. */
static hd_status status_of_state(const conn *c, const char *state) {
    bool waits = (c->opened && *c->opened) || c->again;
    for (size_t i = 0; state && i < sizeof states / sizeof *states; i++)
        if (strncmp(state, states[i].state, strlen(states[i].state)) == 0)
            return waits && states[i].withheld ? HD_BUSY : states[i].status;
    return HD_IO;
}

static void fail(conn *c, hd_status status, const char *words) {
    assert(status);
    c->broken = true;
    if (c->failure) return; /* the first failure is the cause of later ones */
    c->failure = status;
    take_words(c, words);
}

/* The connection is lost, or about to be: libpq may have said why. */
static void fail_by_loss(conn *c) {
    const char *words = c->pq.PQerrorMessage(c->c);
    fail(c, HD_BUSY, *words ? words : "the connection is lost");
}

static void fail_by(conn *c, const PGresult *r) {
    const char *state = c->pq.PQresultErrorField(r, PG_DIAG_SQLSTATE);
    if (!state) fail_by_loss(c);
    else fail(c, status_of_state(c, state), c->pq.PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY));
}

static void clear_results(conn *c) {
    assert(c->count <= CONN_RESULTS);
    while (c->count) c->pq.PQclear(c->results[--c->count]);
}

/* What the SQLSTATE of a failed attempt to connect means, if another attempt would fail too: no such user or database,
 * a wrong password. HD_OK: another attempt may succeed. */
static hd_status status_of_refusal(const char *state) {
    return !strncmp(state, "28", 2) || !strncmp(state, "3D", 2) ? HD_REJECTED
           : !strncmp(state, "42501", 5)                        ? HD_READ_ONLY
                                                                : HD_OK;
}

/* The SQLSTATE in a line of libpq's error message, "FATAL:  28P01: no such user"; NULL: the line has none. */
static const char *state_in(const char *line, const char *end) {
    for (const char *at = line; end - at >= 10; at++)
        if (!memcmp(at, ":  ", 3) && !memcmp(at + 8, ": ", 2) &&
            strspn(at + 3, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5)
            return at + 3;
    return NULL;
}

/* What libpq says of an option in the address whose value is wrong. What it says of a host begins otherwise. */
static bool is_of_option(const char *line) {
    return !strncmp(line, "invalid ", 8) || !strncmp(line, "could not match ", 16);
}

/* What libpq itself refuses: the address asks for TLS, and the server has none, or not the certificate that is asked
 * for; or there is no password. Only libpq's English words are known: in another language the attempt counts as one
 * that may succeed later. */
static bool is_for_good(const char *line, const char *end) {
    static const char *const words[] = { "server does not support SSL", "no password supplied",
                                         "root certificate file", "server certificate for" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (memmem(line, (size_t)(end - line), words[i], strlen(words[i]))) return true;
    return false;
}

static hd_status status_of_line(const char *line, const char *end, const char *state) {
    return state                    ? status_of_refusal(state)
           : is_of_option(line)     ? HD_USAGE
           : is_for_good(line, end) ? HD_REJECTED
                                    : HD_OK;
}

/* Of several hosts each has its say in few words, so that an hd_error has room for all: without the first words of
 * libpq, and without its question whether the server is running, a line of its own. */
static const char *in_few_words(const conn *c, const char *line, const char *end) {
    static const char first[] = "connection to server ";
    if (c->hosts.count < 2) return line;
    if (*line == '\t') return end;
    return strncmp(line, first, strlen(first)) ? line : line + strlen(first);
}

/* An attempt to connect has failed. libpq tells its SQLSTATE in the text of its error message only, and only if the
 * message is verbose. What is kept of the message is the text without SQLSTATEs, and without the lines that follow the
 * first of them, which name a place in the server's source code. An address may have several hosts: the first that
 * refuses for good, or for which the address is wrong, decides, and what the message says of the hosts before it is
 * left out. */
static void fail_to_connect(conn *c) {
    char words[4 * CONN_WORDS]; /* take_words keeps CONN_WORDS of it, without double spaces */
    size_t n = 0;
    bool has_state = false;
    for (const char *line = c->pq.PQerrorMessage(c->c), *next; *line; line = next) {
        const char *end = line + strcspn(line, "\n"), *state = state_in(line, end);
        next = *end ? end + 1 : end;
        if (!c->refused && (c->refused = status_of_line(line, end, state))) n = 0;
        if (has_state && !state) continue;
        has_state = has_state || state;
        for (const char *at = in_few_words(c, line, end); at < next && n + 1 < sizeof words; at++) {
            if (at == state) at += strlen("28P01: ");
            words[n++] = *at;
        }
    }
    words[n] = '\0';
    fail(c, HD_BUSY, words);
}

/* The connection is gone, and everything that the server knew of it. */
static void lose(conn *c) {
    if (c->c) {
        fail_by_loss(c);
        c->pq.PQfinish(c->c);
    }
    assert(!c->c || c->failure);
    c->c = NULL;
    memset(c->prepared, 0, sizeof c->prepared);
    memset(c->fresh, 0, sizeof c->fresh);
    c->queued = c->syncs = 0;
    c->begun = c->slow = false;
}

static bool is_lost(const conn *c) { return c->pq.PQstatus(c->c) == CONNECTION_BAD; }

/* ---- Answers -------------------------------------------------------------------------------- */

static bool is_leaving(const conn *c) { return c->leaving && atomic_load(c->leaving); }

static void fail_by_silence(conn *c) {
    c->silent = true;
    fail(c, HD_BUSY, "the server does not answer");
}

static int wait_on(const conn *c, struct pollfd *p, int ms) {
    env_pause(c->env, true);
    int ready = poll(p, 1, ms);
    env_pause(c->env, false);
    return ready;
}

/* Waits until the socket can be read, or written if not all has been sent. False: the server is silent. If this process
 * was stopped for a while, the time may be over although the server has answered: so the socket is looked at last. */
static bool wait_for_socket(conn *c, bool unsent) {
    uint64_t began = env_now_ns(c->env), most = c->url.answer_s * UINT64_C(1000000000);
    struct pollfd p = { c->pq.PQsocket(c->c), (short)(unsent ? POLLIN | POLLOUT : POLLIN), 0 };
    while (wait_on(c, &p, GLANCE_MS) <= 0) {
        bool bounded = most && (!c->slow || is_leaving(c));
        if (bounded && env_now_ns(c->env) - began >= most) return poll(&p, 1, 0) > 0;
    }
    return true;
}

static bool is_readable(const conn *c) {
    struct pollfd p = { c->pq.PQsocket(c->c), POLLIN, 0 };
    return poll(&p, 1, 0) > 0;
}

/* Waits until PQgetResult does not block: it has a result, or tells why there is none. False: the server is silent.
 * With TLS libpq may hold the end of a record that did not fit into its buffer, which the socket does not show. That is
 * less than the buffer has room for, so reading once more takes it. */
static bool wait_for_answer(conn *c) {
    while (c->pq.PQisBusy(c->c)) {
        int unsent = c->pq.PQflush(c->c);
        if (unsent < 0) return true;
        if (!wait_for_socket(c, unsent > 0)) return fail_by_silence(c), false;
        if (!c->pq.PQconsumeInput(c->c)) return true;
        if (!c->pq.PQisBusy(c->c) || is_readable(c)) continue;
        if (!c->pq.PQconsumeInput(c->c)) return true;
    }
    return true;
}

/* ---- Connecting ---------------------------------------------------------------------------- */

static void ignore_notice(void *ctx, const char *message) { (void)ctx, (void)message; }

/* Values in the address come later in the list, so libpq takes those; empty ones it leaves alone. */
static PGconn *start(conn *c) {
    const char *names[6 + HOSTS_LISTS + 1] = { "connect_timeout", "tcp_user_timeout",
                                               "keepalives_idle", "fallback_application_name",
                                               "dbname",          "client_encoding" };
    const char *values[6 + HOSTS_LISTS + 1] = { "5", "10000", "10", "heddle", c->url.text, "UTF8" };
    char lists[HOSTS_LISTS][HOSTS_SIZE];
    for (int i = 0; i < HOSTS_LISTS; i++) {
        hosts_list(&c->hosts, i, lists[i]);
        names[6 + i] = hosts_names[i];
        values[6 + i] = lists[i];
    }
    return c->pq.PQconnectStartParams(names, values, 1);
}

static bool wait_to_connect(conn *c, PostgresPollingStatusType what, uint64_t until) {
    uint64_t now = env_now_ns(c->env);
    if (now >= until) return false;
    struct pollfd p = { c->pq.PQsocket(c->c), what == PGRES_POLLING_READING ? POLLIN : POLLOUT, 0 };
    (void)wait_on(c, &p, (int)((until - now) / 1000000) + 1);
    return true;
}

static bool finish_connecting(conn *c, int ms) {
    uint64_t until = env_now_ns(c->env) + (uint64_t)ms * 1000000;
    PostgresPollingStatusType what = PGRES_POLLING_WRITING;
    if (is_lost(c)) return false;
    while (wait_to_connect(c, what, until)) {
        what = c->pq.PQconnectPoll(c->c);
        if (what == PGRES_POLLING_OK) return true;
        if (what == PGRES_POLLING_FAILED) return false;
    }
    fail_by_silence(c);
    hosts_turn(&c->hosts);
    return false;
}

/* The last result; NULL: it could not be sent, or the server is silent. */
static PGresult *exec_last(conn *c, const char *sql) {
    PGresult *last = NULL;
    if (!c->pq.PQsendQuery(c->c, sql)) return NULL;
    for (;;) {
        bool answered = wait_for_answer(c);
        PGresult *r = answered ? c->pq.PQgetResult(c->c) : NULL;
        if (r || !answered) c->pq.PQclear(last);
        if (!answered) return lose(c), NULL;
        if (!r) return last;
        last = r;
    }
}

PGresult *conn_exec(conn *c, const char *sql) {
    PGresult *r = exec_last(c, sql);
    ExecStatusType got = c->pq.PQresultStatus(r);
    if (got == PGRES_COMMAND_OK || got == PGRES_TUPLES_OK) return r;
    if (r && !is_lost(c)) fail_by(c, r);
    else if (!c->failure) fail_by_loss(c);
    c->pq.PQclear(r);
    return NULL;
}

/* False: the connection is lost. If the server refuses the statement, that is forgotten, and true. */
static bool exec_if_possible(conn *c, const char *sql) {
    PGresult *r = conn_exec(c, sql);
    c->pq.PQclear(r);
    if (r || is_lost(c)) return r != NULL;
    c->broken = false;
    c->failure = HD_OK;
    return true;
}

/* A standby refuses LISTEN, and other databases do not know it: the runtime then reads the log from time to time. */
static bool listen_if_possible(conn *c) {
    char sql[64];
    snprintf(sql, sizeof sql, "listen %s", c->channel ? c->channel : "");
    return !c->channel || exec_if_possible(c, sql);
}

/* If this process gives a connection up because a statement takes too long, the server notices within 10 s that the
 * client is gone, and ends the statement. Otherwise such statements would gather until there are too many
 * connections. */
static bool check_client_if_possible(conn *c) {
    return exec_if_possible(c, "set client_connection_check_interval to '10s'");
}

/* What every connection begins with. The server keeps the plan of a prepared statement. A plan that is made while the
 * log has a row or two, after a pruning, would read the whole log, also when it has grown: enable_seqscan is off to
 * prevent that. Every statement of a commit has an index. With enable_seqscan off the server takes statements without
 * an index for very expensive, and would compile them: so jit is off, too. Unless hd_options says
 * otherwise, commits wait for the disk, also if synchronous_commit is off by default for the server, the database or
 * the user. Any other default stays. */
static bool set_up(conn *c) {
    static const char waits[] = "select set_config('synchronous_commit', 'on', false)"
                                " where current_setting('synchronous_commit') = 'off'";
    char sql[800];
    char *schema = c->pq.PQescapeIdentifier(c->c, c->url.schema, strlen(c->url.schema));
    if (!schema) return false;
    snprintf(sql, sizeof sql,
             "set search_path to %s; set default_transaction_isolation to 'read committed';"
             " set client_min_messages to error; set statement_timeout to 0; set lock_timeout to 0;"
             " set idle_in_transaction_session_timeout to 0; set enable_seqscan to off;"
             " set jit to off; %s; show synchronous_commit",
             schema, c->soft ? "set synchronous_commit to off" : waits);
    c->pq.PQfreemem(schema);
    PGresult *r = conn_exec(c, sql);
    if (r) snprintf(c->waits, sizeof c->waits, "%s", word_at(c, r, 0, 0));
    c->pq.PQclear(r);
    return r && check_client_if_possible(c) && listen_if_possible(c) &&
           c->pq.PQenterPipelineMode(c->c);
}

static hd_status connect_within(conn *c, int ms) {
    assert(!c->c);
    c->failure = HD_OK;
    c->retry_ns = env_now_ns(c->env) + CONN_RETRY_MS * UINT64_C(1000000);
    c->c = start(c);
    if (!c->c) return c->broken = true, c->failure = HD_NOMEM;
    c->pq.PQsetNoticeProcessor(c->c, ignore_notice, NULL);
    c->refused = HD_OK;
    c->silent = false;
    c->pq.PQsetErrorVerbosity(c->c, PQERRORS_VERBOSE);
    bool connected = finish_connecting(c, ms);
    c->pq.PQsetErrorVerbosity(c->c, PQERRORS_DEFAULT);
    if (connected && !c->pq.PQsetnonblocking(c->c, 1) && set_up(c)) return HD_OK;
    if (!connected) fail_to_connect(c);
    lose(c);
    return c->failure;
}

/* A transaction that has lost its connection does not get another one. */
static hd_status ensure(conn *c) {
    if (c->c && !c->broken) return HD_OK;
    if (c->broken && c->mode != CONN_FREE) return c->failure ? c->failure : HD_BUSY;
    if (c->c) return c->broken = false, c->failure = HD_OK;
    if (env_now_ns(c->env) < c->retry_ns || (c->silent && is_leaving(c)))
        return c->failure = HD_BUSY;
    c->broken = false;
    c->again = true;
    return connect_within(c, RECONNECT_MS);
}

/* HD_USAGE: it is not written as an address is, or has a parameter that libpq does not know. */
static hd_status check_address(conn *c) {
    char *words = NULL;
    PQconninfoOption *options = c->pq.PQconninfoParse(c->url.text, &words);
    take_words(c, words);
    hd_status status = options ? HD_OK : words ? HD_USAGE : HD_NOMEM;
    for (const PQconninfoOption *o = options; o && o->keyword; o++)
        if (o->val) hosts_take(&c->hosts, o->keyword, o->val);
    hosts_taken(&c->hosts);
    c->pq.PQfreemem(words);
    c->pq.PQconninfoFree(options);
    return status;
}

/* Goes on to the next host if one is silent. */
static hd_status connect_first(conn *c) {
    hd_status status = connect_within(c, CONNECT_MS);
    for (unsigned i = 1; i < c->hosts.count && c->silent && !c->refused; i++)
        status = connect_within(c, CONNECT_MS);
    return status;
}

hd_status conn_open(conn *c, const char *name, const hd_env *env, hd_error *error) {
    c->env = env;
    hd_status status = pq_load(&c->pq, error);
    if (!status) status = url_init(&c->url, name, env, error);
    if (status) return status;
    status = check_address(c);
    if (!status) status = connect_first(c);
    /* If the first attempt fails the address may be wrong, so the caller is told. A connection that is lost later is
     * waited for. */
    if (status == HD_BUSY) status = c->refused ? c->refused : HD_IO;
    if (status) env_error(error, status, "%s: %s", c->url.shown, c->words);
    return status;
}

void conn_close(conn *c) {
    clear_results(c);
    if (c->c) c->pq.PQfinish(c->c);
    c->c = NULL;
    url_fini(&c->url, c->env);
}

/* ---- Parameters ----------------------------------------------------------------------------- */

static void add(conn_args *a, const char *bytes, size_t length) {
    assert(a->count < CONN_PARAMETERS);
    a->values[a->count] = bytes;
    a->lengths[a->count++] = (int)length;
}

void args_number(conn_args *a, int64_t n) {
    a->numbers[a->count] = htobe64((uint64_t)n);
    add(a, (const char *)&a->numbers[a->count], sizeof a->numbers[0]);
}

void args_bool(conn_args *a, bool b) { add(a, b ? "\1" : "\0", 1); }

void args_text(conn_args *a, row_text text) { add(a, text.bytes ? text.bytes : "", text.length); }

void args_text_or_null(conn_args *a, row_text text) {
    add(a, text.length ? text.bytes : NULL, text.length);
}

void args_word(conn_args *a, const char *word) { add(a, word, strlen(word)); }

void args_name(conn_args *a, const doc_name *n) {
    args_text(a, text_of_bytes(n->space, n->space_length));
    args_text(a, text_of_bytes(n->id, n->id_length));
    args_word(a, scope_word(n->scope));
    args_text(a, text_of_bytes(n->instance, n->instance_length));
}

/* ---- Sending --------------------------------------------------------------------------------- */

static Oid type_of(char letter) {
    switch (letter) {
    case 'n': return 20;   /* bigint */
    case 'b': return 16;   /* boolean */
    case 'y': return 17;   /* bytea */
    case 'T': return 1009; /* text[] */
    default: return 25;    /* text */
    }
}

enum { NAME_SIZE = 24 };

/* What was prepared before a failure may be there or not: the next attempt has another name. */
static void statement_name(const conn *c, pg_sql which, char out[NAME_SIZE]) {
    snprintf(out, NAME_SIZE, "s%d_%u", (int)which, (unsigned)c->tries[which]);
}

static bool prepare(conn *c, pg_sql which) {
    const pg_statement *s = &pg_statements[which];
    Oid types[CONN_PARAMETERS];
    char name[NAME_SIZE];
    int n = (int)strlen(s->types);
    assert(s->text && n <= CONN_PARAMETERS);
    if (c->prepared[which]) return true;
    for (int i = 0; i < n; i++) types[i] = type_of(s->types[i]);
    c->tries[which]++;
    statement_name(c, which, name);
    c->prepared[which] = c->fresh[which] = c->pq.PQsendPrepare(c->c, name, s->text, n, types);
    c->queued += c->prepared[which];
    return c->prepared[which];
}

static hd_status send(conn *c, pg_sql which, const conn_args *a) {
    static const conn_args none;
    int binary[CONN_PARAMETERS];
    char name[NAME_SIZE];
    if (!a) a = &none;
    assert(c->c && which < PG_SQL_COUNT_);
    assert(a->count == (int)strlen(pg_statements[which].types));
    for (int i = 0; i < CONN_PARAMETERS; i++) binary[i] = 1;
    bool sent = prepare(c, which);
    statement_name(c, which, name);
    sent =
        sent && c->pq.PQsendQueryPrepared(c->c, name, a->count, a->values, a->lengths, binary, 1);
    if (!sent) {
        lose(c);
        return c->failure;
    }
    c->queued++;
    c->slow = c->slow || pg_is_slow[which];
    c->statements++;
    for (int i = 0; i < a->count; i++) c->bytes += (size_t)a->lengths[i];
    return HD_OK;
}

static hd_status send_begin(conn *c) {
    static const pg_sql begins[] = { [CONN_READ] = PG_BEGIN_READ,
                                     [CONN_APPEND] = PG_BEGIN_READ,
                                     [CONN_SOFT] = PG_BEGIN_SOFT,
                                     [CONN_HOUSEWORK] = PG_BEGIN_HOUSEWORK };
    assert(c->mode != CONN_FREE && !c->begun);
    hd_status status = send(c, begins[c->mode], NULL);
    bool writes = c->mode == CONN_SOFT || c->mode == CONN_HOUSEWORK;
    if (!status && writes) status = send(c, PG_NO_WAIT, NULL);
    if (!status && c->mode == CONN_HOUSEWORK) status = send(c, PG_LOCK_HOUSE, NULL);
    if (!status) c->begun = true;
    return status;
}

void conn_begin(conn *c, conn_mode mode) {
    assert(c->mode == CONN_FREE && mode != CONN_FREE);
    c->mode = mode;
    c->broken = c->begun = false;
    c->failure = HD_OK;
}

/* What is sent together with an append, and needs no snapshot. */
static bool stands_alone(const conn *c, pg_sql which) {
    return c->mode == CONN_APPEND && (which == PG_LOG_APPEND || which == PG_LOG_CONTEND ||
                                      which == PG_LOG_WINNERS || which == PG_READER_PUT);
}

bool conn_has_room(const conn *c) { return c->queued < QUEUE_MAX && c->bytes < QUEUE_BYTES; }

hd_status conn_send(conn *c, pg_sql which, const conn_args *args) {
    hd_status status = ensure(c);
    if (!status && !conn_has_room(c)) status = conn_wait(c);
    if (!status && c->mode != CONN_FREE && !c->begun && !stands_alone(c, which))
        status = send_begin(c);
    return status ? status : send(c, which, args);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

static bool sync_now(conn *c) {
    c->queued = 0;
    c->bytes = 0;
    if (!c->pq.PQpipelineSync(c->c)) return false;
    c->syncs++;
    return true;
}

static void keep_rows(conn *c, PGresult *r) {
    if (c->count == CONN_RESULTS) { /* callers take the last results only */
        c->pq.PQclear(c->results[0]);
        memmove(c->results, c->results + 1, (CONN_RESULTS - 1) * sizeof *c->results);
        c->count--;
    }
    c->results[c->count++] = r;
}

/* One result. `ours`: it answers a statement that conn_wait waits for, and not one that was pushed before. */
static void take_result(conn *c, PGresult *r, bool ours) {
    switch (c->pq.PQresultStatus(r)) {
    case PGRES_PIPELINE_SYNC:
        assert(c->syncs); /* each answers one that was sent */
        c->syncs--;
        break;
    case PGRES_TUPLES_OK:
        if (!ours) break;
        c->affected = strtol(c->pq.PQcmdTuples(r), NULL, 10);
        keep_rows(c, r);
        return;
    case PGRES_COMMAND_OK:
        if (ours) c->affected = strtol(c->pq.PQcmdTuples(r), NULL, 10);
        break;
    case PGRES_FATAL_ERROR:
        if (ours) fail_by(c, r);
        else c->push_failed = true;
        break;
    default: break; /* the server has skipped the statement because of an earlier failure */
    }
    c->pq.PQclear(r);
}

/* After a failure the server skips everything up to the next sync, PREPAREs too. Which PREPAREs came before it is not
 * known: all that were sent since the last sync are sent again. */
static void forget_fresh(conn *c) {
    bool failed = c->failure || c->push_failed;
    for (int i = 0; i < PG_SQL_COUNT_; i++) {
        if (failed && c->fresh[i]) c->prepared[i] = false;
        c->fresh[i] = false;
    }
    c->push_failed = false;
}

static bool take_notifications(conn *c) {
    uint64_t before = c->heard;
    for (PGnotify *n; (n = c->pq.PQnotifies(c->c)); c->pq.PQfreemem(n)) {
        uint64_t row = strtoull(n->extra, NULL, 10);
        if (row > c->heard) c->heard = row;
    }
    return c->heard > before;
}

/* Takes the next result from libpq, or the NULL that stands between the results of two statements; *nulls counts those
 * in a row. False: libpq has nothing left, although answers are due. That happens when the server has closed the
 * connection, and PQstatus still calls it good. */
static bool take_next(conn *c, bool ours, int *nulls) {
    PGresult *r = c->pq.PQgetResult(c->c);
    *nulls = r ? 0 : *nulls + 1;
    if (r) take_result(c, r, ours);
    return *nulls < 3;
}

/* libpq holds a notification back until the results before it have been taken. So the results of pushed statements are
 * taken here, as far as they have arrived. False: the connection is lost. */
static bool take_pushed(conn *c) {
    int nulls = 0;
    while (c->syncs && !c->queued && !is_lost(c) && !c->pq.PQisBusy(c->c))
        if (!take_next(c, false, &nulls)) return false;
    return true;
}

bool conn_hear(conn *c) {
    if (!c->pq.PQconsumeInput(c->c) || !take_pushed(c)) return false;
    take_notifications(c);
    return true;
}

/* A notification that was read together with the answer to a statement: the socket will not tell of it. */
static void pass_on_notifications(conn *c) {
    if (c->c && c->channel && take_notifications(c) && c->heard_fd >= 0) bell_ring(c->heard_fd);
}

hd_status conn_wait(conn *c) {
    clear_results(c);
    c->affected = 0;
    if (!c->c) return c->failure ? c->failure : HD_BUSY;
    if (!sync_now(c)) return lose(c), c->failure;
    hd_status before = c->failure;
    c->failure = HD_OK;
    int nulls = 0;
    while (c->syncs && !is_lost(c) && wait_for_answer(c) && take_next(c, c->syncs == 1, &nulls))
        continue;
    if (c->syncs) lose(c);
    c->slow = false;
    pass_on_notifications(c);
    forget_fresh(c);
    if (!c->failure) c->failure = before;
    return c->failure;
}

hd_status conn_ask(conn *c, pg_sql which, const conn_args *args) {
    hd_status status = conn_send(c, which, args);
    if (!status) status = conn_wait(c);
    if (!status && !c->count) status = HD_IO;
    return status;
}

PGresult *conn_take(conn *c) {
    assert(c->count);
    return c->results[--c->count];
}

hd_status conn_each(conn *c, pg_sql which, const conn_args *args, conn_row_fn fn, void *ctx) {
    hd_status status = conn_ask(c, which, args);
    if (status) return status;
    PGresult *r = conn_take(c);
    bool stop = false;
    for (int i = 0; i < rows_of(c, r) && !status && !stop; i++) status = fn(ctx, c, r, i, &stop);
    c->pq.PQclear(r);
    return status;
}

void conn_push(conn *c) {
    if (c->c && c->queued && !sync_now(c)) lose(c);
}

/* ---- Ending ---------------------------------------------------------------------------------- */

hd_status conn_leave_snapshot(conn *c) {
    assert(c->mode == CONN_APPEND);
    if (!c->begun) return HD_OK;
    c->begun = false;
    return send(c, PG_COMMIT, NULL);
}

static void end(conn *c) {
    clear_results(c);
    assert(c->mode != CONN_FREE && !c->count);
    c->mode = CONN_FREE;
    c->begun = c->broken = false;
}

/* Reading transactions have nothing to commit. */
hd_status conn_commit(conn *c) {
    assert(c->mode != CONN_FREE);
    hd_status status = c->broken ? (c->failure ? c->failure : HD_BUSY) : HD_OK;
    if (!status && c->begun) status = send(c, PG_COMMIT, NULL);
    if (!status && c->queued) status = conn_wait(c);
    if (status) return status;
    end(c);
    return HD_OK;
}

void conn_rollback(conn *c) {
    if (c->mode == CONN_FREE) return;
    if (c->c && c->begun && !send(c, PG_ROLLBACK, NULL)) conn_push(c);
    end(c);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

int rows_of(const conn *c, const PGresult *r) { return c->pq.PQntuples(r); }

int64_t number_at(const conn *c, const PGresult *r, int row, int column) {
    uint64_t n = 0;
    assert(row >= 0 && row < rows_of(c, r));
    if (c->pq.PQgetlength(r, row, column) == sizeof n)
        memcpy(&n, c->pq.PQgetvalue(r, row, column), sizeof n);
    return (int64_t)be64toh(n);
}

bool bool_at(const conn *c, const PGresult *r, int row, int column) {
    return c->pq.PQgetlength(r, row, column) == 1 && *c->pq.PQgetvalue(r, row, column);
}

row_text text_at(const conn *c, const PGresult *r, int row, int column) {
    assert(row >= 0 && row < rows_of(c, r));
    return text_of_bytes(c->pq.PQgetvalue(r, row, column),
                         (size_t)c->pq.PQgetlength(r, row, column));
}

const char *word_at(const conn *c, const PGresult *r, int row, int column) {
    assert(row >= 0 && row < rows_of(c, r));
    return c->pq.PQgetvalue(r, row, column);
}
