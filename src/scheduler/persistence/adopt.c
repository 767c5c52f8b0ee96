/* adopt.c -- another runtime has run a node that is here too.
 *
 * Its seal brings the outputs, and with them the row that says what the run read. If the node here has the
 * same name and the same code, and what the run read is unchanged, running it would give the same outputs: it
 * takes over the reads and is clean (C313). Otherwise it runs.
 *
 * A row that is not taken over has still replaced this runtime's row in the store: the next one that this
 * runtime writes is a whole row. If it is a row of another version of the node, the outputs in the store are
 * that version's, too: this runtime writes no row until the node has run again here. */
#include "scheduler/persistence/persistence.h"

#include "base/env.h"
#include "store/basis.h"
#include "value/array.h"
#include "value/diff.h"
#include "value/key.h"
#include "value/object.h"
#include "value/text.h"

enum {
    BUSY = NODE_RUNNING | NODE_SUSPENDED | NODE_WAITING | NODE_STARVED | NODE_PROVISIONAL |
           NODE_DEMANDED | NODE_EPHEMERAL | NODE_REMOVED | NODE_OWED
};

typedef struct adopting {
    scheduler *s;
    hd_value seqs;      /* where the spaces stood with the seal */
    uint32_t home;      /* of the read before, for reads_parse */
    VEC(uint32_t) keys; /* what the run read, with a reference to each place */
    uint32_t outputs;   /* the last of these are not read but written */
} adopting;

/* ---- is it what is there now? */

/* No change after the seal, and none of ours that other runtimes do not know yet. */
static bool is_current(const adopting *a, place_id at) {
    const place *doc = doc_of(a->s, at);
    const struct key *space = a->s->r->places.homes.items[doc->doc.home].space;
    hd_value seq = object_get_bytes(a->seqs, key_bytes(space), space->length);
    if (doc->doc.flags & (DOC_OVERLAY | DOC_VOLATILE)) return false;
    if (replica_top(a->s->r, place_at(&a->s->r->places, at)->root)) return false;
    return !(doc->doc.flags & DOC_KNOWN) || doc->doc.seq <= (uint64_t)hd_value_as_int(seq, 0);
}

static bool outputs_are_current(const adopting *a, node_id id) {
    for (uint32_t i = 0, out; (out = graph_output(&a->s->graph, id, i)) != 0; i++)
        if (!is_current(a, out & ~WRITER_ENVELOPE)) return false;
    return true;
}

static bool could_be_clean(const adopting *a, node_id id) {
    const scheduler *s = a->s;
    const node *n = node_of(s, id);
    const kept_node *k = kept_of(s, id);
    if (!node_is_invalid(&s->graph, n) || (n->flags & BUSY)) return false;
    if ((k->flags & KEPT_CREATES) || k->wrote_in > s->r->settled) return false;
    return node_is_eligible(&s->graph, n) && outputs_are_current(a, id);
}

/* ---- what it read */

static bool take_read(adopting *a, hd_value cell) {
    scheduler *s = a->s;
    uint32_t key;
    bool output;
    size_t length;
    const char *text = hd_value_text(cell, &length);
    if (!text || !vec_room(s->env, &a->keys, 1)) return false;
    if (reads_parse(s, text, length, &a->home, &key, &output)) return false;
    place_ref(&s->r->places, key & KEY_PLACE);
    a->keys.items[a->keys.count++] = key;
    a->outputs += output;
    return true;
}

static bool take_reads(adopting *a, hd_value body) {
    bool well = true;
    a->outputs = 0;
    for (hd_iter it = hd_iter_of(basis_reads_of(body)); well && hd_iter_next(&it);)
        well = take_read(a, it.value);
    return well;
}

static void drop_reads(adopting *a) {
    while (a->keys.count) place_unref(&a->s->r->places, vec_pop(&a->keys) & KEY_PLACE);
}

/* ---- one row */

/* Without memory it stays invalid, and runs. */
static bool make_clean(adopting *a, node_id id) {
    scheduler *s = a->s;
    node *n = node_of(s, id);
    if (graph_mark_clean(&s->graph, id)) return false;
    n->flags &= ~(uint32_t)NODE_NEVER_RAN;
    n->flags |= NODE_RESUMED;
    n->ran_rev = s->r->rev;
    return true;
}

/* The row in the store is that one now. */
static void take_row(adopting *a, node_id id, hd_value row) {
    kept_node *k = kept_of(a->s, id);
    value_unref(k->mark);
    value_unref(k->hashes);
    k->mark = value_ref(array_get(row, ROW_MARK));
    k->hashes = value_ref(array_get(row, ROW_HASHES));
    k->rev = a->s->r->rev;
    k->flags &= (uint16_t) ~(KEPT_CHANGED | KEPT_RAN | KEPT_FAILED | KEPT_DERIVED);
    k->flags |= KEPT_ROW;
}

/* A document that is not known here is as the author of the seal saw it: no later change has been told. */
static bool holds(const adopting *a, const uint32_t *keys, uint32_t count, hd_value row) {
    return match_reads(a->s, keys, count, match_known(a->s, keys, count),
                       basis_item_text(row, ROW_HASHES, NULL)) == MATCH_YES;
}

static bool adopt_whole(adopting *a, node_id id, hd_value row) {
    scheduler *s = a->s;
    hd_value body = array_get(row, ROW_BODY);
    if (!value_equal(array_get(row, ROW_PRINT), kept_of(s, id)->print) || !could_be_clean(a, id))
        return false;
    bool derived = value_exists(object_get_bytes(body, "derived", 7));
    bool failed = value_exists(object_get_bytes(body, "failed", 6));
    bool taken = take_reads(a, body) && holds(a, a->keys.items, a->keys.count, row) &&
                 !graph_apply_reads(&s->graph, id, a->keys.items, a->keys.count - a->outputs) &&
                 (!derived || !resume_ask_later(s, id)) && make_clean(a, id);
    drop_reads(a);
    if (!taken) return false;
    take_row(a, id, row);
    kept_of(s, id)->flags |= (uint16_t)((derived ? KEPT_DERIVED : 0) | (failed ? KEPT_FAILED : 0));
    return true;
}

/* The same reads as in the row that we know. */
static bool adopt_renewed(adopting *a, node_id id, hd_value row) {
    scheduler *s = a->s;
    const kept_node *k = kept_of(s, id);
    uint32_t count;
    if ((k->flags & KEPT_CHANGED) || !value_equal(array_get(row, ROW_MARK), k->mark)) return false;
    if (!could_be_clean(a, id)) return false;
    const uint32_t *keys = match_keys(s, id, &count);
    if (!keys || !holds(a, keys, count, row)) return false;
    uint16_t derived = k->flags & KEPT_DERIVED;
    if (!make_clean(a, id)) return false;
    take_row(a, id, row);
    kept_of(s, id)->flags |= derived;
    return true;
}

/* The node here that [name, instance, ...] speaks of; 0: none, or no memory to tell. */
static node_id node_of_row(scheduler *s, hd_value row) {
    size_t length;
    const char *name = basis_item_text(row, ROW_NAME, &length);
    node_id id = persistence_find(s, name, length);
    hd_value instance = id ? rows_instance(s, kept_scope(kept_of(s, id))) : value_absent();
    if (!value_exists(instance) || (kept_of(s, id)->flags & KEPT_CREATES)) return 0;
    return value_equal(array_get(row, ROW_INSTANCE), instance) ? id : 0;
}

/* ---- rows of another version */

static bool is_undecided(const scheduler *s, place_id out) {
    const place *doc = doc_of(s, out);
    return (doc->doc.flags & DOC_OVERLAY) || replica_top(s->r, place_at(&s->r->places, out)->root);
}

/* Something that a run here has written, or is about to write, comes behind what was heard. */
static bool has_undecided_output(const scheduler *s, node_id id) {
    if (node_of(s, id)->flags & (NODE_RUNNING | NODE_SUSPENDED)) return true;
    if (kept_of(s, id)->wrote_in > s->r->settled) return true;
    for (uint32_t i = 0, out; (out = graph_output(&s->graph, id, i)) != 0; i++)
        if (is_undecided(s, out & ~WRITER_ENVELOPE)) return true;
    return false;
}

/* All outputs and their row are on their way in one seal: it will replace what was heard. */
static bool replaces_all(const scheduler *s, node_id id) {
    const kept_node *k = kept_of(s, id);
    for (uint32_t i = 0, out; (out = graph_output(&s->graph, id, i)) != 0; i++) {
        place_id at = out & ~WRITER_ENVELOPE;
        const layer *top = replica_top(s->r, place_at(&s->r->places, at)->root);
        if (!top || top->c->local_seq != k->sent_in) return false;
        if (doc_of(s, at)->doc.flags & DOC_OVERLAY) return false;
    }
    return true;
}

static void set_replaced(scheduler *s, node_id id) {
    assert(!(kept_of(s, id)->flags & KEPT_CREATES));
    kept_of(s, id)->flags |= KEPT_REPLACED;
    node_of(s, id)->flags |= NODE_NOTED; /* its next run is told */
}

/* Where only some outputs are ours by then, neither row is about them: the node runs once more. */
static void note_replaced(scheduler *s, node_id id) {
    if (replaces_all(s, id)) return;
    set_replaced(s, id);
    if (!has_undecided_output(s, id)) return;
    gone_add_node(s, id);
    graph_mark_invalid(&s->graph, id);
    s->tick = true;
}

/* Another runtime has deleted the row: perhaps because it has written outputs of another version without
 * their row. */
static void hear_gone(scheduler *s, hd_value item) {
    node_id id = node_of_row(s, item);
    if (!id) return;
    kept_of(s, id)->flags |= KEPT_CHANGED;
    if (!has_undecided_output(s, id)) set_replaced(s, id);
}

/* The item is of another version, or has deleted a row of another version. */
static bool is_foreign(const kept_node *k, hd_value row) {
    if (basis_is_whole(row)) return !value_equal(array_get(row, ROW_PRINT), k->print);
    return value_is_absent(k->mark) || !value_equal(array_get(row, ROW_MARK), k->mark);
}

static void hear_row(adopting *a, hd_value row) {
    node_id id = node_of_row(a->s, row);
    if (!id) return;
    bool taken = basis_is_whole(row) ? adopt_whole(a, id, row) : adopt_renewed(a, id, row);
    if (taken) return;
    if (is_foreign(kept_of(a->s, id), row)) note_replaced(a->s, id);
    kept_of(a->s, id)->flags |= KEPT_CHANGED;
}

void adopt_observed(void *ctx, hd_value extra, hd_value seqs) {
    adopting a = { .s = ctx, .seqs = seqs };
    basis_extra x = basis_extra_of(extra);
    for (hd_iter it = hd_iter_of(x.nodes); hd_iter_next(&it);) hear_row(&a, it.value);
    for (hd_iter it = hd_iter_of(x.gone); hd_iter_next(&it);) hear_gone(a.s, it.value);
    vec_fini(a.s->env, &a.keys);
    graph_settle(&a.s->graph);
}
