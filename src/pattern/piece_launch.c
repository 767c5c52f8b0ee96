/* piece_launch.c -- pieces that begin with a transaction.
 *
 * A launch gets the verdict on its transaction, once. If an event is delivered twice, both deliveries
 * launch the same piece; the piece ends when both transactions have failed. */
#include "pattern/pattern.h"

#include "base/env.h"
#include "scheduler/scheduler.h"

static void launch_decided(hd_status status, void *ctx) {
    launch *l = ctx;
    piece *p = piece_get(l->all, l->piece);
    assert(list_linked(&l->link) && l->piece.id);
    assert(!p || p->launches);
    if (p && status && --p->launches == 0) piece_end_soon(p, false);
    else if (p && !status && l->deferred && !p->root) piece_later(p);
    list_remove(&l->link);
    env_free(l->all->env, l, sizeof *l);
}

/* Has launch_decided called with the verdict on the transaction. */
static hd_status follow_fate(hd_tx *tx, piece *p, bool deferred) {
    assert(p->id && !p->stop);
    launch *l = env_new(p->all->env, sizeof *l);
    if (!l) return HD_NOMEM;
    *l = (launch){ .all = p->all, .piece = handle_of(p), .deferred = deferred };
    hd_status status = hd_tx_after_commit(tx, launch_decided, l);
    if (status) {
        env_free(p->all->env, l, sizeof *l);
        return status;
    }
    list_push_back(&p->all->launches, &l->link);
    p->launches++;
    return HD_OK;
}

/* Whether the piece is built later than its document is written. In the run of an effect it is: nodes
 * registered during the run would become children of the effect and end with its next run. */
static bool must_wait(const hd_runtime *rt, const hd_piece_spec *spec) {
    const scheduler *s = scheduler_get(rt);
    return spec->after_commit || (s && s->running);
}

/* HD_OK, or HD_USAGE in the run of a computation: that may run any number of times, and nothing would stop
 * the pieces that its earlier runs launched. */
static hd_status check_launch(hd_runtime *rt) {
    const scheduler *s = scheduler_get(rt);
    if (!s || !s->running || (node_of(s, s->running)->flags & NODE_EFFECT)) return HD_OK;
    return runtime_fail(
        rt, HD_USAGE,
        "a computation cannot launch a piece: use hd_build_derive_pattern, or launch it "
        "in a handler or an effect");
}

/* A piece that waits to be built, because of an earlier launch, is built now if this launch need not wait. */
static hd_status launch_piece(piece *p, const hd_piece_spec *spec, hd_tx *tx, bool fresh) {
    assert(!fresh || !p->root);
    bool waits = !p->root, wait = must_wait(p->all->rt, spec), begin = waits && (fresh || !wait);
    hd_status status =
        begin ? piece_begin(p, spec, tx, !wait) : piece_change_arguments(p, spec, tx);
    if (!status) status = follow_fate(tx, p, spec->after_commit);
    if (!status && waits && wait && !spec->after_commit) piece_later(p);
    if (status && waits && !fresh) piece_unbuild(p);
    return status;
}

hd_status hd_tx_launch_piece(hd_tx *tx, const hd_piece_spec *spec, hd_piece *out) {
    hd_runtime *rt = hd_tx_runtime(tx);
    patterns *all = patterns_of(rt);
    char minted[HD_ID_SIZE];
    const char *id = spec->id;
    piece *p = NULL;
    bool fresh = false;
    hd_piece unwanted;
    if (!out) out = &unwanted;
    *out = (hd_piece){ 0, 0 };
    hd_status status = all ? check_launch(rt) : HD_NOMEM;
    if (!status && !id) status = hd_tx_mint(tx, minted);
    if (!status) status = piece_take(all, spec, id ? id : minted, &p, &fresh);
    if (status) return status;
    status = launch_piece(p, spec, tx, fresh);
    if (status && fresh) piece_forget(p);
    if (status) return status;
    piece_wanted(p);
    *out = handle_of(p);
    return HD_OK;
}
