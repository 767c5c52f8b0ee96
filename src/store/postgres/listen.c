/* listen.c -- LISTEN and NOTIFY.
 *
 * After a commit, and outside of it, a writer tells the others which row of the log it has appended: at once, but
 * TELL_BURST times at most faster than once in TELL_MS; the count begins anew with each row that answers one of another
 * process, so that two processes which answer each other are never held up. A NOTIFY inside the commit would make all
 * writers of a database wait for one another. The reading connection listens. A notification of a row that its runtime
 * has delivered already says nothing new: often it is our own. */
#define _GNU_SOURCE
#include "store/postgres/store.h"

#include "base/poller.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { TELL_MS = 10, TELL_BURST = 10 };
#define TELL_NS (TELL_MS * UINT64_C(1000000))

/* ---- Telling --------------------------------------------------------------------------------- */

/* In how many ms the others may be told again. */
static int due_in_ms(const pg_store *s) {
    uint64_t now = env_now_ns(s->conn.env), latest = now + TELL_BURST * TELL_NS;
    return s->tell_ns <= latest ? 0 : (int)((s->tell_ns - latest) / 1000000) + 1;
}

/* Sends the NOTIFY after the answers that were waited for, in an implicit transaction of its own. Nothing waits for
 * it. */
static void notify(pg_store *s) {
    char row[24];
    conn_args a = { 0 };
    assert(s->appended != s->notified && s->conn.mode == CONN_FREE);
    snprintf(row, sizeof row, "%" PRIu64, s->appended);
    args_word(&a, s->channel);
    args_word(&a, row);
    s->notified = s->appended;
    uint64_t now = env_now_ns(s->conn.env);
    s->tell_ns = (s->tell_ns > now ? s->tell_ns : now) + TELL_NS;
    if (!conn_send(&s->conn, PG_NOTIFY, &a)) conn_push(&s->conn);
}

/* While a transaction appends, any other statement would begin a snapshot. So the notification is sent when the
 * transaction has ended. */
void pg_tell(pg_store *s, uint64_t row) {
    assert(row && s->conn.mode == CONN_APPEND);
    s->appended = row;
    if (s->base.answers) s->tell_ns = 0;
}

bool pg_has_work(const log_store *s) {
    const pg_store *mine = pg_of(s);
    return mine->appended != mine->notified && !due_in_ms(mine);
}

void pg_work(log_store *s) {
    if (pg_of(s)->appended != pg_of(s)->notified) notify(pg_of(s));
}

int pg_work_in_ms(const log_store *s) {
    const pg_store *mine = pg_of(s);
    return mine->appended == mine->notified ? -1 : due_in_ms(mine);
}

/* ---- Hearing --------------------------------------------------------------------------------- */

static bool watch_fd(const pg_store *s, int fd) {
    return fd >= 0 && s->set >= 0 && poller_add(s->set, fd, POLLER_IN);
}

/* Watches the socket of the present connection. A connection that was lost and made anew has another socket; the closed
 * one leaves the set by itself. If the socket is in the set already, watch_fd fails, and nothing is to be done. */
static void watch_socket(pg_store *s) {
    if (s->conn.c) (void)watch_fd(s, s->conn.pq.PQsocket(s->conn.c));
}

/* Without descriptors the store is looked at from time to time. */
void pg_listen_open(pg_store *s) {
    assert(s->set < 0 && s->conn.channel); /* the connection listens */
    s->set = poller_open();
    s->conn.heard_fd = bell_open();
    (void)watch_fd(s, s->conn.heard_fd);
    watch_socket(s);
}

void pg_listen_close(pg_store *s) {
    if (s->set >= 0) close(s->set);
    if (s->conn.heard_fd >= 0) close(s->conn.heard_fd);
    s->set = s->conn.heard_fd = -1;
}

int pg_notify_fd(log_store *s) { return pg_of(s)->set; }

/* LISTEN stays in force, so there is nothing to ask for again. */
bool pg_notify_arm(log_store *s) {
    watch_socket(pg_of(s));
    return true;
}

uint64_t pg_notify_take(log_store *s) {
    conn *c = conn_of(s);
    if (c->heard_fd >= 0) (void)bell_take(c->heard_fd);
    watch_socket(pg_of(s));
    /* The connection is lost: the next read finds that out, and connects again. */
    if (c->c && !conn_hear(c)) return UINT64_MAX;
    return c->heard;
}
