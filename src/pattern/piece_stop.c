/* piece_stop.c -- how pieces end: with their children, when no node runs; and how they are removed.
 *
 * A stop marks the piece and all pieces below it before it calls any stop function (hd_build_on_stop), so
 * that such a function can neither stop one of them again nor start a piece below them. A piece that is
 * to be stopped or built while a node runs is *due*: it waits in patterns.due for the next pump, which
 * needs no memory. */
#include "pattern/pattern.h"

#include "base/env.h"
#include "scheduler/persistence/persistence.h"
#include "scheduler/scheduler.h"
#include "value/key.h"
#include <string.h>

/* ---- with its children */

bool piece_is_below(const piece *p, const piece *above) {
    for (hd_piece up = p->parent; up.id;) {
        const piece *q = piece_get(p->all, up);
        if (q == above) return true;
        up = q ? q->parent : (hd_piece){ 0, 0 };
    }
    return false;
}

static void mark(piece *p, bool renounced) {
    assert(p->id && !p->stop);
    p->stop = true;
    if (renounced) forswear(p->all, p->document, true);
}

static void doom_children(const piece *p, list *doomed) {
    LIST_FOR (at, &p->below) {
        piece *q = LIST_ENTRY(at, piece, sibling);
        if (!q->stop) list_push_back(doomed, &q->doomed);
    }
}

static void sort_by_start(list *doomed) {
    list sorted;
    list_init(&sorted);
    for (list_node *one; (one = list_pop_front(doomed));) {
        const piece *q = LIST_ENTRY(one, piece, doomed);
        list_node *at = sorted.head.prev; /* from the end: most come in order */
        while (at != &sorted.head && LIST_ENTRY(at, piece, doomed)->order > q->order) at = at->prev;
        list_insert_after(at, one);
    }
    for (list_node *one; (one = list_pop_front(&sorted));) list_push_back(doomed, one);
}

/* Marks the piece and all pieces below it, and lists those below in order of start. */
static void mark_all(piece *p, bool renounced, list *doomed) {
    mark(p, renounced);
    doom_children(p, doomed);
    LIST_FOR (at, doomed) { /* the list grows during the loop */
        piece *q = LIST_ENTRY(at, piece, doomed);
        mark(q, renounced);
        doom_children(q, doomed);
    }
    sort_by_start(doomed);
}

/* Stores the rows of the pieces' nodes while the nodes still exist, for the next start. */
static void keep_all(const piece *p, const list *doomed) {
    patterns *all = p->all;
    scheduler *s = scheduler_get(all->rt);
    if (!s || all->closing || all->rt->open) return;
    persistence_stops(s, key_bytes(p->space), p->name);
    LIST_FOR (at, doomed) {
        const piece *q = LIST_ENTRY(at, piece, doomed);
        persistence_stops(s, key_bytes(q->space), q->name);
    }
    runtime_seal(all->rt, true);
}

/* The piece that started last ends first. A stop function may stop other pieces, but none of these: they
 * are marked. */
void piece_end(piece *p, bool renounced) {
    hd_runtime *rt = p->all->rt;
    assert(!p->stop && !p->all->building);
    bool driven = rt->driven;
    list doomed;
    list_init(&doomed);
    rt->driven = true; /* stop functions must not drive or close the runtime */
    mark_all(p, renounced, &doomed);
    keep_all(p, &doomed);
    for (list_node *one; (one = list_last(&doomed));) {
        list_remove(one);
        assert(LIST_ENTRY(one, piece, doomed)->stop);
        piece_forget(LIST_ENTRY(one, piece, doomed));
    }
    piece_forget(p);
    rt->driven = driven;
}

/* ---- later */

void piece_later(piece *p) {
    assert(p->id && (p->stopping || !p->root));
    if (list_linked(&p->due)) return;
    list_push_back(&p->all->due, &p->due);
    (void)hd_work_begin(p->all->rt); /* a runtime with pieces has a scheduler: it cannot fail */
}

void piece_not_later(piece *p) {
    if (!list_linked(&p->due)) return;
    list_remove(&p->due);
    hd_work_end(p->all->rt, HD_OK);
}

/* Builds a piece that was launched. One whose parent has ended meanwhile ends, too. */
static void build_late(piece *p) {
    assert(!p->root && !p->stop);
    bool orphan = p->parent.id && !piece_get(p->all, p->parent);
    hd_status status = orphan ? HD_OK : piece_build(p);
    if (status)
        env_log(p->all->env, HD_LOG_ERROR, "the piece \"%s\" could not be started: %s", p->name,
                hd_runtime_error(p->all->rt)->message);
    if (status || orphan) piece_end(p, false);
}

void pieces_work_off(patterns *all) {
    assert(!all->rt->in_run && !all->building);
    while (!list_empty(&all->due)) {
        piece *p = LIST_ENTRY(list_first(&all->due), piece, due);
        piece_not_later(p);
        if (p->stop) continue;
        if (p->stopping) piece_end(p, p->renounced);
        else if (!p->root) build_late(p);
    }
}

void piece_end_soon(piece *p, bool renounced) {
    if (p->stop) return;
    if (!p->all->rt->in_run && !p->all->building) {
        piece_end(p, renounced);
        return;
    }
    /* The node that runs, or the pattern that builds, may be this piece's. The pump ends the piece before it
     * runs another node (must_wait). */
    scheduler *s = scheduler_get(p->all->rt);
    if (s) s->must_wait = true;
    p->stopping = true;
    p->renounced |= renounced;
    piece_later(p);
}

void hd_piece_stop(hd_runtime *rt, hd_piece handle) {
    piece *p = piece_get(patterns_get(rt), handle);
    if (p) piece_end_soon(p, true);
}

/* ---- removing */

typedef struct removal {
    patterns *all;
    hd_tx *tx;
    hd_status status;
} removal;

static bool remove_document(const hd_listing *entry, void *ctx) {
    removal *r = ctx;
    hd_cell doc = hd_cell_of(r->all->rt, entry->space, entry->scope, entry->id, "");
    r->status = doc.id ? hd_tx_remove(r->tx, doc) : HD_NOMEM;
    return !r->status;
}

/* hd_runtime_list lists stored documents, so unsent commits are synced first; and it lists user and session
 * scope only if the runtime has named a cell there. */
static hd_status make_listable(hd_runtime *rt, const char *space, const char *id) {
    bool named = hd_cell_of(rt, space, HD_SCOPE_USER, id, "").id &&
                 hd_cell_of(rt, space, HD_SCOPE_SESSION, id, "").id;
    return named ? runtime_sync(rt) : hd_runtime_error(rt)->status;
}

/* Removes the document of a stopped piece and all documents whose id begins with `prefix`: "corner/". */
static hd_status remove_documents(removal *r, hd_cell document, const char *space,
                                  const char *prefix) {
    hd_status status = make_listable(r->all->rt, space, prefix);
    if (!status) status = hd_tx_begin(r->all->rt, &r->tx);
    if (status) return status;
    status = hd_tx_remove(r->tx, document);
    if (!status) status = hd_runtime_list(r->all->rt, space, NULL, prefix, remove_document, r);
    if (!status) status = r->status;
    return tx_end(r->tx, status, NULL, NULL);
}

static hd_status remove_piece(piece *p, char *prefix, size_t length) {
    removal r = { .all = p->all };
    hd_cell document = p->document;
    struct key *space = p->space;
    memcpy(prefix, p->name, length + 1);
    key_ref(space);
    piece_end(p, true);
    persistence_drop_piece(scheduler_get(r.all->rt), key_bytes(space), prefix);
    memcpy(prefix + length, "/", 2);
    hd_status status = remove_documents(&r, document, key_bytes(space), prefix);
    if (!status) forswear(r.all, document, false); /* demand finds no document to open */
    key_unref(space);
    return status;
}

hd_status hd_piece_remove(hd_runtime *rt, hd_piece handle) {
    patterns *all = patterns_get(rt);
    piece *p = piece_get(all, handle);
    if (!p) return HD_NOT_FOUND;
    if (rt->open || rt->in_run || rt->pumping || rt->r.announcing || all->building)
        return runtime_fail(
            rt, HD_USAGE,
            "a piece cannot be removed inside a transaction, a run or a pattern, nor "
            "by what pump calls: use hd_runtime_post to do it later");
    if (p->stop) return runtime_fail(rt, HD_USAGE, "the piece \"%s\" is being stopped", p->name);
    size_t length = strlen(p->name);
    char *prefix = env_new(all->env, length + 2);
    if (!prefix) return HD_NOMEM;
    hd_status status = remove_piece(p, prefix, length);
    env_free(all->env, prefix, length + 2);
    return status;
}
