/* lease.c -- taking, watching and giving up. */
#define _GNU_SOURCE
#include "store/lease.h"

#include "base/env.h"
#include "base/process.h"
#include "store/tx.h"
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_NS UINT64_C(500000000) /* where the end of a process is not told, or a read failed */
#define TEND_NS UINT64_C(10000000)  /* pumps look whether a holder lives no more often than this */

/* ---- the document */

static void look_later(lease *l) { l->look_ns = env_now_ns(&l->rt->env) + LOOK_NS; }

/* The document of the lease; absent: there is none. After a failure the lease counts neither as free nor as lost, and
 * is read again after LOOK_NS. */
static hd_value read_holder(lease *l, hd_pool *pool) {
    hd_value holder = hd_read(l->rt, pool, (hd_cell){ l->doc });
    l->look_ns = 0;
    if (value_is_failed(holder)) return look_later(l), holder;
    const char *session = hd_value_as_text(hd_value_at(holder, "session"), "");
    if (strcmp(session, l->holder) != 0) l->sure_ns = 0; /* that was said of another session */
    l->checked_ns = env_now_ns(&l->rt->env);
    snprintf(l->holder, sizeof l->holder, "%s", session);
    return holder;
}

static bool is_ours(const lease *l, hd_value holder) {
    char ours[SESSION_TEXT];
    session_text(l->rt->r.session, ours);
    return !strcmp(hd_value_as_text(hd_value_at(holder, "session"), ""), ours);
}

/* ---- the file */

void lease_file(const hd_runtime *rt, char out[LEASE_FILE]) {
    const authority *a = rt->r.authority;
    const char *name = a->ops->file ? a->ops->file(a) : NULL;
    struct stat st;
    out[0] = '\0';
    if (name && *name && !stat(name, &st))
        snprintf(out, LEASE_FILE, "%" PRIuMAX ":%" PRIuMAX, (uintmax_t)st.st_dev,
                 (uintmax_t)st.st_ino);
}

bool lease_is_of_this_file(const hd_runtime *rt, hd_value record) {
    char here[LEASE_FILE];
    lease_file(rt, here);
    return !strcmp(hd_value_as_text(hd_value_at(record, "file"), ""), here);
}

static bool process_of_record_lives(const hd_runtime *rt, hd_value record) {
    int64_t pid = hd_value_as_int(hd_value_at(record, "pid"), 0);
    uint64_t started = (uint64_t)hd_value_as_int(hd_value_at(record, "started"), 0);
    return process_lives(pid, started) && lease_is_of_this_file(rt, record);
}

/* ---- watching the holder's process */

static void unwatch(lease *l) {
    if (l->watch_fd >= 0) {
        runtime_unwatch(l->rt, l->watch_fd);
        close(l->watch_fd);
    }
    l->watch_fd = -1;
    l->pid = 0;
}

/* A runtime of our own process gives its lease up when it closes: there is nothing to watch. */
static void watch(lease *l, int64_t pid) {
    if (l->pid == pid) return;
    assert(!l->held); /* a holder watches no process */
    unwatch(l);
    l->pid = pid;
    if (pid == getpid()) return;
    l->watch_fd = process_watch(pid);
    if (l->watch_fd >= 0 && !runtime_watch(l->rt, l->watch_fd)) return;
    if (l->watch_fd >= 0) close(l->watch_fd);
    l->watch_fd = -1;
    look_later(l);
}

/* ---- sessions anywhere */

static bool is_remote(const lease *l) { return l->rt->r.authority->remote; }

/* Whether, by our own clock, the others still know that we live. */
static bool is_present(const lease *l) {
    authority *a = l->rt->r.authority;
    return env_now_ns(&l->rt->env) < a->ops->present_until(a);
}

/* Whether the session lives. If so, the question is asked again when the session may have ended. */
static bool lives_somewhere(lease *l, const char *session) {
    authority *a = l->rt->r.authority;
    uint32_t ms = 0;
    uint64_t now = env_now_ns(&l->rt->env);
    assert(a->remote && *session);
    if (SABOTAGED(&l->rt->r, SABOTAGE_DEATH)) return true;
    if (now >= l->sure_ns) {
        if (a->ops->lasts(a, session, &ms)) return look_later(l), true; /* the server is away */
        l->sure_ns = ms ? now + ms * UINT64_C(1000000) : 0;
    }
    l->look_ns = l->sure_ns;
    return l->sure_ns != 0;
}

/* Whether a live session has the lease. The process of another session is watched from here on. */
static bool find_taken(lease *l, hd_value holder) {
    assert(!value_is_failed(holder));
    const char *session = hd_value_as_text(hd_value_at(holder, "session"), "");
    if (is_remote(l) && *session && !is_ours(l, holder)) return lives_somewhere(l, session);
    if (!*session) return false;
    if (is_ours(l, holder)) return true;
    if (!process_of_record_lives(l->rt, holder)) return false;
    watch(l, hd_value_as_int(hd_value_at(holder, "pid"), 0));
    return process_of_record_lives(l->rt, holder); /* it may have ended before it was watched */
}

/* ---- taking */

static void set_held(lease *l, bool held) {
    if (l->held == held) return;
    assert(l->doc && !(held && l->closing));
    l->held = held;
    if (held) unwatch(l);
    if (l->taken) l->taken(held, l->ctx);
}

static void verdict(hd_status status, void *ctx) {
    lease *l = ctx;
    assert(l->asked); /* one commit at a time */
    bool takes = !l->closing && !l->giving;
    l->asked = l->giving = false;
    if (status) l->checked_ns = 0, look_later(l); /* whose it is now is to be read */
    if (!l->doc) {
        if (l->ended) l->ended(l->ctx);
        return;
    }
    if (!status && takes) session_text(l->rt->r.session, l->holder);
    if (!status) set_held(l, takes);
}

hd_value lease_record(hd_runtime *rt, hd_pool *pool) {
    char ours[SESSION_TEXT], host[PROCESS_HOST], file[LEASE_FILE];
    session_text(rt->r.session, ours);
    lease_file(rt, file);
    hd_value r = hd_object_set(pool, hd_object(), "session", hd_string(pool, ours));
    r = hd_object_set(pool, r, "pid", hd_int(pool, getpid()));
    r = hd_object_set(pool, r, "host", hd_string(pool, process_host(host)));
    r = hd_object_set(pool, r, "since", hd_int(pool, (int64_t)env_wall_ms(&rt->env)));
    if (*file) r = hd_object_set(pool, r, "file", hd_string(pool, file));
    return hd_object_set(pool, r, "started", hd_int(pool, (int64_t)process_started(getpid())));
}

static hd_status expect(hd_value v) {
    hd_status status = hd_value_status(v);
    return status || hd_value_exists(v) ? status : HD_NOT_FOUND;
}

/* The commit is refused if the document, the guard or `also` (0: none) has changed since it was read. */
static hd_status write_record(lease *l, hd_value record, place_id also) {
    hd_tx *tx;
    hd_cell cell = { l->doc };
    assert(l->doc && !l->asked);
    hd_status status = hd_tx_begin(l->rt, &tx);
    if (status) return status;
    tx->class = HD_COMMIT_EVENT;
    hd_value before = hd_tx_get(tx, cell);
    status = hd_value_status(before);
    if (!status && l->guard) status = hd_value_status(hd_tx_get(tx, (hd_cell){ l->guard }));
    if (!status && also) status = expect(hd_tx_get(tx, (hd_cell){ also }));
    l->epoch = (uint64_t)hd_value_as_int(hd_value_at(before, "epoch"), 0);
    int64_t epoch = (int64_t)l->epoch + hd_value_exists(hd_value_at(record, "session"));
    hd_pool *pool = hd_tx_pool(tx);
    if (!status)
        status = hd_tx_set(tx, cell, hd_object_set(pool, record, "epoch", hd_int(pool, epoch)));
    if (!status) status = hd_tx_set_kind(tx, cell, "lease");
    if (status) {
        hd_tx_abort(tx);
        return status;
    }
    l->asked = true;
    status = hd_tx_commit(tx, verdict, l);
    if (status) l->asked = false;
    return status;
}

/* Ours, and not held: it was given to us; or it was put down because we could not say that we live, and no other
 * session has taken it. */
static void take_up(lease *l) {
    assert(!l->held);
    if (!is_remote(l) || is_present(l)) set_held(l, true);
    else look_later(l);
}

/* On a server others must see that we live before they see that we hold a lease; and the beats that say so also ask
 * whether the holder lives, for one that stands by. */
static hd_status be_present(lease *l) {
    authority *a = l->rt->r.authority;
    if (!is_remote(l) || is_present(l)) return HD_OK;
    hd_status status = a->ops->stay(a);
    if (status) look_later(l);
    return status;
}

static hd_status take(lease *l) {
    hd_pool *pool = NULL;
    hd_status status = be_present(l);
    if (!status) status = hd_pool_open(l->rt->heap, &pool);
    if (!status) status = write_record(l, lease_record(l->rt, pool), 0);
    hd_pool_close(pool);
    if (status) look_later(l);
    return status;
}

static bool may_take(const lease *l) {
    return !(l->held || l->asked || l->closing || l->rt->open || l->rt->options.read_only);
}

hd_status lease_seize(lease *l) { return may_take(l) ? take(l) : HD_OK; }

hd_status lease_try(lease *l) {
    hd_pool *pool;
    if (!may_take(l)) return HD_OK;
    hd_status status = hd_pool_open(l->rt->heap, &pool);
    if (status) return status;
    hd_value holder = read_holder(l, pool);
    status = hd_value_status(holder);
    bool taken = status || find_taken(l, holder);
    bool ours = !status && taken && is_ours(l, holder);
    hd_pool_close(pool);
    if (taken && !status) status = be_present(l);
    if (ours && !status) take_up(l);
    if (!status && taken && l->pid && l->watch_fd < 0 && l->pid != getpid()) look_later(l);
    if (!taken) return take(l);
    return status == HD_PENDING ? HD_OK : status; /* the document is on its way */
}

void lease_look(lease *l) {
    hd_pool *pool;
    if (!l->held) return;
    if (hd_pool_open(l->rt->heap, &pool)) {
        look_later(l);
        return;
    }
    hd_value holder = read_holder(l, pool);
    bool lost = !value_is_failed(holder) && !is_ours(l, holder);
    hd_pool_close(pool);
    if (lost) set_held(l, false);
}

/* A holder that cannot say that it lives stands down before others take its lease. */
static void stand_down_in_time(lease *l) {
    authority *a = l->rt->r.authority;
    assert(l->held && is_remote(l));
    if (is_present(l)) {
        l->look_ns = a->ops->present_until(a);
        return;
    }
    env_log(&l->rt->env, HD_LOG_WARN,
            "a lease is put down: that this runtime lives could not be stored in time");
    set_held(l, false);
    look_later(l);
}

void lease_look_if_due(lease *l) {
    if (l->held && is_remote(l)) stand_down_in_time(l);
    if (l->held && l->look_ns && env_now_ns(&l->rt->env) >= l->look_ns) lease_look(l);
}

/* A runtime that pumps often looks at the holder's process now and then. */
void lease_tend(lease *l) {
    uint64_t now = env_now_ns(&l->rt->env);
    bool fresh =
        l->checked_ns && now < l->checked_ns + TEND_NS && !(l->look_ns && now >= l->look_ns);
    if (l->held) lease_look_if_due(l);
    else if (!fresh) (void)lease_try(l);
}

hd_status lease_give(lease *l, hd_value record, place_id heir) {
    assert(l->held && !l->closing && heir);
    l->giving = true;
    hd_status status = write_record(l, record, heir); /* in memory it has its verdict here */
    if (status) l->giving = false;
    if (status) return status;
    l->held = false;
    snprintf(l->holder, sizeof l->holder, "%s",
             hd_value_as_text(hd_value_at(record, "session"), ""));
    return HD_OK;
}

hd_status lease_fence(const lease *l, hd_tx *tx) {
    assert(l->doc && tx->rt == l->rt);
    if (SABOTAGED(&l->rt->r, SABOTAGE_FENCE)) return HD_OK;
    return tx_note_claim(tx, l->doc);
}

uint64_t lease_deadline(const lease *l) {
    return l->asked || !l->look_ns ? UINT64_MAX : l->look_ns;
}

/* ---- looking */

hd_status lease_holder_of(hd_runtime *rt, hd_value document, lease_holder *out) {
    uint32_t ms = 0;
    authority *a = rt->r.authority;
    *out = (lease_holder){
        .session = hd_value_as_text(hd_value_at(document, "session"), ""),
        .host = hd_value_as_text(hd_value_at(document, "host"), ""),
        .pid = hd_value_as_int(hd_value_at(document, "pid"), 0),
        .since_ms = (uint64_t)hd_value_as_int(hd_value_at(document, "since"), 0),
        .epoch = (uint64_t)hd_value_as_int(hd_value_at(document, "epoch"), 0),
    };
    if (!*out->session) return hd_value_status(document);
    hd_status status = a->remote ? a->ops->lasts(a, out->session, &ms) : HD_OK;
    out->lives = a->remote ? ms > 0 : process_of_record_lives(rt, document);
    return status;
}

/* ---- life */

hd_status lease_open(lease *l, hd_runtime *rt, const char *space, const char *job,
                     void (*taken)(bool held, void *ctx), void *ctx) {
    char id[80];
    *l = (lease){ .rt = rt, .watch_fd = -1, .taken = taken, .ctx = ctx };
    snprintf(id, sizeof id, "lease/%s", job);
    l->doc = hd_cell_of(rt, space, HD_SCOPE_SPACE, id, NULL).id;
    if (!l->doc) return rt->r.error.status ? rt->r.error.status : HD_NOMEM;
    place_ref(&rt->r.places, l->doc);
    return HD_OK;
}

static bool is_decided(void *ctx) { return !((const lease *)ctx)->asked; }

/* Held; or given to us, and not taken up yet. */
static bool names_us(lease *l) {
    hd_pool *pool;
    if (l->held || hd_pool_open(l->rt->heap, &pool)) return l->held;
    bool ours = is_ours(l, hd_read(l->rt, pool, (hd_cell){ l->doc }));
    hd_pool_close(pool);
    return ours;
}

void lease_release(lease *l) {
    if (!l->rt || !l->doc || l->closing) return;
    if (l->asked) (void)runtime_run_until(l->rt, is_decided, l);
    l->closing = true;
    l->taken = NULL;
    if (!l->asked && names_us(l)) (void)write_record(l, hd_object(), 0);
}

void lease_close(lease *l) {
    if (!l->rt || !l->doc) return;
    lease_release(l);
    if (l->asked) (void)runtime_run_until(l->rt, is_decided, l);
    unwatch(l);
    place_unref(&l->rt->r.places, l->doc);
    l->doc = 0;
}
