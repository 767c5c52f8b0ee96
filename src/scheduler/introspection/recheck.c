/* recheck.c -- runs a computation a second time, and compares what both runs wrote. */
#include "scheduler/introspection/recheck.h"

#include "scheduler/registry.h"
#include "value/diff.h"
#include "value/key.h"

void recheck_fini(recheck *k, const hd_env *env) {
    vec_fini(env, &k->reported);
    vec_fini(env, &k->first);
    vec_fini(env, &k->second);
}

/* Runs the body in a transaction of its own, which is the caller's to close. */
static hd_status run_again(scheduler *s, node_id id, hd_tx **out) {
    assert(!s->running && !s->rechecking && !s->rt->in_run);
    hd_status status = tx_open(s->rt, HD_COMMIT_DERIVED, out);
    if (status) return status;
    hd_action_fn fn = node_of(s, id)->fn;
    void *ctx = node_of(s, id)->ctx;
    (*out)->flags |=
        TX_RUN | TX_ATTEMPTS; /* writing what is there is not the same as not writing */
    assert(fn && (*out)->class == HD_COMMIT_DERIVED);
    s->running = id;
    s->rechecking = true;
    s->rt->in_run = true;
    status = fn(*out, ctx);
    s->rt->in_run = false;
    s->rechecking = false;
    s->running = 0;
    return status ? status : (*out)->failed;
}

/* Whether a write of the second run would change something. A document that another writer has changed since
 * the first run is left out of the comparison. */
static bool differs(const scheduler *s, const node *n, const tx_write *w) {
    assert(w->doc && !(n->flags & NODE_NEVER_RAN));
    if (!w->first || value_equal(w->before, w->now)) return false;
    return place_at(&s->r->places, w->doc)->rev <= n->ran_rev;
}

static bool any_differs(const scheduler *s, node_id id, const hd_tx *tx) {
    for (uint32_t i = 0; i < tx->writes.count; i++)
        if (differs(s, node_of(s, id), &tx->writes.items[i])) return true;
    return false;
}

static bool reads_document(const scheduler *s, const hd_tx *tx, place_id doc) {
    for (uint32_t i = 0; i < tx->reads.count; i++)
        if (place_at(&s->r->places, tx->reads.items[i] & KEY_PLACE)->root == doc) return true;
    return false;
}

static bool writes_document(const scheduler *s, const hd_tx *tx, place_id doc) {
    for (uint32_t i = 0; i < tx->writes.count; i++)
        if (tx->writes.items[i].doc == doc) return true;
    for (uint32_t i = 0; i < tx->attempted.count; i++)
        if (place_at(&s->r->places, tx->attempted.items[i])->root == doc) return true;
    return false;
}

/* The first run wrote the document, the second left it alone. If it read it, it may have found there what
 * it wanted to write. */
static bool is_left_out(const scheduler *s, place_id doc, const hd_tx *second) {
    return !writes_document(s, second, doc) && !reads_document(s, second, doc);
}

static bool any_left_out(const scheduler *s, const hd_tx *first, const hd_tx *second) {
    for (uint32_t i = 0; i < first->writes.count; i++)
        if (is_left_out(s, first->writes.items[i].doc, second)) return true;
    return tx_has_output(first) && is_left_out(s, first->front.out, second);
}

/* Only what completed and is clean can be compared with: nothing it read has changed. */
static bool can_be_rechecked(const scheduler *s, node_id id) {
    const node *n = node_of(s, id);
    if (n->flags & (NODE_EFFECT | NODE_NEVER_RAN | NODE_SUSPENDED | NODE_RUNNING)) return false;
    return !node_is_invalid(&s->graph, n);
}

hd_status recheck_node(scheduler *s, node_id id) {
    assert(id && !s->running);
    hd_tx *tx;
    if (!can_be_rechecked(s, id)) return HD_STALE;
    hd_status status = run_again(s, id, &tx);
    if (!tx) return status;
    if (!status && any_differs(s, id, tx)) status = HD_MISMATCH;
    tx_close(tx);
    return status;
}

/* ---- telling */

static bool was_reported(const recheck *k, hd_node handle) {
    for (uint32_t i = 0; i < k->reported.count; i++)
        if (k->reported.items[i].id == handle.id &&
            k->reported.items[i].generation == handle.generation)
            return true;
    return false;
}

/* False: no memory. */
static bool collect_first(recheck *k, scheduler *s, const hd_tx *tx) {
    bool ok = true;
    vec_clear(&k->first);
    for (uint32_t i = 0; i < tx->writes.count && ok; i++)
        ok = vec_push(s->env, &k->first,
                      ((hd_written){ { tx->writes.items[i].doc }, tx->writes.items[i].now }));
    if (ok && tx_has_output(tx))
        ok = vec_push(s->env, &k->first, ((hd_written){ { tx->front.out }, tx->front.out_value }));
    return ok;
}

static bool collect_second(recheck *k, scheduler *s, node_id id, const hd_tx *tx) {
    bool ok = true;
    vec_clear(&k->second);
    for (uint32_t i = 0; i < tx->writes.count && ok; i++) {
        const tx_write *w = &tx->writes.items[i];
        if (differs(s, node_of(s, id), w))
            ok = vec_push(s->env, &k->second, ((hd_written){ { w->doc }, w->now }));
    }
    return ok;
}

static void report(recheck *k, scheduler *s, node_id id, const hd_tx *first, const hd_tx *second) {
    assert(k->fn && !was_reported(k, registry_handle(s, id)));
    hd_node handle = registry_handle(s, id);
    if (!collect_first(k, s, first) || !collect_second(k, s, id, second)) return;
    if (!vec_push(s->env, &k->reported, handle)) return;
    struct key *name = node_own_name(s, id);
    if (name) key_ref(name); /* the callback may cancel the node */
    hd_violation v = { handle,          node_label(s, id), k->first.items,
                       k->second.items, k->first.count,    k->second.count };
    k->fn(&v, k->ctx);
    key_unref(name);
}

void recheck_run(recheck *k, scheduler *s, node_id id, const hd_tx *tx, hd_status status) {
    hd_tx *second;
    assert(tx && id);
    if (!k->fn || status || (tx->flags & TX_EPOCH) || !can_be_rechecked(s, id)) return;
    if (was_reported(k, registry_handle(s, id))) return;
    status = run_again(s, id, &second);
    if (!second) return;
    /* The body may have switched it off. */
    if (!status) status = tx_reads_complete(second);
    if (!status && k->fn && (any_differs(s, id, second) || any_left_out(s, tx, second)))
        report(k, s, id, tx, second);
    tx_close(second);
}
