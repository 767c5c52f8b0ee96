/* persistence_valid.c -- how far a piece's rows hold, said when it stops or the runtime closes, and when
 * the store forgets what exactly has changed since they were proved.
 *
 * A row proves itself as of the seal that carried it. What has changed since then is looked at when
 * the piece is resumed, every time anew, however long ago that was; unless somebody who knew better
 * has said so. This runtime knows: it has heard of every change, and a node that is clean now has
 * read none of them. So all rows of the piece hold as of now, but for those of nodes that are invalid,
 * which are named.
 *
 * Said only if every row of the piece is of a node that is registered here, and of no single
 * principal: of the others nobody here knows whether they hold. Otherwise those rows are proved anew,
 * one by one, that read a document which has changed since.
 *
 * A row that has no verdict yet is named, too: which of two is in the store then, nobody knows. So the
 * word goes before the seal that carries what is still to be said; that takes the name off again. */
#include "scheduler/persistence.h"

#include "base/env.h"
#include "store/basis.h"
#include "store/overlay.h"
#include "value/array.h"
#include "value/diff.h"
#include "value/object.h"
#include "value/text.h"
#include <string.h>

enum { STALE_MAX = 1000 }; /* more invalid nodes than this: nothing is said */

typedef struct saying {
    scheduler *s;
    hd_value seqs;  /* where the spaces stand that its rows read; owned */
    hd_value stale; /* names of rows that do not hold; owned */
    bool foreign;   /* some row is not known here */
    bool behind;    /* some row is not proved as of now */
    bool again; /* the store has forgotten what changed: nothing that was proved before will do */
    hd_status status;
} saying;

/* What the store has of it is what it is now. */
static bool row_holds(const saying *w, node_id id) {
    const node *n = node_of(w->s, id);
    const kept_node *k = kept_of(w->s, id);
    if (node_is_invalid(&w->s->graph, n) || (n->flags & (NODE_RUNNING | NODE_NEVER_RAN)))
        return false;
    if (k->sent_in > w->s->r->settled || k->wrote_in > w->s->r->settled) return false;
    return (k->flags & KEPT_ROW) &&
           !(k->flags & (KEPT_DUE | KEPT_CHANGED | KEPT_FAILED | KEPT_CREATES));
}

static void replace(saying *w, hd_value *at, hd_value next) {
    if (value_is_failed(next)) {
        w->status = HD_NOMEM;
        return;
    }
    value_unref(*at);
    *at = next;
}

/* The seq of a space that a row reads, and whether the row was proved before it. */
static void take_space(saying *w, const char *text, size_t length, uint64_t proved) {
    authority *a = w->s->r->authority;
    hd_value known = object_get_bytes(w->seqs, text, length);
    uint64_t now = (uint64_t)hd_value_as_int(known, 0);
    if (value_is_absent(known)) {
        struct key *space = key_intern(w->s->r->heap, text, length);
        w->status = space ? a->ops->basis->seq_of(a, space, &now) : HD_NOMEM;
        hd_value n = w->status ? value_absent() : int_make(w->s->r->heap, (int64_t)now);
        if (!w->status) replace(w, &w->seqs, object_set(w->s->r->heap, w->seqs, space, n));
        value_unref(n);
        key_unref(space);
    }
    if (proved < now) w->behind = true;
}

static bool is_hit(const scheduler *s, node_id id, hd_value seqs) {
    const node *n = node_of(s, id);
    const edge *reads = node_reads_const(n);
    for (uint32_t i = 0; i < n->read_count; i++) {
        const place *doc = doc_of(s, reads[i].key & KEY_PLACE);
        const struct key *space = s->r->places.homes.items[doc->doc.home].space;
        hd_value proved = object_get_bytes(seqs, key_bytes(space), space->length);
        if ((doc->doc.flags & DOC_KNOWN) && doc->doc.seq > (uint64_t)hd_value_as_int(proved, 0))
            return true;
    }
    return false;
}

/* Whether only a proof of its own can help it. */
static bool needs_proof(const saying *w, node_id id, hd_value seqs) {
    return row_holds(w, id) && (w->again || is_hit(w->s, id, seqs));
}

static bool take_row(void *ctx, const basis_row *row) {
    saying *w = ctx;
    size_t length = strlen(row->name);
    node_id id = persistence_find(w->s, row->name, length);
    w->foreign = !id || *row->instance || hd_value_count(w->stale) >= STALE_MAX;
    for (hd_iter it = hd_iter_of(row->seqs); !w->status && hd_iter_next(&it);)
        take_space(w, it.key, it.key_length, (uint64_t)hd_value_as_int(it.value, 0));
    /* Reads without a claim are known by a seq of their own, which only the row can move. */
    if (!w->foreign && rows_has_unclaimed(node_of(w->s, id)) && needs_proof(w, id, row->seqs))
        persistence_due(w->s, id);
    if (!w->foreign && !w->status && !row_holds(w, id)) {
        hd_value name = text_make(w->s->r->heap, TAG_STRING, row->name, length);
        replace(w, &w->stale, array_append(w->s->r->heap, w->stale, name));
        value_unref(name);
    }
    return !w->status && !w->foreign;
}

/* ---- one by one */

static bool is_own(scheduler *s, node_id id, const char *instance) {
    size_t length;
    hd_value brief = rows_kept(s, id);
    return value_exists(brief) && !strcmp(text_of(array_get(brief, 1), &length), instance);
}

static bool prove_row(void *ctx, const basis_row *row) {
    const saying *w = ctx;
    node_id id = persistence_find(w->s, row->name, strlen(row->name));
    if (id && needs_proof(w, id, row->seqs) && is_own(w->s, id, row->instance))
        persistence_due(w->s, id);
    return true;
}

/* What cannot be told now runs once more, that is all. */
static void prove_hit(saying *w, const char *piece) {
    authority *a = w->s->r->authority;
    hd_value valid = value_absent();
    (void)a->ops->basis->rows(a, piece, &valid, prove_row, w);
    value_unref(valid);
}

/* ---- the word */

/* {"pieces": [[name, seqs, stale]]} */
static hd_value make_extra(const saying *w, hd_value name) {
    hd_heap *heap = w->s->r->heap;
    hd_value items[3] = { value_ref(name), value_ref(w->seqs), value_ref(w->stale) };
    hd_value piece = array_take(heap, items, 3);
    hd_value pieces = array_append(heap, hd_array(), piece);
    struct key *k = key_intern(heap, "pieces", 6);
    hd_value extra = k ? object_set(heap, hd_object(), k, pieces) : value_failed(HD_NOMEM);
    key_unref(k);
    value_unref(piece);
    value_unref(pieces);
    return extra;
}

static void send(const saying *w, hd_value name) {
    replica *r = w->s->r;
    hd_value extra = make_extra(w, name);
    commit *c = value_is_failed(extra) ? NULL : replica_commit_new(r, HD_COMMIT_DERIVED);
    if (!c) {
        if (!value_is_failed(extra)) value_unref(extra);
        return; /* then it is found out again */
    }
    c->extra = extra;
    c->extra_is_ours = true;
    replica_enqueue(r, c);
}

static void say(scheduler *s, uint32_t index, bool again) {
    authority *a = s->r->authority;
    saying w = { .s = s, .seqs = hd_object(), .stale = hd_array(), .again = again };
    hd_value name = s->persistence->pieces.items[index].name, valid = value_absent();
    size_t length;
    const char *piece = text_of(name, &length);
    hd_status status = a->ops->basis->rows(a, piece, &valid, take_row, &w);
    bool said = value_exists(valid) && value_equal(valid, w.seqs);
    if (!status && !w.status && !w.foreign && w.behind && !said) send(&w, name);
    if (!status && !w.status && w.foreign) prove_hit(&w, piece);
    value_unref(valid);
    value_unref(w.seqs);
    value_unref(w.stale);
}

void persistence_stops(scheduler *s, const char *space, const char *piece) {
    authority *a = s->r->authority;
    const persistence *p = s->persistence;
    const kept_piece *of = p ? persistence_piece(s, space, piece) : NULL;
    if (of && of->nodes && !p->lost && a->ops->wants_derived(a))
        say(s, (uint32_t)(of - p->pieces.items), false);
}

static void say_all(scheduler *s, bool again) {
    const persistence *p = s->persistence;
    for (uint32_t i = 0; i < p->pieces.count; i++)
        if (value_exists(p->pieces.items[i].name) && p->pieces.items[i].nodes) say(s, i, again);
}

bool persistence_look_back(scheduler *s) {
    authority *a = s->r->authority;
    uint64_t before = s->persistence->reach;
    if (!a->ops->basis->reach || a->ops->basis->reach(a, &s->persistence->reach)) return false;
    return before < s->persistence->reach;
}

void persistence_say_again(scheduler *s) {
    const persistence *p = s->persistence;
    if (p->wanted && !p->lost && p->reach && persistence_look_back(s)) say_all(s, true);
}

void persistence_say_valid(scheduler *s) {
    authority *a = s->r->authority;
    const persistence *p = s->persistence;
    if (!p || p->lost || s->r->pending_count || !a->ops->wants_derived(a)) return;
    say_all(s, false);
    if (p->due.count) (void)overlay_seal(s->r, true); /* without memory it is found out again */
    if (s->r->pending_count) (void)replica_send(s->r);
}
