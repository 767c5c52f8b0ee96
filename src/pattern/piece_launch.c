/* piece_launch.c -- pieces that begin with a transaction.
 *
 * A launch is told what became of its transaction, once. A piece that two deliveries of an event
 * launch is one piece, and goes when both have failed. */
#include "pattern/pattern.h"

#include "base/env.h"
#include "scheduler/scheduler.h"

static void launch_decided(void *ctx, hd_status status) {
    launch *l = ctx;
    piece *p = piece_get(l->all, l->piece);
    if (p && status && --p->launches == 0) piece_end_soon(p, false);
    else if (p && !status && l->deferred && !p->root) piece_later(p);
    list_remove(&l->link);
    env_free(l->all->env, l, sizeof *l);
}

static hd_status follow_fate(hd_tx *tx, piece *p, bool deferred) {
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

/* A node of the piece must not become a child of the effect that launches it. */
static bool must_wait(const hd_runtime *rt, const hd_piece_spec *spec) {
    const scheduler *s = scheduler_get(rt);
    return spec->after_commit || (s && s->running);
}

/* A computation may run any number of times, and nobody would know when to stop what it launched. */
static hd_status may_launch(hd_runtime *rt) {
    const scheduler *s = scheduler_get(rt);
    if (!s || !s->running || (node_of(s, s->running)->flags & NODE_EFFECT)) return HD_OK;
    return runtime_fail(rt, HD_USAGE,
                        "a computation cannot launch a piece: use hd_derive_pattern, or launch it "
                        "in a handler or an effect");
}

/* One that waits for another launch need not wait any longer, if this one need not. */
static hd_status launch_piece(piece *p, const hd_piece_spec *spec, hd_tx *tx, bool fresh) {
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
    hd_status status = all ? may_launch(rt) : HD_NOMEM;
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
