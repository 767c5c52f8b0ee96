/* transact.c -- the program's transactions: begin, commit, and the short way between them.
 *
 * A store that no other runtime uses has no reason to refuse: a transaction without preconditions whose
 * verdict has no function to be told is confirmed as it is applied. Shortest is the way of a single write of a
 * whole document, which is how most input comes; the transaction then goes back to the spares as it
 * was, with nothing to clear but those two words. */
#include "store/runtime.h"
#include "store/tx.h"

#include "base/hint.h"
#include "value/diff.h"
#include "value/pool.h"

enum { UNTOLD_MAX = 64 }; /* cells that the log names */

/* ---- the short way */

static bool is_alone(const replica *r) { return !r->pending_count && r->authority->alone; }

static bool is_ordinary(const place *p) {
    return (p->doc.flags & (DOC_KNOWN | DOC_VOLATILE | DOC_OVERLAY)) == DOC_KNOWN && !p->doc.over;
}

/* Makes one document's new value visible and confirmed. */
static void confirm_now(hd_tx *tx, place_id doc, hd_value after, bool first) {
    authority *a = tx->r->authority;
    place *p = tx_place(tx, doc);
    assert(is_alone(tx->r) && is_ordinary(p));
    place_set_seq(p, a->ops->confirm(a, doc, after, first));
    p->doc.flags |= DOC_KNOWN;
    replica_show_changed(tx->r, doc, value_ref(after));
}

/* A notice of one change, as by replica_show_changed, for a document without inner places on a runtime
 * without listeners. Takes `after`. */
static inline void show_alone(hd_tx *tx, place *p, place_id doc, hd_value after, uint64_t seq) {
    assert(p->root == doc);
    replica *r = tx->r;
    assert(!p->first_child && !r->listeners.count);
    hd_value before = place_show(p, after, ++r->rev);
    bool reshaped = !(p->doc.flags & DOC_HAS_SHAPE) || !value_same_shape(before, after);
    place_set_seq(p, seq);
    r->kind = HD_CHANGE_COMMIT;
    r->class = tx->class;
    r->group = tx->stamp.group;
    r->origin_node = tx->stamp.node;
    r->stats.changes++;
    r->stats.notices++;
    if (USUALLY(p->watch)) r->observer.changed(r->observer.ctx, doc, reshaped, before, after);
    if (r->observer.notice) r->observer.notice(r->observer.ctx, r->kind, r->origin_node);
    value_unref(before);
}

SELDOM static hd_status confirm_and_tell(hd_tx *tx, place_id doc, hd_value v) {
    replica *r = tx->r;
    hd_status status = r->authority->ops->confirm_prepare(r->authority, doc);
    if (!status)
        status = replica_notice_begin(r, HD_CHANGE_COMMIT, tx->class, tx->stamp.group,
                                      tx->stamp.node, 1);
    if (status) return status;
    confirm_now(tx, doc, v, true);
    replica_notice_end(r);
    return HD_OK;
}

static inline hd_status confirm_single(hd_tx *tx, place *p, place_id doc, hd_value v) {
    assert(place_is_doc(&tx->r->places, doc));
    replica *r = tx->r;
    if (RARELY(p->first_child || r->listeners.count)) return confirm_and_tell(tx, doc, v);
    uint64_t seq = r->authority->ops->confirm_one(r->authority, doc, v);
    if (RARELY(!seq)) return HD_NOMEM;
    show_alone(tx, p, doc, value_ref(v), seq);
    return HD_OK;
}

/* The output of a transaction that has no preconditions and has not failed. True: done, *status tells
 * how. False: it needs the long way. */
static inline bool commit_single(hd_tx *tx, hd_status *status) {
    replica *r = tx->r;
    place_id doc = tx->front.out;
    hd_value v = tx->front.out_value;
    place *p = tx_place(tx, doc);
    assert(p->root == doc && value_exists(v) && !tx->failed);
    if (!is_ordinary(p) || !is_alone(r)) return false;
    *status = HD_OK;
    if (p->value.bits == v.bits ||
        (value_may_be_block(v) && value_may_be_block(p->value) && value_equal(p->value, v))) {
        r->stats.elided++;
        return true;
    }
    *status = confirm_single(tx, p, doc, v);
    r->stats.commits += !*status;
    r->stats.accepted += !*status;
    return true;
}

static hd_status prepare_each(hd_tx *tx, bool *ordinary) {
    authority *a = tx->r->authority;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < tx->writes.count && *ordinary && !status; i++) {
        const tx_write *w = &tx->writes.items[i];
        if (!w->first) continue;
        *ordinary = is_ordinary(tx_place(tx, w->doc));
        if (*ordinary) status = a->ops->confirm_prepare(a, w->doc);
    }
    return status;
}

/* The same for any number of documents. */
static bool commit_each(hd_tx *tx, hd_status *status) {
    replica *r = tx->r;
    uint32_t stored, local;
    bool ordinary = true;
    if (!is_alone(tx->r) || tx->failed) return false;
    tx_count_changes(tx, &stored, &local);
    *status = prepare_each(tx, &ordinary);
    if (!ordinary) return false;
    if (!*status && !stored) r->stats.elided++;
    if (*status || !stored) return true;
    *status = replica_notice_begin(r, HD_CHANGE_COMMIT, tx->class, tx->stamp.group, tx->stamp.node,
                                   stored);
    if (*status) return true;
    bool first = true;
    for (uint32_t i = 0; i < tx->writes.count; i++) {
        const tx_write *w = &tx->writes.items[i];
        if (!w->first) continue;
        confirm_now(tx, w->doc, w->now, first);
        first = false;
    }
    replica_notice_end(r);
    r->stats.commits++;
    r->stats.accepted++;
    return true;
}

/* No other runtime writes, so what is absent now is absent when the commit is decided. */
static bool absences_hold(const hd_tx *tx) {
    authority *a = tx->r->authority;
    for (uint32_t i = 0; i < tx->preconditions.count; i++) {
        const precondition *pre = &tx->preconditions.items[i];
        if (pre->kind != PRE_ABSENT || !a->ops->never_was(a, pre->place)) return false;
    }
    return true;
}

bool tx_commit_now(hd_tx *tx, hd_status *status) {
    return is_alone(tx->r) && absences_hold(tx) && commit_each(tx, status);
}

/* ---- beginning and ending */

SELDOM static hd_status refuse(hd_runtime *rt) {
    if (rt->closing) return runtime_fail(rt, HD_CLOSED, "the runtime is closing");
    return runtime_fail(rt, HD_USAGE,
                        rt->in_run ? "a run has its own transaction: read and write in that"
                                   : "a transaction is open on this runtime already");
}

static inline hd_status begin(hd_runtime *rt, hd_commit_class class, uint32_t flags, hd_tx **out) {
    *out = NULL;
    if (RARELY(rt->in_run || rt->open || rt->closing)) return refuse(rt);
    hd_status status = tx_open(rt, class, out);
    if (RARELY(status)) return status;
    (*out)->flags |= flags;
    assert(!rt->r.in_body);
    rt->open = *out;
    rt->r.in_body = true;
    return HD_OK;
}

hd_status hd_tx_begin(hd_runtime *rt, hd_tx **out) { return begin(rt, HD_COMMIT_SOURCE, 0, out); }
hd_status hd_tx_begin_read(hd_runtime *rt, hd_tx **out) {
    return begin(rt, HD_COMMIT_NONE, TX_READ_ONLY, out);
}

static inline void leave(hd_tx *tx) {
    assert(tx->rt->open == tx && !(tx->flags & TX_RUN));
    assert(tx->rt->r.in_body);
    tx->rt->open = NULL;
    tx->rt->r.in_body = false;
    runtime_rest(tx->rt);
}

static void finish(hd_tx *tx, hd_status status) {
    assert(tx->flags & TX_OPEN);
    if (tx->lineage) tx_launched(tx, status);
    leave(tx);
    tx_close(tx);
}

void hd_tx_abort(hd_tx *tx) {
    if (!tx) return;
    if (tx->flags & TX_RUN) {
        tx_fail(tx, HD_ABORTED); /* the run that it belongs to ends it */
        return;
    }
    if (tx->flags & TX_LENT) {
        tx_fail(tx, runtime_fail(tx->rt, HD_USAGE,
                                 "hd_tx_abort: what an action writes is dropped if it returns "
                                 "anything but HD_OK"));
        return;
    }
    finish(tx, HD_ABORTED);
}

/* The commit is empty, but its caller still gets a verdict: HD_OK in the next pump. */
static hd_status tell_later(replica *r, hd_verdict_fn fn, void *ctx) {
    commit *c = replica_commit_new(r, HD_COMMIT_NONE);
    if (!c) return HD_NOMEM;
    assert(!c->ops.count && !c->claims.count);
    c->done = fn;
    c->done_ctx = ctx;
    list_push_back(&r->trivial, &c->link);
    return HD_OK;
}

/* The claim whose document another commit has changed since; 0: it cannot be told. */
static hd_cell overtaken(const replica *r, const commit *c) {
    for (uint32_t i = 0; i < c->claims.count; i++) {
        place_id at = c->claims.items[i].key & KEY_PLACE;
        const place *doc = place_at(&r->places, place_at(&r->places, at)->root);
        if (doc->doc.seq > c->claims.items[i].basis) return (hd_cell){ at };
    }
    return (hd_cell){ 0 };
}

/* Once for each cell, and for a few of them. Without memory it is logged again. */
static bool is_news(hd_runtime *rt, hd_cell cell) {
    for (uint32_t i = 0; i < rt->untold_of.count; i++)
        if (rt->untold_of.items[i] == cell.id) return false;
    return rt->untold_of.count < UNTOLD_MAX;
}

void runtime_refused(hd_runtime *rt, hd_cell cell, hd_status status) {
    char name[256] = "";
    if (!rt->untold) rt->untold = status;
    if (!is_news(rt, cell)) return;
    (void)vec_push(&rt->env, &rt->untold_of, cell.id);
    if (cell.id) hd_cell_print(rt, cell, name, sizeof name);
    bool again = hd_status_class(status) == HD_CLASS_STALE;
    env_log(&rt->env, HD_LOG_WARN, "a commit was refused: %s%s%s%s", hd_status_text(status),
            cell.id ? ": " : "", name, again ? " (hd_transact would run it again)" : "");
}

/* A commit of the program whose verdict it did not ask for. */
static void settle_untold(void *ctx, commit *c, hd_status status) {
    hd_runtime *rt = ctx;
    if (status) runtime_refused(rt, overtaken(&rt->r, c), status);
}

SELDOM static hd_status commit_otherwise(hd_tx *tx, hd_verdict_fn fn, void *ctx) {
    if (tx->flags & TX_RUN)
        return runtime_fail(tx->rt, HD_USAGE, "a run commits by returning HD_OK");
    if (tx->flags & TX_LENT)
        return runtime_fail(tx->rt, HD_USAGE, "hd_tx_commit: an action commits by returning HD_OK");
    commit *c = NULL;
    bool writes = !(tx->flags & TX_READ_ONLY);
    hd_status status = tx_unpack_single(tx);
    bool now = !status && writes && !fn && !tx->preconditions.count && commit_each(tx, &status);
    if (!now && !status && writes) status = tx_submit(tx, &c);
    if (!status && c) {
        c->done = fn;
        c->done_ctx = ctx;
        if (!fn) c->settled = settle_untold, c->settled_ctx = tx->rt;
    } else if (!status && fn) {
        status = tell_later(tx->r, fn, ctx);
    }
    finish(tx, status);
    return status;
}

/* One document is written whole, and nothing else was done, except perhaps to read. */
static inline bool is_single(const hd_tx *tx) {
    return !(tx->flags & ~(uint32_t)(TX_OPEN | TX_DIVERGED)) && tx_has_output(tx);
}

hd_status hd_tx_commit(hd_tx *tx, hd_verdict_fn fn, void *ctx) {
    hd_status status;
    if (RARELY(fn || !is_single(tx) || !commit_single(tx, &status)))
        return commit_otherwise(tx, fn, ctx);
    leave(tx);
    if (tx->flags == TX_OPEN) tx_close_single(tx);
    else tx_close(tx);
    return status;
}

hd_status hd_write(hd_runtime *rt, hd_cell cell, hd_value v) {
    hd_tx *tx;
    hd_status status = hd_tx_begin(rt, &tx);
    if (status) return status;
    return tx_end(tx, hd_tx_set(tx, cell, v), NULL, NULL);
}

hd_status hd_write_json(hd_runtime *rt, hd_cell cell, const char *json) {
    hd_tx *tx;
    hd_status status = hd_tx_begin(rt, &tx);
    if (status) return status;
    return tx_end(tx, hd_tx_set_json(tx, cell, json), NULL, NULL);
}

extern inline hd_value hd_read(hd_runtime *rt, hd_pool *pool, hd_cell cell); /* in the header */

hd_value hd_read_otherwise_(hd_runtime *rt, hd_pool *pool, hd_cell cell) {
    if (cell.id && cell.id < rt->r.places.count && rt->r.places.at[cell.id].root) {
        hd_value v = rt->r.places.at[cell.id].value;
        if (v.bits != 0 && value_tag(v) != TAG_LINK) return pool_take(pool, value_ref(v));
    }
    hd_tx *tx;
    hd_status status = tx_open(rt, HD_COMMIT_NONE, &tx);
    if (status) return value_failed(status);
    tx->flags |= TX_READ_ONLY;
    hd_value v = hd_value_take(pool, value_ref(hd_tx_get(tx, cell)));
    tx_close(tx);
    return v;
}
