/* persistence_adopt.c -- another runtime has run a node that is here too.
 *
 * Its seal brings the outputs, and with them the row that says what the run read. Where the node here
 * has the same name and the same code, and all of that is what is there now, running it could only
 * give the same: it takes over the reads and is clean (C313). Whatever is missing for that, it runs.
 *
 * A row that is not taken over has still replaced ours in the store: the next one we write says
 * everything, not only that it is as before. */
#include "scheduler/persistence.h"

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
} adopting;

/* ---- is it what is there now? */

/* Nothing of ours that others do not know yet. */
static bool is_shared(const scheduler *s, place_id at) {
    const place *doc = doc_of(s, at);
    if (doc->doc.flags & (DOC_OVERLAY | DOC_VOLATILE)) return false;
    return !replica_top(s->r, place_at(&s->r->places, at)->root);
}

/* No change after the seal. Of a document that nobody has loaded here later changes will be told. */
static bool is_current(const adopting *a, place_id at) {
    const place *doc = doc_of(a->s, at);
    const struct key *space = a->s->r->places.homes.items[doc->doc.home].space;
    hd_value seq = object_get_bytes(a->seqs, key_bytes(space), space->length);
    if (!is_shared(a->s, at)) return false;
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
    if ((k->flags & (KEPT_FAILED | KEPT_CREATES)) || k->wrote_in > s->r->settled) return false;
    return node_is_eligible(&s->graph, n) && outputs_are_current(a, id);
}

/* ---- what it read */

/* A read that no claim proved must be what was seen. */
static bool is_as_seen(const adopting *a, uint32_t key, uint64_t seq) {
    const place *doc = doc_of(a->s, key & KEY_PLACE);
    return (doc->doc.flags & DOC_KNOWN) && doc->doc.seq <= seq;
}

static bool take_read(adopting *a, hd_value read) {
    scheduler *s = a->s;
    uint32_t key;
    bool own = hd_value_kind(read) == HD_KIND_ARRAY;
    hd_value cell = own ? array_get(read, 0) : read;
    if (hd_value_kind(cell) != HD_KIND_STRING || !vec_room(s->env, &a->keys, 1)) return false;
    size_t length;
    const char *text = text_of(cell, &length);
    bool output;
    if (reads_parse(s, text, length, &a->home, &key, &output)) return false;
    if (output) return true; /* those have been looked at */
    if (own) key |= KEY_NO_CLAIM;
    place_ref(&s->r->places, key & KEY_PLACE);
    a->keys.items[a->keys.count++] = key;
    if (own && !is_as_seen(a, key, (uint64_t)hd_value_as_int(array_get(read, 1), 0))) return false;
    return is_current(a, key & KEY_PLACE);
}

static bool take_reads(adopting *a, hd_value body) {
    bool well = true;
    for (hd_iter it = hd_iter_of(object_get_bytes(body, "r", 1)); well && hd_iter_next(&it);)
        well = take_read(a, it.value);
    return well;
}

static void drop_reads(adopting *a) {
    while (a->keys.count) place_unref(&a->s->r->places, vec_pop(&a->keys) & KEY_PLACE);
}

static bool own_reads_are_current(const adopting *a, const node *n) {
    const edge *reads = node_reads_const(n);
    for (uint32_t i = 0; i < n->read_count; i++)
        if (!is_current(a, reads[i].key & KEY_PLACE)) return false;
    return true;
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

static bool adopt_full(adopting *a, node_id id, hd_value row) {
    scheduler *s = a->s;
    kept_node *k = kept_of(s, id);
    hd_value body = array_get(row, 3);
    if (!value_equal(array_get(row, 2), k->print) || !could_be_clean(a, id)) return false;
    uint8_t derived = value_exists(object_get_bytes(body, "derived", 7)) ? KEPT_DERIVED : 0;
    bool taken = take_reads(a, body) &&
                 !graph_apply_reads(&s->graph, id, a->keys.items, a->keys.count) &&
                 (!derived || !resume_ask_later(s, id)) && make_clean(a, id);
    drop_reads(a);
    if (!taken) return false;
    k->flags = (uint8_t)((k->flags & (KEPT_DUE | KEPT_MENDS)) | KEPT_ROW | derived);
    k->debounce_ms = (uint32_t)hd_value_as_int(object_get_bytes(body, "debounce", 8), 0);
    k->throttle_ms = (uint32_t)hd_value_as_int(object_get_bytes(body, "throttle", 8), 0);
    return true;
}

/* "It is as it was": as the row that we know, if it speaks of the same code. */
static void adopt_brief(adopting *a, node_id id, hd_value row) {
    if (!value_equal(array_get(row, 2), array_get(rows_kept(a->s, id), 2))) return;
    if (!rows_is_known(a->s, id) || !could_be_clean(a, id)) return;
    if (own_reads_are_current(a, node_of(a->s, id))) make_clean(a, id);
}

/* The node here that [name, instance, ...] speaks of; 0: none, or no memory to tell. */
static node_id node_of_row(scheduler *s, hd_value row) {
    size_t length;
    const char *name = text_of(array_get(row, 0), &length);
    node_id id = persistence_find(s, name, length);
    hd_value brief = id ? rows_kept(s, id) : value_absent();
    return value_exists(brief) && value_equal(array_get(row, 1), array_get(brief, 1)) ? id : 0;
}

static void hear_row(adopting *a, hd_value row) {
    node_id id = node_of_row(a->s, row);
    if (!id) return;
    if (hd_value_count(row) < 4) adopt_brief(a, id, row);
    else if (!adopt_full(a, id, row)) kept_of(a->s, id)->flags |= KEPT_CHANGED;
}

void adopt_observed(void *ctx, hd_value extra, hd_value seqs) {
    adopting a = { .s = ctx, .seqs = seqs };
    basis_extra x = basis_extra_of(extra);
    for (hd_iter it = hd_iter_of(x.nodes); hd_iter_next(&it);) hear_row(&a, it.value);
    for (hd_iter it = hd_iter_of(x.gone); hd_iter_next(&it);) {
        node_id id = node_of_row(a.s, it.value);
        if (id) kept_of(a.s, id)->flags |= KEPT_CHANGED;
    }
    vec_fini(a.s->env, &a.keys);
    graph_settle(&a.s->graph);
}
