/* conn.h -- one connection to a server: sending statements, taking results, coming back after a loss.
 *
 * Statements are sent in libpq's pipeline mode. A statement that only writes is queued and not waited for: if it fails,
 * the next function that waits returns the failure, and the transaction fails. A BEGIN is sent together with the first
 * statement of its transaction. So a transaction costs as many round trips as it has answers to wait for.
 *
 *     begin_read, get_number, read_after, rollback     BEGIN+SELECT | SELECT | ROLLBACK, not waited for
 *     begin_write(durable), append, commit             INSERT                         one round trip, one fsync
 *     begin_write(housework), put_head..., commit      BEGIN+lock | inserts, COMMIT
 *
 * A durable write transaction is the append of one row of the log, which needs no BEGIN. What is read before it,
 * to judge commits, is read in a transaction of its own that the append ends: the row's number proves that
 * nothing was appended in between.
 *
 * When the connection is lost, what is under way fails with HD_BUSY, and so does everything until the
 * transaction is rolled back. The next one connects again, at most once in CONN_RETRY_MS.
 *
 * A connection is lost, too, if the server is silent: while an answer is waited for, nothing could be read or written
 * for as long as the address says (url.answer_s). For statements that may take long (pg_is_slow) that holds only
 * while the runtime is being closed. */
#ifndef STORE_POSTGRES_CONN_H
#define STORE_POSTGRES_CONN_H

#include "store/log/backend.h"
#include "store/postgres/hosts.h"
#include "store/postgres/pq.h"
#include "store/postgres/sql.h"
#include "store/postgres/url.h"

enum { CONN_PARAMETERS = 15, CONN_RESULTS = 4, CONN_WORDS = 200 };

/* What stands in a transaction. */
typedef enum conn_mode { CONN_FREE, CONN_READ, CONN_APPEND, CONN_SOFT, CONN_HOUSEWORK } conn_mode;

typedef struct conn {
    pq pq;
    const hd_env *env; /* the store's */
    url url;
    hosts hosts;    /* of the address */
    PGconn *c;      /* NULL: not connected */
    bool soft;      /* commits do not wait for the disk: HD_DURABILITY_NORMAL */
    char waits[16]; /* synchronous_commit: that of the server, but "off" only if `soft` */
    const atomic_bool *leaving; /* log_store.leaving; NULL: never. Borrowed */
    const bool *opened;         /* log_store.opened. Borrowed */
    bool again;                 /* it is not the first connection: a program has used the store */
    const char *channel;        /* what to LISTEN to; NULL: nothing. Borrowed */
    uint64_t heard;             /* the last row that a notification has named */
    int heard_fd; /* a bell, rung when `heard` grew while a statement was waited for; -1: none */
    bool prepared[PG_SQL_COUNT_];
    bool fresh[PG_SQL_COUNT_];     /* prepared since results were last waited for */
    bool push_failed;              /* the server has refused a pushed statement since then */
    uint32_t tries[PG_SQL_COUNT_]; /* how often it was prepared: a part of its name on the server */
    conn_mode mode;
    bool begun;  /* the server has a transaction, or will have with what is queued */
    bool broken; /* the connection was lost, or a statement failed, in the present transaction */
    bool slow;   /* a statement that was sent since results were last waited for may take long */
    bool
        silent; /* the last connection, or attempt to connect, was given up since the server was silent */
    unsigned queued; /* statements since the last sync */
    size_t bytes;    /* of their parameters */
    unsigned syncs;  /* sent, and not heard of */
    /* Of the last attempt to connect: why the server refused it, if it would refuse the next one, too. HD_OK: the
     * attempt succeeded, or the next one may. */
    hd_status refused;
    uint64_t retry_ns; /* no attempt to connect before this */
    PGresult
        *results[CONN_RESULTS]; /* those with rows, of the statements that were last waited for */
    unsigned count;
    long affected; /* rows that the last statement inserted, changed or deleted */
    hd_status failure;
    char words[CONN_WORDS]; /* what the server or libpq said of it */
    uint64_t statements;    /* sent in all, for the figures */
} conn;

/* Connects, and waits for the connection. HD_USAGE (the address is wrong), HD_IO and others, with an error. Call
 * conn_close in any case. */
hd_status conn_open(conn *c, const char *name, const hd_env *env, hd_error *error);
void conn_close(conn *c);
/* Runs a text of several statements, and waits. Outside of pipelines and transactions: for opening. NULL: it
 * failed. The result is the last one's; clear it. */
PGresult *conn_exec(conn *c, const char *sql);

/* The parameters of a statement. Texts are borrowed until it is sent. */
typedef struct conn_args {
    int count;
    const char *values[CONN_PARAMETERS];
    int lengths[CONN_PARAMETERS];
    uint64_t numbers[CONN_PARAMETERS]; /* as they are sent */
} conn_args;

void args_number(conn_args *a, int64_t n);
void args_bool(conn_args *a, bool b);
void args_text(conn_args *a, row_text text);         /* an empty one is an empty text */
void args_text_or_null(conn_args *a, row_text text); /* or NULL */
void args_word(conn_args *a, const char *word);      /* ends with a NUL */
void args_name(conn_args *a, const doc_name *name);  /* space, id, scope, instance */

void conn_begin(conn *c, conn_mode mode);
/* Queues a statement. */
hd_status conn_send(conn *c, pg_sql which, const conn_args *args);
/* Whether the next conn_send only queues. Else it first waits for what is queued, whose results are then gone. */
bool conn_has_room(const conn *c);
/* Waits for everything that is queued. Results with rows are in `results`, until the next call. */
hd_status conn_wait(conn *c);
/* Both: the rows are in results[count - 1]. */
hd_status conn_ask(conn *c, pg_sql which, const conn_args *args);
/* Gives the last result away. */
PGresult *conn_take(conn *c);
/* Sends what is queued without waiting. */
void conn_push(conn *c);
/* Takes the notifications that have come into `heard`, without waiting. False: the connection is lost. */
bool conn_hear(conn *c);
/* Ends the server's transaction without ending the mode: before an append. */
hd_status conn_leave_snapshot(conn *c);
hd_status conn_commit(conn *c);
void conn_rollback(conn *c);

/* Asks, and calls fn for each row, until it fails or sets *stop. The callback may ask for other things. */
typedef hd_status (*conn_row_fn)(void *ctx, const conn *c, const PGresult *r, int row, bool *stop);
hd_status conn_each(conn *c, pg_sql which, const conn_args *args, conn_row_fn fn, void *ctx);

/* ---- Rows of a result */

int rows_of(const conn *c, const PGresult *r);
int64_t number_at(const conn *c, const PGresult *r, int row, int column);
bool bool_at(const conn *c, const PGresult *r, int row, int column);
/* Ends with a NUL; empty for NULL. Borrowed from the result. */
row_text text_at(const conn *c, const PGresult *r, int row, int column);
const char *word_at(const conn *c, const PGresult *r, int row, int column);

#endif
