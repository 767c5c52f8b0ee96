/* tx.c -- the life of a transaction, and how it becomes a commit. See transact.c for the program's own. */
#include "store/runtime.h"
#include "store/tx.h"

#include "base/env.h"
#include "base/hint.h"
#include "store/footprint.h"
#include "store/overlay.h"
#include "value/diff.h"
#include "value/key.h"
#include "value/pool.h"
#include <stdio.h>

/* ---- life */

static void drop_op(replica *r, op *o) {
    value_unref(o->value);
    path_unref(r->heap, o->path);
    place_unref(&r->places, o->doc);
}

/* Forgets all writes. */
static void drop_writes(hd_tx *tx) {
    replica *r = tx->r;
    for (uint32_t i = 0; i < tx->ops.count; i++) drop_op(r, &tx->ops.items[i].o);
    for (uint32_t i = 0; i < tx->writes.count; i++) {
        tx_write *w = &tx->writes.items[i];
        value_unref(w->before);
        value_unref(w->now);
        place_unref(&r->places, w->doc);
    }
    for (uint32_t i = 0; i < tx->preconditions.count; i++)
        if (tx->preconditions.items[i].place)
            place_unref(&r->places, tx->preconditions.items[i].place);
    vec_clear(&tx->ops);
    vec_clear(&tx->writes);
    vec_clear(&tx->preconditions);
    if (table_count(&tx->written)) table_clear(&tx->written);
}

static void drop_attempted(hd_tx *tx) {
    for (uint32_t i = 0; i < tx->attempted.count; i++)
        place_unref(&tx->r->places, tx->attempted.items[i]);
    vec_clear(&tx->attempted);
}

static void drop_causes(hd_tx *tx) {
    for (uint32_t i = 0; i < tx->causes.count; i++)
        place_unref(&tx->r->places, tx->causes.items[i]);
    vec_clear(&tx->causes);
}

void tx_launched(hd_tx *tx, hd_status status) {
    void *lineage = tx->lineage;
    tx->lineage = NULL;
    if (lineage && tx->r->observer.lineage)
        tx->r->observer.lineage(tx->r->observer.ctx, lineage, NULL, status);
}

/* All but what the header's functions and a commit of a single write make of it. */
static void reset_rest(hd_tx *tx) {
    if (tx->lineage) tx_launched(tx, tx->failed ? tx->failed : HD_ABORTED);
    if (tx->writes.count || tx->preconditions.count) drop_writes(tx);
    if (tx->reads.count || tx->claim_only.count) tx_drop_reads(tx);
    if (tx->causes.count) drop_causes(tx);
    assert(!tx->room);
    if (tx->attempted.count) drop_attempted(tx);
    tx->kept = 0;
    tx->stamp = (stamp){ 0 };
    tx->failed = HD_OK;
    if (tx->why) tx->why->status = HD_OK;
    tx->missing = 0;
    tx->owner = NULL;
}

void tx_reset(hd_tx *tx) {
    assert(tx->r == &tx->rt->r);
    if (tx->flags & ~(uint32_t)TX_OPEN) reset_rest(tx);
    if (tx->pool && tx->pool->count) hd_pool_clear(tx->pool);
    tx->flags = TX_OPEN;
    tx_expect_nothing(tx);
    tx->front.out_value = value_absent();
    tx->front.out = HD_NO_OUTPUT_;
    tx->epoch = tx->r->rev;
}

SELDOM static hd_status tx_new(hd_runtime *rt) {
    hd_tx *tx = env_new0(&rt->env, sizeof *tx);
    if (!tx) return HD_NOMEM;
    tx->rt = rt;
    tx->r = &rt->r;
    tx->front.places = (const char *const *)(void *)&rt->r.places.at;
    tx->front.out = HD_NO_OUTPUT_;
    table_init(&tx->seen, &rt->env);
    table_init(&tx->claimed, &rt->env);
    table_init(&tx->written, &rt->env);
    rt->spare = tx;
    return HD_OK;
}

hd_status tx_open(hd_runtime *rt, hd_commit_class class, hd_tx **out) {
    assert(!rt->spare || !rt->spare->flags);
    *out = NULL;
    if (RARELY(!rt->spare) && tx_new(rt)) return HD_NOMEM;
    hd_tx *tx = rt->spare;
    rt->spare = tx->next;
    tx->flags = TX_OPEN;
    tx->epoch = rt->r.rev;
    tx->class = class;
    *out = tx;
    return HD_OK;
}

static inline void give_back(hd_tx *tx) {
    assert(!tx->writes.count && !tx->reads.count && !tx->ops.count);
    tx->flags = 0;
    tx->next = tx->rt->spare;
    tx->rt->spare = tx;
}

void tx_close(hd_tx *tx) {
    assert(tx->flags & TX_OPEN);
    tx_reset(tx);
    give_back(tx);
}

void tx_close_single(hd_tx *tx) {
    assert(tx->flags == TX_OPEN && !tx->front.next && !tx->front.end && !tx->lineage);
    if (tx->pool && tx->pool->count) hd_pool_clear(tx->pool);
    tx->front.out_value = value_absent();
    tx->front.out = HD_NO_OUTPUT_;
    give_back(tx);
}

void tx_destroy(hd_tx *tx) {
    const hd_env *env = &tx->rt->env;
    tx_reset(tx);
    hd_pool_close(tx->pool);
    vec_fini(env, &tx->reads);
    vec_fini(env, &tx->claim_only);
    vec_fini(env, &tx->causes);
    vec_fini(env, &tx->attempted);
    vec_fini(env, &tx->writes);
    vec_fini(env, &tx->ops);
    vec_fini(env, &tx->preconditions);
    table_fini(&tx->seen);
    table_fini(&tx->claimed);
    table_fini(&tx->written);
    env_free(env, tx->why, sizeof *tx->why);
    env_free(env, tx, sizeof *tx);
}

/* ---- failures */

/* Without memory the text is not kept. */
hd_status tx_fail_told(hd_tx *tx, hd_status status) {
    hd_runtime *rt = tx->rt;
    bool told = tx->r->error.status == status && rt->error_body == runtime_body(rt);
    if (told && !tx->why) tx->why = env_new(&rt->env, sizeof *tx->why);
    if (told && tx->why) *tx->why = tx->r->error;
    return tx_fail(tx, status);
}

hd_status tx_fail_again(hd_tx *tx) {
    const hd_error *why = tx_why(tx);
    assert(tx->failed);
    if (why) {
        tx->r->error = *why;
        tx->rt->error_body = runtime_body(tx->rt);
    }
    return tx->failed;
}

hd_pool *tx_pool(hd_tx *tx) {
    assert(tx->flags & TX_OPEN);
    if (!tx->pool && hd_pool_open(tx->r->heap, &tx->pool)) tx_fail(tx, HD_NOMEM);
    return tx->pool;
}

hd_pool *hd_tx_pool(hd_tx *tx) { return tx_pool(tx); }
hd_runtime *hd_tx_runtime(const hd_tx *tx) { return tx->rt; }
void hd_tx_set_group(hd_tx *tx, uint64_t group) {
    tx->flags |= TX_BUSY;
    tx->stamp.group = group;
}

/* ---- savepoints: a patch is all or nothing */

tx_savepoint tx_save(hd_tx *tx) {
    assert(tx->kept <= tx->ops.count);
    tx_savepoint save = { tx->ops.count, tx->kept };
    tx->kept = tx->ops.count;
    return save;
}

/* Cuts a document's list of operations back to the first `count` of the transaction's. */
static void cut_ops(hd_tx *tx, tx_write *w, uint32_t count) {
    assert(count <= tx->ops.count);
    uint32_t last = 0;
    for (uint32_t i = w->first; i && i <= count; i = tx->ops.items[i - 1].next) last = i;
    if (last) tx->ops.items[last - 1].next = 0;
    else w->first = 0;
    w->last = last;
}

/* The document as its operations make it. On what they have fitted before only memory can be missing. */
static hd_status refold(hd_tx *tx, tx_write *w) {
    value_unref(w->now);
    w->now = value_ref(w->before);
    for (uint32_t i = w->first; i; i = tx->ops.items[i - 1].next) {
        const op *o = &tx->ops.items[i - 1].o;
        hd_value next = op_apply(tx->r->heap, w->now, o->kind, o->path, o->value, o->keep);
        if (value_is_failed(next)) return hd_value_status(next);
        value_unref(w->now);
        w->now = next;
    }
    return HD_OK;
}

/* The document has changed since the first write: the operations are made on what is there now. */
static hd_status rebase(hd_tx *tx, tx_write *w) {
    hd_status status = replica_load(tx->r, w->doc); /* it may have been unloaded */
    if (status == HD_PENDING) tx->missing = w->doc;
    if (status || place_at(&tx->r->places, w->doc)->value.bits == w->before.bits) return status;
    value_unref(w->before);
    w->before = value_ref(place_at(&tx->r->places, w->doc)->value);
    status = refold(tx, w);
    return status && status != HD_NOMEM ? HD_STALE : status;
}

hd_status tx_rebase(hd_tx *tx) {
    hd_status status = tx->failed;
    assert(tx->flags & TX_EPOCH);
    for (uint32_t i = 0; i < tx->writes.count && !status; i++)
        status = rebase(tx, &tx->writes.items[i]);
    return status ? tx_fail(tx, status) : HD_OK;
}

/* Documents first written after the savepoint keep their entry, at what they were before. */
void tx_restore(hd_tx *tx, const tx_savepoint *save, bool back) {
    assert(save->kept <= save->ops && save->ops <= tx->ops.count);
    tx->kept = save->kept;
    if (!back) return;
    for (uint32_t i = 0; i < tx->writes.count; i++) {
        tx_write *w = &tx->writes.items[i];
        if (w->last <= save->ops) continue;
        cut_ops(tx, w, save->ops);
        hd_status status = refold(tx, w);
        if (status) tx_fail(tx, status);
    }
    while (tx->ops.count > save->ops) drop_op(tx->r, &tx->ops.items[--tx->ops.count].o);
}

/* ---- claims */

static hd_status add_claim(replica *r, commit *c, uint32_t key, bool strict) {
    assert((key & KEY_PLACE) && c->state == COMMIT_QUEUED);
    place_id id = key & KEY_PLACE;
    const place *doc = place_doc(&r->places, id);
    if (doc->doc.flags & (DOC_VOLATILE | DOC_OVERLAY)) return HD_OK;
    claim cl = { .key = key & (KEY_PLACE | KEY_SHAPE), .basis = doc->doc.seq, .strict = strict };
    const over *o = &r->overs.items[doc->doc.over];
    if (doc->doc.over && o->bottom) {
        assert(o->top->c != c); /* no commit claims what it writes itself */
        cl.first = o->bottom->c->local_seq;
        cl.last = o->top->c->local_seq;
    }
    if (!vec_push(r->env, &c->claims, cl)) return HD_NOMEM;
    place_ref(&r->places, id);
    return HD_OK;
}

hd_status tx_claim(replica *r, commit *c, uint32_t key) { return add_claim(r, c, key, false); }

hd_status tx_cause(replica *r, commit *c, place_id at) {
    assert(at && c->state == COMMIT_QUEUED);
    if (!vec_push(r->env, &c->causes, at)) return HD_NOMEM;
    place_ref(&r->places, at);
    return HD_OK;
}

/* Whether the transaction read an output that has not been sealed. */
static bool read_overlay(const hd_tx *tx) {
    for (uint32_t i = 0; i < tx->reads.count; i++)
        if (overlay_is_open(tx->r, tx_place(tx, tx->reads.items[i] & KEY_PLACE)->root)) return true;
    return false;
}

/* Whether it read through a commit of ours that has no verdict yet. */
static bool read_pending(const hd_tx *tx) {
    for (uint32_t i = 0; i < tx->reads.count; i++)
        if (replica_top(tx->r, tx_place(tx, tx->reads.items[i] & KEY_PLACE)->root)) return true;
    for (uint32_t i = 0; i < tx->claim_only.count; i++)
        if (replica_top(tx->r, tx_place(tx, tx->claim_only.items[i] & KEY_PLACE)->root))
            return true;
    return false;
}

static hd_status claim_read(hd_tx *tx, commit *c, uint32_t key) {
    const tx_write *w =
        tx->writes.count ? tx_write_of(tx, tx_place(tx, key & KEY_PLACE)->root) : NULL;
    return add_claim(tx->r, c, key, w && w->read_after);
}

static hd_status add_claims(hd_tx *tx, commit *c) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < tx->reads.count && !status; i++)
        if (!(tx->reads.items[i] & KEY_NO_CLAIM)) status = claim_read(tx, c, tx->reads.items[i]);
    for (uint32_t i = 0; i < tx->claim_only.count && !status; i++)
        status = claim_read(tx, c, tx->claim_only.items[i]);
    return status;
}

/* An output that never settles is never sealed, so no claim can prove what was read of it. It was computed
 * from what is visible here, and of that only our commits without a verdict can be withdrawn: one claim on
 * the output that is beneath names them all, and the commit falls if one of them does (S4). */
static hd_status claim_unsealed(hd_tx *tx, commit *c, uint32_t key) {
    replica *r = tx->r;
    const place *doc = place_doc(&r->places, key & KEY_PLACE);
    claim cl = { .key = key & (KEY_PLACE | KEY_SHAPE), .basis = doc->doc.seq, .all = true };
    assert(doc->doc.flags & DOC_KNOWN);
    if (r->pending_count) {
        cl.first = r->settled + 1;
        cl.last = r->next_local - 1;
    }
    if (!vec_push(r->env, &c->claims, cl)) return HD_NOMEM;
    place_ref(&r->places, key & KEY_PLACE);
    return HD_OK;
}

static hd_status claim_first_unsealed(hd_tx *tx, commit *c) {
    for (uint32_t i = 0; i < tx->reads.count; i++) {
        uint32_t key = tx->reads.items[i];
        if (!(key & KEY_NO_CLAIM) && overlay_is_open(tx->r, tx_place(tx, key & KEY_PLACE)->root))
            return claim_unsealed(tx, c, key);
    }
    return HD_OK;
}

/* ---- submitting */

static bool is_volatile(const replica *r, place_id doc) {
    return place_at(&r->places, doc)->doc.flags & DOC_VOLATILE;
}

/* Whether a write left the document as it was. Over layers of ours that is no reason to drop it: what
 * is visible there may yet be refused, and this write must stand by itself (S1). */
static bool left_as_it_was(const hd_tx *tx, const tx_write *w) {
    if (w->own) return !w->first;
    return !w->first || (value_equal(w->before, w->now) && !replica_top(tx->r, w->doc));
}

/* Operations that lead there and back do not travel: each leaves a claim, like a write that changes
 * nothing at once (write.c). */
static hd_status claim_unchanged(hd_tx *tx, const tx_write *w) {
    assert(w->doc);
    hd_status status = HD_OK;
    if (!w->first || is_volatile(tx->r, w->doc) || !left_as_it_was(tx, w)) return HD_OK;
    tx->flags |= TX_ELIDED;
    for (uint32_t i = w->first; i && !status; i = tx->ops.items[i - 1].next) {
        place_id at;
        status = places_inner(&tx->r->places, w->doc, tx->ops.items[i - 1].o.path, &at);
        if (!status) status = tx_note_claim(tx, at);
    }
    return status;
}

static hd_status claim_each_unchanged(hd_tx *tx) {
    hd_status status = HD_OK;
    if (!tx->r->authority->ops->shared(tx->r->authority)) return HD_OK;
    for (uint32_t i = 0; i < tx->writes.count && !status; i++)
        status = claim_unchanged(tx, &tx->writes.items[i]);
    return status;
}

/* A transaction that wrote nothing new is not submitted: it stands where its snapshot does, at what is
 * confirmed. If it has read a pending commit of ours as well it stands behind that one, where what it
 * meant to write may have changed: only its claims can tell. */
static bool needs_verdict(const hd_tx *tx, uint32_t stored) {
    return stored || tx->preconditions.count || ((tx->flags & TX_ELIDED) && read_pending(tx));
}

void tx_count_changes(hd_tx *tx, uint32_t *stored, uint32_t *local) {
    *stored = *local = 0;
    for (uint32_t i = 0; i < tx->writes.count; i++) {
        tx_write *w = &tx->writes.items[i];
        if (left_as_it_was(tx, w)) {
            w->first = 0;
            continue;
        }
        (*(is_volatile(tx->r, w->doc) ? local : stored))++;
    }
}

/* Moves a document's operations over: the commit owns them from here. */
static hd_status move_ops(hd_tx *tx, commit *c, const tx_write *w) {
    assert(w->first && w->last);
    for (uint32_t i = w->first; i; i = tx->ops.items[i - 1].next) {
        op *o = &tx->ops.items[i - 1].o;
        if (!vec_push(tx->r->env, &c->ops, *o)) return HD_NOMEM;
        value_ref(o->value);
        path_ref(tx->r->heap, o->path);
        place_ref(&tx->r->places, o->doc);
    }
    return HD_OK;
}

/* What is no proper text is not told. */
static hd_status keep_text(hd_tx *tx, const char *text, struct key **out) {
    hd_status status = text ? key_make(tx->r->heap, text, strlen(text), out) : HD_OK;
    return status == HD_NOMEM ? status : HD_OK;
}

/* The node or handler may be gone when the commit is sent: its texts are kept. */
static hd_status name_author(hd_tx *tx, commit *c) {
    hd_status status = keep_text(tx, tx->stamp.action, &c->by);
    return status ? status : keep_text(tx, tx->stamp.implementation, &c->as);
}

static hd_status fill_commit(hd_tx *tx, commit *c, bool shared) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < tx->writes.count && !status; i++) {
        const tx_write *w = &tx->writes.items[i];
        if (!w->first || is_volatile(tx->r, w->doc)) continue;
        uint32_t first = c->ops.count;
        status = move_ops(tx, c, w);
        /* What is written over an output that has not been sealed is made of what no other runtime has. */
        bool exact = shared && !overlay_is_open(tx->r, w->doc);
        if (!status && exact && (tx->flags & TX_BY_OPS))
            status = footprint_add_ops(tx->r, c, w->doc, first);
        else if (!status) status = footprint_add(tx->r, c, w->doc, w->now, exact);
        assert(status || vec_last(&c->writes).doc == w->doc);
    }
    if (!status && shared) status = add_claims(tx, c);
    if (!status && shared && (tx->flags & TX_TAKES_UNSEALED)) status = claim_first_unsealed(tx, c);
    if (!status && shared) status = name_author(tx, c);
    for (uint32_t i = 0; i < tx->preconditions.count && !status; i++) {
        if (!vec_push(tx->r->env, &c->preconditions, tx->preconditions.items[i])) return HD_NOMEM;
        if (tx->preconditions.items[i].place)
            place_ref(&tx->r->places, tx->preconditions.items[i].place);
    }
    for (uint32_t i = 0; i < tx->causes.count && !status; i++)
        status = tx_cause(tx->r, c, tx->causes.items[i]);
    c->stamp = tx->stamp;
    return status;
}

/* New values in the order of the commit's writes. */
static void collect_after(const hd_tx *tx, hd_value *after) {
    assert(after);
    for (uint32_t i = 0; i < tx->writes.count; i++) {
        const tx_write *w = &tx->writes.items[i];
        if (w->first && !is_volatile(tx->r, w->doc)) *after++ = value_ref(w->now);
    }
}

static hd_status show_volatile(hd_tx *tx, uint32_t count) {
    assert(count);
    replica *r = tx->r;
    hd_status status = replica_notice_begin(r, HD_CHANGE_COMMIT, tx->class, tx->stamp.group,
                                            tx->stamp.node, count);
    if (status) return status;
    for (uint32_t i = 0; i < tx->writes.count; i++) {
        const tx_write *w = &tx->writes.items[i];
        if (w->first && is_volatile(r, w->doc)) replica_show(r, w->doc, value_ref(w->now));
    }
    replica_notice_end(r);
    return HD_OK;
}

static hd_status submit_stored(hd_tx *tx, uint32_t stored, commit **out) {
    assert(!tx->failed);
    replica *r = tx->r;
    hd_value few[8], *after = few;
    commit *c = replica_commit_new(r, tx->class);
    if (!c) return HD_NOMEM;
    hd_status status = fill_commit(tx, c, r->authority->ops->shared(r->authority));
    if (!status && stored > 8) {
        after = env_new_array(r->env, stored, sizeof *after);
        if (!after) status = HD_NOMEM;
    }
    if (status) {
        replica_commit_free(r, c);
        return status;
    }
    assert(c->writes.count == stored);
    collect_after(tx, after);
    status = replica_commit(r, c, after);
    if (after != few) env_free(r->env, after, stored * sizeof *after);
    if (!status) *out = c;
    return status;
}

/* An output that was read must be sealed before what was made of it is stored; if its node has been
 * invalidated since, what was read is old. Where that node does not settle there is nothing newer to wait
 * for. */
static hd_status seal_what_was_read(hd_tx *tx) {
    replica *r = tx->r;
    if (!r->unsealed.count || !r->authority->ops->wants_derived(r->authority)) return HD_OK;
    hd_status status = overlay_seal(r, false);
    if (status || (tx->flags & TX_TAKES_UNSEALED)) return status;
    return read_overlay(tx) ? HD_STALE : HD_OK;
}

hd_status tx_submit(hd_tx *tx, commit **out) {
    assert(tx->flags & TX_OPEN);
    assert(!(tx->flags & TX_PREFLIGHT));
    *out = NULL;
    if (tx->failed) return tx_fail_again(tx);
    uint32_t stored, local;
    hd_status status = tx_reads_complete(tx);
    if (!status) status = claim_each_unchanged(tx);
    if (status) return status;
    tx_count_changes(tx, &stored, &local);
    if (local) status = replica_notice_room(tx->r, local); /* their notice comes when all is made */
    if (status) return status;
    if (needs_verdict(tx, stored)) {
        if (tx->r->lost)
            return runtime_fail(tx->rt, HD_NOT_FOUND, "the file was deleted or replaced");
        if (tx->class != HD_COMMIT_DERIVED) status = seal_what_was_read(tx);
        if (!status) status = submit_stored(tx, stored, out);
    } else {
        tx->r->stats.elided++;
    }
    if (*out && tx->lineage) {
        (*out)->lineage = tx->lineage;
        tx->lineage = NULL;
        tx->r->observer.lineage(tx->r->observer.ctx, (*out)->lineage, *out, HD_PENDING);
    }
    if (!status && local) status = show_volatile(tx, local);
    return status;
}
