/* lease.c -- taking, watching and giving up. */
#define _GNU_SOURCE
#include "store/lease.h"

#include "base/env.h"
#include "base/process.h"
#include "store/tx.h"
#include <stdio.h>
#include <unistd.h>

#define LOOK_NS UINT64_C(500000000) /* where the end of a process is not told */

/* ---- the document */

static void session_text(const lease *l, char out[33]) {
    for (int i = 0; i < 16; i++) snprintf(out + 2 * i, 3, "%02x", l->rt->r.session[i]);
}

static hd_value read_holder(lease *l, hd_pool *pool) {
    return hd_read(l->rt, pool, (hd_cell){ l->doc });
}

static bool is_ours(const lease *l, hd_value holder) {
    char ours[33];
    session_text(l, ours);
    return !strcmp(hd_value_as_text(hd_value_at(holder, "session"), ""), ours);
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
    unwatch(l);
    l->pid = pid;
    if (pid == getpid()) return;
    l->watch_fd = process_watch(pid);
    if (l->watch_fd >= 0 && !runtime_watch(l->rt, l->watch_fd)) return;
    if (l->watch_fd >= 0) close(l->watch_fd);
    l->watch_fd = -1;
    l->look_ns = env_now_ns(&l->rt->env) + LOOK_NS;
}

/* Whether a live session has it. */
static bool is_taken(lease *l, hd_value holder) {
    int64_t pid = hd_value_as_int(hd_value_at(holder, "pid"), 0);
    uint64_t started = (uint64_t)hd_value_as_int(hd_value_at(holder, "started"), 0);
    if (!*hd_value_as_text(hd_value_at(holder, "session"), "")) return false;
    if (is_ours(l, holder)) return true;
    if (!process_lives(pid, started)) return false;
    watch(l, pid);
    return process_lives(pid, started); /* it may have ended before it was watched */
}

/* ---- taking */

static void set_held(lease *l, bool held) {
    if (l->held == held) return;
    l->held = held;
    if (held) unwatch(l);
    if (l->taken) l->taken(held, l->ctx);
}

static void verdict(hd_status status, void *ctx) {
    lease *l = ctx;
    l->asked = false;
    if (!l->doc) {
        if (l->ended) l->ended(l->ctx);
        return;
    }
    if (!status) set_held(l, !l->closing);
}

static hd_value record(const lease *l, hd_pool *pool, bool take) {
    char ours[33];
    session_text(l, ours);
    hd_value r = hd_object_set(pool, hd_object(), "epoch",
                               hd_int(pool, (int64_t)(l->epoch + (take ? 1 : 0))));
    if (!take) return r;
    r = hd_object_set(pool, r, "session", hd_string(pool, ours));
    r = hd_object_set(pool, r, "pid", hd_int(pool, getpid()));
    return hd_object_set(pool, r, "started", hd_int(pool, (int64_t)process_started(getpid())));
}

/* The commit is refused if the document has changed since it was read. */
static hd_status write_record(lease *l, bool take) {
    hd_tx *tx;
    hd_cell cell = { l->doc };
    hd_status status = hd_tx_begin(l->rt, &tx);
    if (status) return status;
    tx->class = HD_COMMIT_EVENT;
    hd_value before = hd_tx_get(tx, cell);
    l->epoch = (uint64_t)hd_value_as_int(hd_value_at(before, "epoch"), 0);
    status = hd_tx_set(tx, cell, record(l, hd_tx_pool(tx), take));
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

hd_status lease_try(lease *l) {
    hd_pool *pool;
    if (l->held || l->asked || l->closing || l->rt->open) return HD_OK;
    if (l->rt->options.read_only) return HD_OK;
    hd_status status = hd_pool_open(l->rt->heap, &pool);
    if (status) return status;
    l->look_ns = 0;
    bool taken = is_taken(l, read_holder(l, pool));
    hd_pool_close(pool);
    if (taken && l->pid && l->watch_fd < 0 && l->pid != getpid())
        l->look_ns = env_now_ns(&l->rt->env) + LOOK_NS;
    return taken ? HD_OK : write_record(l, true);
}

void lease_look(lease *l) {
    hd_pool *pool;
    if (!l->held || hd_pool_open(l->rt->heap, &pool)) return;
    bool ours = is_ours(l, read_holder(l, pool));
    hd_pool_close(pool);
    if (!ours) set_held(l, false);
}

hd_status lease_fence(const lease *l, hd_tx *tx) { return tx_note_claim(tx, l->doc); }

uint64_t lease_deadline(const lease *l) {
    if (l->held || l->asked || !l->look_ns) return UINT64_MAX;
    return l->look_ns;
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

void lease_close(lease *l) {
    if (!l->rt || !l->doc) return;
    if (l->asked) (void)runtime_run_until(l->rt, is_decided, l);
    l->closing = true;
    l->taken = NULL;
    if (l->held && !write_record(l, false)) (void)runtime_run_until(l->rt, is_decided, l);
    unwatch(l);
    place_unref(&l->rt->r.places, l->doc);
    l->doc = 0;
}
