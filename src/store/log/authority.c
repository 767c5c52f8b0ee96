/* authority.c -- the authority's operations, put together from writer, client and wake.
 *
 *     submit, flush    commits as bytes, to the writer
 *     poll             outcomes from the writer, each after the rows before it; others' rows
 *     load, list       the reading connection, at our position in the log
 *
 * What our own writer has appended right behind our position needs no SQL at all: its outcome says
 * everything. */
#include "store/log/authority.h"

#include "base/env.h"
#include "base/hash.h"
#include "store/log/changes.h"
#include "store/log/client.h"
#include "store/log/encode.h"
#include "store/log/list.h"
#include "store/log/memo_read.h"
#include "store/log/presence.h"
#include "store/log/wake.h"
#include "store/log/writer.h"
#include <errno.h>
#include <string.h>

/* How often the store is looked at where no notifications come. */
#define LOOK_BLIND_NS UINT64_C(250000000)
/* A notification may come when a commit is being written, before a reader can see it, and none comes afterwards
 * (SQLite: the WAL file is written first). So after a notification the store is looked at again, soon and then less and
 * less often, as long as a write transaction is under way. Asking whether one is (is_being_written) delays a
 * transaction that is about to begin, so that is asked only LOOK_ASK_NS after the last write. Then a runtime at rest
 * looks at nothing until the next notification. */
#define LOOK_SOON_NS  UINT64_C(500000)
#define LOOK_ASK_NS   UINT64_C(2000000)
#define LOOK_LATER_NS UINT64_C(128000000)
/* How often a runtime that is busy looks whether the file still has its name. */
#define NAME_NS UINT64_C(1000000000)
/* How soon a store that could not be reached is looked at again. */
#define RETRY_NS UINT64_C(100000000)
/* For how long a store that is waited for could not be read when that is logged. */
#define UNREAD_NS UINT64_C(1000000000)
/* How often a runtime that follows a space says how far it has come, at most. */
#define REPORT_NS UINT64_C(1000000000)

typedef struct log_authority {
    authority base;
    hd_env env;
    writer *writer; /* NULL: read-only */
    client client;
    wake wake;
    encoder encoder;
    json_buffer batch;   /* messages since the last flush */
    bool pushed;         /* the writer has messages that it was not told to start on */
    bool decided;        /* outcomes of a turn of ours are ready */
    uint32_t in_flight;  /* commits without a delivered verdict */
    uint32_t batched;    /* of them: in the batch */
    uint32_t undecided;  /* of them: the writer has them, and has told no verdict */
    outcome *waiting;    /* taken from the writer, not delivered */
    uint32_t next_item;  /* of the first */
    uint64_t folded;     /* the checkpoint's row, as last heard from the writer */
    uint64_t look_to;    /* others may have written up to this row; UINT64_MAX: up to any */
    uint64_t look_at_ns; /* when to look in any case; UINT64_MAX: when a notification comes */
    bool look_waits;     /* no look before look_at_ns, whatever cause there is: see look_later */
    bool look_asked;     /* the program has asked for a look: the next one is not put off */
    bool expects;        /* rows may be there, or come soon, of which no notification tells */
    bool look_is_net;    /* that look is made only because a notification may be lost */
    uint64_t look_in_ns; /* after a write: how long until the next look, if there is one */
    bool follows;        /* has a row among the readers: pruning waits for us */
    bool warned;         /* of the last attempt to register as a reader, which has failed */
    uint64_t reported;   /* the position that was last handed to the writer for that row */
    uint64_t report_ns;  /* when the next may be */
    uint64_t unread_ns;  /* since when looks have failed; 0: the last one has not */
    uint64_t unread_for; /* after how long that is logged, or logged again with other words */
    uint64_t unread_as;  /* the hash of the words that were logged; 0: none were */
    uint64_t retry_ns;   /* the store could not be reached: when to try again; 0: it could */
    hd_error trouble;    /* what keeps the writer from writing; its status is HD_OK: nothing */
    uint64_t name_at_ns; /* when to look whether the file still has its name */
    bool gone;           /* it has not: only check_name sets this, and it stays */
    uint32_t checks;     /* how often log_check was called */
} log_authority;

static log_authority *self(const authority *a) { return (log_authority *)(void *)a; }

/* ---- Submitting -------------------------------------------------------------------------------- */

/* The spaces whose seqs the verdict will bring, in the writer's order. */
static hd_status list_spaces(log_authority *s, commit *c) {
    assert(!c->seqs.count);
    const encoder *e = &s->encoder;
    if (!vec_room(s->client.r->env, &c->seqs, e->spaces.count)) return HD_NOMEM;
    for (uint32_t i = 0; i < e->spaces.count; i++)
        c->seqs.items[c->seqs.count++] = (space_seq){ key_ref(e->spaces.items[i]), 0 };
    return HD_OK;
}

static hd_status log_submit(authority *a, commit *c) {
    log_authority *s = self(a);
    if (!s->writer) return HD_READ_ONLY;
    assert(c->local_seq && c->local_seq < a->replica->next_local);
    size_t before = s->batch.length;
    hd_status status = encode_commit(&s->encoder, c, &s->batch);
    if (!status) status = list_spaces(s, c);
    if (status) s->batch.length = before;
    else s->in_flight++, s->batched++;
    return status;
}

/* Before a reload nothing more is given to the writer: see advance. Without memory the batch stays, too, and poll tries
 * again. */
static void log_flush(authority *a) {
    log_authority *s = self(a);
    assert(!s->batch.length || s->in_flight);
    if (!s->batch.length || s->client.gap) return;
    if (writer_push(s->writer, &s->batch, s->client.position)) return;
    s->pushed = true;
    s->undecided += s->batched;
    s->batched = 0;
}

static void log_start(authority *a) {
    log_authority *s = self(a);
    if (s->pushed) writer_start(s->writer);
    s->pushed = false;
}

static bool log_turn(authority *a) {
    log_authority *s = self(a);
    if (!s->pushed) return false;
    bool done = writer_turn(s->writer);
    if (done) s->pushed = false;
    s->decided |= done;
    log_start(a);
    return done;
}

/* ---- Polling ------------------------------------------------------------------------------------ */

static void take_outcomes(log_authority *s) {
    assert(s->writer);
    uint64_t folded, heard;
    outcome **end = &s->waiting;
    while (*end) end = &(*end)->next;
    *end = writer_take(s->writer, s->client.position, &folded, &heard, &s->trouble);
    for (const outcome *o = *end; o; o = o->next) {
        assert(s->undecided >= o->items.count);
        s->undecided -= o->items.count;
    }
    if (heard > s->look_to) s->look_to = heard; /* a notification may be lost */
    if (folded != s->folded) client_trim(&s->client, folded);
    s->folded = folded;
}

/* One verdict. What is noted before the replica is told may be noted twice without harm. */
static hd_status deliver_item(log_authority *s, const outcome *o, const outcome_item *item) {
    assert(item->local_seq);
    replica *r = s->base.replica;
    commit *c = LIST_ENTRY(list_first(&r->pending), commit, link);
    assert(!list_empty(&r->pending) && c->local_seq == item->local_seq);
    if (item->status) return replica_reject(r, c, item->status);
    for (uint32_t i = 0; i < c->seqs.count && i < item->seq_count; i++)
        c->seqs.items[i].seq = o->seqs.items[item->first_seq + i];
    if (c->state == COMMIT_IN) return replica_absorb(r, c), HD_OK;
    hd_status status = client_note_own(&s->client, c, o->row);
    if (!status) replica_accept(r, c);
    return status;
}

/* The commits whose verdicts wait: those that were accepted are in the store. */
static void mark_stored(log_authority *s) {
    const outcome *o = s->waiting;
    uint32_t at = s->next_item;
    LIST_FOR (n, &s->base.replica->pending) {
        while (o && at == o->items.count) o = o->next, at = 0;
        if (!o) return;
        commit *c = LIST_ENTRY(n, commit, link);
        assert(c->local_seq == o->items.items[at].local_seq);
        bool stored = !o->items.items[at++].status && c->state == COMMIT_SENT;
        if (stored && !SABOTAGED(s->client.store, LOG_LEAVE_OUT_ABSORB)) c->state = COMMIT_IN;
    }
}

/* A document that is read anew contains those of our commits that are stored. Then nothing may be read through the
 * layer of such a commit: a claim cannot express a commit that is both in the document and in a layer. So before a
 * reload the writer decides the commits that it has, and is given no more; until then the replica stays where it is. */
static hd_status advance(log_authority *s, uint64_t until) {
    hd_status status = client_advance(&s->client, until);
    if (status || !s->client.gap) return status;
    if (s->undecided) return client_release(&s->client), HD_OK;
    mark_stored(s);
    return client_reload(&s->client);
}

/* Up to where the verdicts of an outcome hold. */
static hd_status advance_to(log_authority *s, const outcome *o) {
    client *c = &s->client;
    if (c->gap || c->torn || !passed_has(&o->passed, c->position, o->before))
        return advance(s, o->before);
    return client_advance_passed(c, &o->passed, o->before, o->checkpoint);
}

static hd_status deliver(log_authority *s) {
    while (s->waiting) {
        outcome *o = s->waiting;
        assert(o->before <= o->row && s->next_item <= o->items.count && !s->client.telling);
        bool behind =
            o->before > s->client.position && !SABOTAGED(s->client.store, LOG_LEAVE_OUT_BEFORE);
        behind |= s->client.gap;
        hd_status status = behind ? advance_to(s, o) : HD_OK;
        if (!status && s->client.gap) return HD_OK;
        s->base.sync_ns = o->sync_ns;
        s->client.telling = o->row; /* a listener that loads a document finds it as of this row */
        for (; s->next_item < o->items.count && !status; s->next_item++) {
            status = deliver_item(s, o, &o->items.items[s->next_item]);
            if (status) break;
            assert(s->in_flight);
            s->in_flight--;
        }
        s->client.telling = 0;
        if (status) return status;
        if (o->row > s->client.position) client_stand_at(&s->client, o->row);
        s->waiting = o->next;
        s->next_item = 0;
        outcome_free(&s->env, o);
    }
    return HD_OK;
}

/* `expected`: rows may be there, or come soon, of which no notification tells. */
static void plan_look(log_authority *s, uint64_t now, bool expected) {
    assert(s->look_in_ns >= LOOK_SOON_NS && s->look_in_ns < 2 * LOOK_LATER_NS);
    /* A server tells of rows that can be seen. */
    s->expects = expected && !s->client.store->optimistic;
    if (expected) {
        s->look_at_ns = now + s->look_in_ns;
        if (s->look_in_ns < LOOK_LATER_NS) s->look_in_ns *= 2;
    } else {
        uint64_t in_ns = wake_watches(&s->wake) ? s->client.store->look_ns : LOOK_BLIND_NS;
        s->look_at_ns = in_ns == UINT64_MAX ? UINT64_MAX : now + in_ns;
    }
    s->look_is_net = !expected && wake_watches(&s->wake);
}

/* Whether a commit may become visible for which no notification will come. Asked before the log is read, so that a
 * commit that ends in between is found by the reading. */
static bool may_be_written(const log_authority *s) {
    log_store *store = s->client.store;
    if (!wake_watches(&s->wake)) return s->look_in_ns < LOOK_ASK_NS;
    return s->look_in_ns < LOOK_ASK_NS || store->ops->is_being_written(store);
}

/* Whether a document was loaded in a later state than the others, which have to catch up; or a reload is due. */
static bool is_behind(const log_authority *s) {
    return s->base.replica->ahead.count > 0 || s->client.gap;
}

/* Until when a look is not needed that would be made only because a notification may be lost: the writer's beats look
 * for rows, too, and until then they are known to come. */
static uint64_t net_until(const log_authority *s) {
    return s->writer && s->look_is_net ? presence_until(s->writer) : 0;
}

/* Whether a notification was for a row that we have not read. Rows up to the position have been read, many of them with
 * the outcomes of our own commits, after the notification had come. */
static bool has_heard(const log_authority *s) { return s->look_to > s->client.position; }

/* Others have written, or may do so without a notification. */
static bool has_cause_to_look(const log_authority *s) {
    return has_heard(s) || (wake_watches(&s->wake) && !s->wake.armed);
}

static bool is_time_to_look(const log_authority *s, uint64_t now) {
    if (is_behind(s)) return true;
    if (s->in_flight) return false; /* their outcomes will tell of everything before them */
    if ((has_cause_to_look(s) || s->expects) && !s->look_waits) return true;
    return now >= s->look_at_ns && now >= net_until(s);
}

/* Reads what is new. Where nothing has been heard there most often is nothing, and a backend may find that out at
 * less cost. */
static hd_status look_for_rows(log_authority *s) {
    log_store *store = s->client.store;
    bool any = true;
    hd_status status = HD_OK;
    if (store->ops->has_after && !has_heard(s) && !is_behind(s))
        status = store->ops->has_after(store, s->client.position, &any);
    return status || !any ? status : advance(s, UINT64_MAX);
}

/* A runtime with commits under way is told by its writer that the store cannot be reached. One without finds out here.
 * It is logged once, and again, after ever longer times, if the words are others: while a database is being dropped the
 * server does not answer, and later it says why. */
static void note_look(log_authority *s, uint64_t now, hd_status status) {
    log_store *store = s->client.store;
    if (!status && s->unread_as)
        env_log(&s->env, HD_LOG_INFO, "%s can be read again", store->shown);
    if (!status) s->unread_ns = s->unread_as = 0;
    if (status != HD_BUSY || !store->patient) return;
    if (!s->unread_ns) s->unread_ns = now | 1, s->unread_for = UNREAD_NS; /* 0 means never */
    if (now < s->unread_ns + s->unread_for) return;
    const char *words = log_store_words(store, status);
    uint64_t as = hash_bytes(words, strlen(words), 0) | 1;
    if (as == s->unread_as) return;
    s->unread_as = as;
    s->unread_for *= 2;
    log_store_failure(store, status, "reading", &s->base.replica->error);
    env_log(&s->env, HD_LOG_ERROR, "%s (%s); trying on", s->base.replica->error.message,
            hd_status_name(status));
}

/* Looks for others' rows. */
static hd_status look(log_authority *s) {
    uint64_t now = env_now_ns(&s->env);
    if (!is_time_to_look(s, now)) return HD_OK;
    s->look_waits = s->look_asked = false;
    wake_arm(&s->wake); /* first, so that no write falls in between */
    bool expected = may_be_written(s);
    hd_status status = look_for_rows(s);
    note_look(s, now, status);
    plan_look(s, now, expected || status);
    if (!status) s->look_to = 0;
    return status == HD_BUSY ? HD_OK : status; /* busy: looked for again in the next poll */
}

/* After a verdict no look is needed at once: the outcome has brought all rows before its own, and a program that
 * commits again and again gets the later rows with the next outcome. On a file a look would also ask for the next
 * notification, and our own next commit would cause that, in the middle of its sync. */
static void look_later(log_authority *s) {
    bool named = has_heard(s) && s->look_to != UINT64_MAX; /* a row of another, which can be seen */
    s->look_waits = has_cause_to_look(s) && !s->look_asked && !named;
    if (!s->look_waits) return;
    s->look_in_ns = LOOK_SOON_NS;
    plan_look(s, env_now_ns(&s->env), true);
}

static void log_look(authority *a) {
    self(a)->look_asked = true;
    self(a)->look_waits = false;
}

static bool has_news(const log_authority *s) {
    return s->follows && s->client.position != s->reported;
}

static void report_position(log_authority *s) {
    assert(s->writer && s->follows);
    uint64_t now = env_now_ns(&s->env);
    if (now < s->report_ns) return;
    s->reported = s->client.position;
    s->report_ns = now + REPORT_NS;
    writer_report(s->writer, s->reported);
}

/* A file that was deleted or replaced while it was open can be written to, and all of it is lost with the
 * last program that has it open: nothing more is read or written here. */
static hd_status check_name(log_authority *s, bool told) {
    uint64_t now = env_now_ns(&s->env);
    log_store *store = s->client.store;
    const char *name = store->shown;
    if (!s->gone && (told || now >= s->name_at_ns)) {
        s->name_at_ns = now + NAME_NS;
        s->gone = store->ops->is_lost(store);
        if (s->gone)
            env_log(&s->env, HD_LOG_ERROR, "%s or its -wal file was deleted or replaced while open",
                    name);
    }
    if (!s->gone) return HD_OK;
    s->base.replica->lost = true;
    env_error(
        &s->base.replica->error, HD_NOT_FOUND,
        "%s or its -wal file was deleted or replaced while it was open: close it, and open it "
        "again",
        name);
    return HD_NOT_FOUND;
}

/* A store that cannot be reached will be reached again: until then hd_runtime_error says what is waited for. A
 * runtime that is being closed does not wait. */
static hd_status be_patient(log_authority *s, hd_status status) {
    assert(!s->retry_ns); /* poll_once has begun anew */
    bool wait = status == HD_BUSY && s->client.store->patient && !s->base.replica->leaving;
    if (wait) s->retry_ns = env_now_ns(&s->env) + RETRY_NS;
    return wait ? HD_OK : status;
}

/* From now on a server that is silent is not asked again: hd_close returns within a bounded time. */
static void leave(log_authority *s) {
    atomic_store(&s->client.store->leaving, true);
    if (s->writer) writer_leave(s->writer);
}

static hd_status poll_once(authority *a) {
    log_authority *s = self(a);
    if (a->replica->leaving) leave(s);
    bool outcomes;
    uint64_t written;
    wake_take(&s->wake, s->client.position, &outcomes, &written);
    if (written > s->look_to) s->look_to = written;
    if (written == UINT64_MAX) s->look_in_ns = LOOK_SOON_NS;
    else if (written) s->look_waits = false; /* the row can be seen already */
    if (check_name(s, written != 0)) return HD_NOT_FOUND;
    client_release(&s->client);
    log_flush(a);
    if (s->writer && (outcomes || s->decided)) take_outcomes(s);
    s->decided = false;
    s->retry_ns = 0;
    /* Telling verdicts takes long, since their functions do what comes next. The writer is woken first, so that it
     * works on the queued commits meanwhile. */
    bool has_verdicts = s->waiting != NULL;
    if (has_verdicts) log_start(a);
    hd_status status = deliver(s);
    if (has_verdicts) look_later(s);
    if (!status) status = look(s);
    if (status) log_store_failure(s->client.store, status, "reading", &s->base.replica->error);
    if (has_news(s)) report_position(s);
    log_flush(a); /* what a reload has held back */
    bool unsent = s->batch.length && !s->client.gap;
    if (!status && unsent) status = HD_NOMEM; /* said, and tried again next time */
    if (status || !s->in_flight || !s->trouble.status) return be_patient(s, status);
    s->base.replica->error = s->trouble;
    return be_patient(s, s->trouble.status);
}

static bool is_stepped(const log_authority *s) { return s->writer && s->client.store->stepped; }

static hd_status log_poll(authority *a) {
    log_authority *s = self(a);
    hd_status status = poll_once(a);
    if (is_stepped(s)) writer_step(s->writer); /* its outcomes come with the next poll */
    return status;
}

/* ---- The rest ------------------------------------------------------------------------------------ */

static hd_status log_load(authority *a, place_id doc, loaded *out) {
    log_authority *s = self(a);
    hd_status status = client_load(&s->client, doc, out);
    if (status) log_store_failure(s->client.store, status, "reading", &s->base.replica->error);
    if (out->ahead) { /* a transaction may wait until the other documents have caught up */
        s->look_at_ns = 0;
        s->look_is_net = false;
    }
    return status;
}

static void log_rest(authority *a) { client_release(&self(a)->client); }

static bool log_idle(const authority *a) { return self(a)->in_flight == 0; }
bool log_authority_decided(const authority *a) {
    const log_authority *s = self(a);
    return !s->batch.length && (!s->writer || writer_idle(s->writer));
}
void log_authority_look(authority *a) {
    self(a)->look_to = UINT64_MAX;
    log_look(a);
}
struct fold_counts log_authority_folds(const authority *a) {
    return writer_folds(self(a)->writer);
}
/* A runtime that only reads forgets nothing, keeps no derived state, and claims nothing. */
static bool log_has_writer(const authority *a) { return self(a)->writer != NULL; }

static hd_status log_follow(authority *a, struct key *space) {
    log_authority *s = self(a);
    log_space *entry;
    hd_status status = client_space_at(&s->client, space, &entry);
    if (status) return status;
    entry->followed = true;
    /* Without a row among the readers we would still see every change, but only the sum of those
     * that were pruned before we looked. */
    if (!s->writer) return HD_OK;
    s->follows = !writer_do(s->writer, COMMAND_REGISTER, NULL);
    if (!s->follows && !s->warned)
        env_log(&s->env, HD_LOG_WARN, "%s: not registered as a reader", s->client.store->shown);
    s->warned = !s->follows;
    return HD_OK;
}

static hd_status log_stay(authority *a) {
    log_authority *s = self(a);
    assert(a->remote);
    if (!s->writer) return HD_READ_ONLY;
    uint64_t until = presence_until(s->writer);
    if (until) return until > env_now_ns(&s->env) ? HD_OK : HD_BUSY; /* beats go on by themselves */
    client_release(&s->client);
    return writer_do(s->writer, COMMAND_STAY, &a->replica->error);
}

static uint64_t log_present_until(authority *a) {
    return self(a)->writer ? presence_until(self(a)->writer) : 0;
}

static hd_status log_lasts(authority *a, const char *session, uint32_t *ms) {
    log_authority *s = self(a);
    log_store *store = s->client.store;
    uint64_t now = env_now_ns(&s->env);
    uint64_t until = s->writer ? presence_of(s->writer, session) : 0;
    if (until > now) return *ms = (uint32_t)((until - now) / 1000000) + 1, HD_OK;
    hd_status status = store->ops->lasts(store, session, ms);
    if (!status && s->writer)
        presence_note(s->writer, session, *ms ? now + *ms * UINT64_C(1000000) : 0);
    return status;
}

static void log_unfollow(authority *a, const struct key *space) {
    log_authority *s = self(a);
    for (uint32_t i = 0; i < s->client.spaces.items.count; i++)
        if (s->client.spaces.items.items[i].name == space)
            s->client.spaces.items.items[i].followed = false;
}

static int log_fd(authority *a) { return self(a)->wake.set; }

static uint64_t log_deadline(authority *a) {
    const log_authority *s = self(a);
    if (s->retry_ns) return s->retry_ns;
    bool held = s->client.gap && s->undecided; /* by a reload that waits for the writer */
    if ((!held && (s->waiting || s->batch.length)) || a->replica->holding) return 0;
    if (s->in_flight) return is_stepped(s) ? 0 : UINT64_MAX; /* the writer will wake us */
    uint64_t net = net_until(s), look_ns = net > s->look_at_ns ? net : s->look_at_ns;
    return has_news(s) && s->report_ns < look_ns ? s->report_ns : look_ns;
}

static hd_status log_list(authority *a, struct key *space, const list_range *range, hd_list_fn fn,
                          void *ctx) {
    log_authority *s = self(a);
    hd_status status = client_list(&s->client, space, range, fn, ctx);
    if (status) log_store_failure(s->client.store, status, "reading", &s->base.replica->error);
    return status;
}

static hd_status log_space_names(authority *a, hd_space_fn fn, void *ctx) {
    const client *c = &self(a)->client;
    for (uint32_t i = 0; i < c->spaces.items.count; i++)
        if (c->spaces.items.items[i].seq && !fn(key_bytes(c->spaces.items.items[i].name), ctx))
            break;
    return HD_OK;
}

static hd_status command(authority *a, writer_command what, hd_error *error) {
    log_authority *s = self(a);
    client_release(&s->client);
    if (s->writer) writer_report(s->writer, s->client.position);
    if (s->writer) return writer_do(s->writer, what, error);
    env_error(error, HD_READ_ONLY, "the store was opened read-only");
    return HD_READ_ONLY;
}
static hd_status log_checkpoint(authority *a, hd_error *error) {
    return command(a, COMMAND_CHECKPOINT, error);
}
/* So many documents are read from the log one by one in less time than folding takes to begin. */
enum { FEW_DOCUMENTS = 100 };

static void log_expect_loads(authority *a) {
    log_authority *s = self(a);
    client *c = &s->client;
    if (!s->writer || c->tail.docs.count <= FEW_DOCUMENTS) return;
    if (command(a, COMMAND_FOLD, NULL) || client_snapshot(c)) return;
    if (c->checkpoint <= c->position) client_trim(c, c->checkpoint);
    client_release(c);
}

static bool log_is_in_log(const authority *a, place_id doc) {
    const client *c = &((const log_authority *)(const void *)a)->client;
    doc_name name = client_name(c, doc);
    return tail_find(&c->tail, &name) != NULL;
}

static hd_status log_prune(authority *a, hd_error *error) {
    return command(a, COMMAND_PRUNE, error);
}
static hd_status log_vacuum(authority *a, hd_error *error) {
    return command(a, COMMAND_VACUUM, error);
}

static hd_status log_memos(authority *a, const char *piece, memo_fn fn, void *ctx) {
    return client_memos(&self(a)->client, piece, fn, ctx);
}
static hd_status log_memo_pieces(authority *a, piece_fn fn, void *ctx) {
    return client_memo_pieces(&self(a)->client, fn, ctx);
}
static hd_status log_changes(authority *a, struct key *space, uint64_t seq, change_fn fn,
                             void *ctx) {
    return client_changes(&self(a)->client, space, seq, fn, ctx);
}
static hd_status log_seq_of(authority *a, struct key *space, uint64_t *out) {
    log_space *entry;
    hd_status status = client_space_at(&self(a)->client, space, &entry);
    *out = status ? 0 : entry->seq;
    return status;
}
static hd_status log_metadata(authority *a, place_id doc, hd_value *out) {
    return client_metadata(&self(a)->client, doc, out);
}

static void log_close(authority *a) {
    log_authority *s = self(a);
    client_release(&s->client);
    client_close(&s->client); /* first, so that the writer is the last to leave the file */
    writer_close(s->writer);
    for (outcome *o = s->waiting, *next; o; o = next) {
        next = o->next;
        outcome_free(&s->env, o);
    }
    encoder_fini(&s->encoder);
    json_buffer_fini(&s->batch);
    wake_close(&s->wake);
    hd_env env = s->env;
    env_free(&env, s, sizeof *s);
}

static const char *log_file_name(const authority *a) {
    const log_store *store = self(a)->client.store;
    return store->ops->file(store);
}

/* Verdicts come in order of local seq, and none of them has been delivered. */
static void check_waiting(const log_authority *s) {
    uint64_t last = s->client.r->settled;
    for (const outcome *o = s->waiting; o; o = o->next) {
        assert(o->before <= o->row && o->items.count);
        for (uint32_t i = o == s->waiting ? s->next_item : 0; i < o->items.count; i++) {
            const outcome_item *item = &o->items.items[i];
            assert(item->local_seq > last && item->local_seq < s->client.r->next_local);
            assert(item->first_seq + item->seq_count <= o->seqs.count);
            last = item->local_seq;
        }
    }
    (void)last;
}

enum { CHECKED_DOCUMENTS = 256 };

/* Looks at the whole tail, which may be much longer than what this runtime holds: a long one only in some pumps. */
static void check_client(log_authority *s) {
    uint32_t rarely = 1 + s->client.tail.docs.count / CHECKED_DOCUMENTS;
    if (s->checks++ % rarely) return;
    client_check(&s->client, s->waiting ? s->waiting->row : 0);
}

static void log_check(const authority *a) {
    log_authority *s = self(a);
    check_client(s);
    check_waiting(s);
    assert(!s->waiting || s->in_flight);
    assert(s->in_flight <= s->client.r->pending_count);
    assert(s->batched + s->undecided <= s->in_flight && !s->batched == !s->batch.length);
    assert(s->writer || (!s->in_flight && !s->batch.length && !s->pushed && !s->follows));
    assert(s->follows || !s->reported);
    assert(!s->gone || s->client.r->lost);
}

static const authority_ops log_ops = {
    .submit = log_submit,
    .flush = log_flush,
    .start = log_start,
    .turn = log_turn,
    .poll = log_poll,
    .load = log_load,
    .metadata = log_metadata,
    .rest = log_rest,
    .reloads = log_has_writer,
    .idle = log_idle,
    .wants_derived = log_has_writer,
    .shared = log_has_writer,
    .follow = log_follow,
    .unfollow = log_unfollow,
    .fd = log_fd,
    .file = log_file_name,
    .deadline = log_deadline,
    .list = log_list,
    .spaces = log_space_names,
    .checkpoint = log_checkpoint,
    .expect_loads = log_expect_loads,
    .look = log_look,
    .is_in_log = log_is_in_log,
    .prune = log_prune,
    .vacuum = log_vacuum,
    .memos = log_memos,
    .memo_pieces = log_memo_pieces,
    .changes = log_changes,
    .seq_of = log_seq_of,
    .check = log_check,
    .close = log_close,
    .stay = log_stay,
    .present_until = log_present_until,
    .lasts = log_lasts,
};

/* The writer is opened first: it creates the store, and reads its state before the client does. */
static hd_status open_parts(log_authority *s, const log_backend *backend, const char *name,
                            const hd_options *options, hd_error *error) {
    replica *r = s->base.replica;
    log_store *store;
    hd_status status = wake_open(&s->wake);
    if (status) {
        env_error(error, status, "%s: no descriptor for waiting: %s", name, strerror(errno));
        return status;
    }
    if (!options->read_only) {
        status = backend->open(name, options, &s->env, LOG_WRITING, &store, error);
        if (!status)
            status = writer_open(store, options, r->session, s->wake.bell, &s->writer, error);
        if (status) return status;
    }
    log_role role = options->read_only ? LOG_ALONE : LOG_READING;
    status = backend->open(name, options, &s->env, role, &store, error);
    if (status) return status;
    s->encoder.longest = store->text_max;
    s->encoder.shortens = store->shortens;
    s->base.remote = store->ops->beat != NULL;
    status = client_open(&s->client, store, r);
    if (status) log_store_failure(store, status, "reading", error);
    store->opened = !status && !options->read_only;
    wake_watch(&s->wake, store);
    return status;
}

hd_status log_authority_open(const log_backend *backend, const char *name,
                             const hd_options *options, struct replica *r, authority **out,
                             hd_error *error) {
    *out = NULL;
    log_authority *s = env_new0(r->env, sizeof *s);
    if (!s) return HD_NOMEM;
    s->env = *r->env;
    s->base = (authority){ .ops = &log_ops, .replica = r };
    wake_init(&s->wake);
    encoder_init(&s->encoder, &s->env, r);
    json_buffer_init(&s->batch, &s->env);
    hd_status status = open_parts(s, backend, name, options, error);
    if (status) {
        log_close(&s->base);
        return status;
    }
    s->look_at_ns = env_now_ns(&s->env);
    s->look_in_ns = LOOK_SOON_NS;
    *out = &s->base;
    return HD_OK;
}
