/* left.c -- the documents of a row that has left its list, and of a chunk that has left its fold.
 *
 * When the build of such a row or chunk stops, the documents that its nodes write are noted. The next pump removes
 * those that no node writes by then: a row that comes back finds its documents, or writes them anew. The removal is not
 * part of the list's commit, which is made while nodes still read the documents. If another program has made the row
 * again meanwhile, it writes the documents again, since the scheduler invalidates a computation whose output another
 * program has removed (invalidation.c).
 *
 * A row may also have left while no program ran, or its program may have been killed before the removal. The store
 * still has what the nodes of that row had read and written (persistence). So when a list has made its rows, the
 * documents of all other rows that the store knows of are noted, too. */
#include "pattern/pattern.h"

#include "base/env.h"
#include "scheduler/persistence/persistence.h"
#include "scheduler/registry.h"
#include "scheduler/scheduler.h"
#include "store/tx.h"
#include "value/key.h"

#define LEFT_SLICE 256 /* documents that one transaction removes */
#define LATELY     16  /* was_noted looks at so many of the last notes */

/* Whether the build has given the document its name: nodes that a program registers may write elsewhere. */
static bool is_below(const hd_build *b, const struct key *id) {
    size_t length = strlen(b->path);
    return id->length >= length && !memcmp(key_bytes(id), b->path, length) &&
           (id->length == length || key_bytes(id)[length] == '/');
}

static void note(patterns *all, place_id doc) {
    if (vec_push(all->env, &all->left, doc)) place_ref(&all->rt->r.places, doc);
}

static void note_outputs(hd_build *b, const scheduler *s, node_id id) {
    places *ps = &b->all->rt->r.places;
    for (uint32_t i = 0, out; (out = graph_output(&s->graph, id, i)) != 0; i++) {
        place_id doc = place_at(ps, out & ~WRITER_ENVELOPE)->root;
        if ((out & WRITER_ENVELOPE) || !is_below(b, place_at(ps, doc)->doc.id)) continue;
        note(b->all, doc);
    }
}

void left_note(hd_build *b) {
    const scheduler *s = scheduler_get(b->all->rt);
    if (!s || b->all->closing || b->all->rt->options.read_only) return;
    LIST_FOR (at, &b->parts) {
        const part *p = LIST_ENTRY(at, part, link);
        if (p->node.id && hd_node_exists(b->all->rt, p->node))
            note_outputs(b, s, registry_get(s, p->node));
    }
}

/* Whether the document is among the last notes. Rows of one list are noted one after the other, and the documents above
 * them are the same. */
static bool was_noted(const patterns *all, place_id doc) {
    uint32_t from = all->left.count > LATELY ? all->left.count - LATELY : 0;
    for (uint32_t i = from; i < all->left.count; i++)
        if (all->left.items[i] == doc) return true;
    return false;
}

/* Notes the documents whose ids are beginnings of this one's, up to a slash at or after `from`. A list or fold inside
 * of a row is a node that creates nodes, so the store has no row about it; it has rows about the nodes that were
 * created, and the ids of their documents begin with the id of the list's document. */
static void note_above(patterns *all, place_id doc, size_t from) {
    places *ps = &all->rt->r.places;
    const struct key *id = place_at(ps, doc)->doc.id;
    uint32_t home = place_at(ps, doc)->doc.home;
    for (size_t at = from; at < id->length; at++) {
        if (key_bytes(id)[at] != '/') continue;
        struct key *name = key_intern(all->rt->heap, key_bytes(id), at);
        place_id above = 0;
        if (name && !places_doc(ps, home, name, &above)) {
            place_ref(ps, above);
            if (!was_noted(all, above)) note(all, above);
            place_unref(ps, above);
        }
        if (name) key_unref(name);
    }
}

void left_note_row(const resume_set *set, const set_row *row, void *ctx) {
    const part *p = ctx;
    patterns *all = p->in->all;
    const places *ps = &all->rt->r.places;
    size_t own = place_at(ps, place_at(ps, p->output.id)->root)->doc.id->length;
    const uint32_t *keys = set_keys(set, row);
    for (uint32_t i = row->keys - row->outputs; i < row->keys; i++) {
        place_id doc = place_at(ps, keys[i] & KEY_PLACE)->root;
        if (all->rt->options.read_only || !is_below(p->in, place_at(ps, doc)->doc.id)) continue;
        note_above(all, doc, own + 1);
        note(all, doc);
    }
}

static hd_status remove_one(hd_tx *tx, place_id doc) {
    place_id meta;
    hd_status status = replica_load(tx->r, doc);
    if (status || value_is_absent(place_at(&tx->r->places, doc)->value)) return status;
    status = tx_write_op(tx, OP_DELETE, doc, value_absent(), 0);
    if (!status) status = runtime_meta(tx->rt, doc, &meta);
    return status ? status : tx_write_op(tx, OP_DELETE, meta, value_absent(), 0);
}

/* ---- the removal */

typedef struct leaving {
    patterns *all;
    uint32_t count;
    place_id docs[]; /* referenced */
} leaving;

static hd_status remove_some(hd_tx *tx, void *ctx) {
    const leaving *l = ctx;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < l->count && !status; i++)
        if (!tx_place(tx, l->docs[i])->doc.writer) status = remove_one(tx, l->docs[i]);
    return status;
}

static void end_leaving(hd_status status, void *ctx) {
    leaving *l = ctx;
    const hd_env *env = l->all->env;
    if (status)
        env_log(env, HD_LOG_WARN, "documents of rows that have left a list stay: %s",
                hd_status_text(status));
    for (uint32_t i = 0; i < l->count; i++) place_unref(&l->all->rt->r.places, l->docs[i]);
    env_free(env, l, sizeof *l + l->count * sizeof *l->docs);
}

/* The last `count` documents of the list. */
static leaving *take_last(patterns *all, uint32_t count) {
    leaving *l = env_new(all->env, sizeof *l + count * sizeof *l->docs);
    if (!l) return NULL;
    *l = (leaving){ .all = all, .count = count };
    all->left.count -= count;
    memcpy(l->docs, all->left.items + all->left.count, count * sizeof *l->docs);
    return l;
}

/* The store refuses a removal if another program has written one of the documents since, or if the removal read a value
 * of a commit of this runtime that was refused. hd_transact_later then tries again; so it does while a document
 * loads. */
void left_work_off(patterns *all) {
    if (!all->left.count || all->rt->open) return;
    leaving *l = take_last(all, all->left.count < LEFT_SLICE ? all->left.count : LEFT_SLICE);
    if (!l) return; /* the next pump tries again */
    hd_status status = hd_transact_later(all->rt, remove_some, l, end_leaving, l);
    if (status) end_leaving(status, l);
}
