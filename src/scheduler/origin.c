/* origin.c -- which piece writes a document.
 *
 * The metadata of a derived document names the piece that writes it, {"piece": "space:piece"}: a runtime that
 * reads the document, and in which that piece does not run, can open it (C300). The metadata is an output
 * like the document itself: written with its node's first run, and stored by the same seal. Documents that no
 * node writes have no such entry, nor have outputs of nodes outside of pieces, which cannot be opened.
 */
#include "scheduler/origin.h"

#include "base/env.h"
#include "scheduler/persistence/persistence.h"
#include "store/overlay.h"
#include "value/key.h"
#include "value/object.h"

#define PIECE_KEY "piece"

/* ---- saying it */

/* The name of the node's piece, borrowed; absent: it is in none. */
static hd_value piece_of_node(const scheduler *s, node_id id) {
    assert(!(node_of(s, id)->flags & NODE_REMOVED));
    const kept_node *k = kept_of(s, id);
    if (!kept_has_name(k)) return value_absent();
    const kept_piece *of = &s->persistence->pieces.items[k->piece];
    return of->plain ? value_absent() : of->name;
}

static hd_status with_piece(scheduler *s, hd_value before, hd_value piece, hd_value *out) {
    hd_heap *heap = s->r->heap;
    struct key *k = key_intern(heap, PIECE_KEY, strlen(PIECE_KEY));
    if (!k) return HD_NOMEM;
    hd_value base = hd_value_kind(before) == HD_KIND_OBJECT ? before : hd_object();
    *out = object_set(heap, base, k, piece);
    key_unref(k);
    return hd_value_status(*out);
}

/* DOC_PASSING: the replica forgets the metadata when it has been stored; nodes seldom read it. */
static hd_status name_doc(scheduler *s, place_id doc, hd_value piece, node_id author) {
    assert(value_exists(piece) && author);
    place_id meta;
    hd_value after = value_absent();
    bool changed = false;
    hd_status status = runtime_meta(s->rt, doc, &meta);
    if (!status) status = replica_load(s->r, meta);
    if (status) return status;
    place_at(&s->r->places, meta)->doc.flags |= DOC_PASSING;
    status = with_piece(s, place_at(&s->r->places, meta)->value, piece, &after);
    if (!status) status = overlay_write(s->r, meta, after, 0, author, &changed);
    if (!value_is_failed(after)) value_unref(after);
    if (!changed) places_forget(&s->r->places, meta);
    return status;
}

void origin_say(scheduler *s, node_id id) {
    hd_value piece = piece_of_node(s, id);
    if (value_is_absent(piece)) return;
    hd_status status = HD_OK;
    for (uint32_t i = 0, out; (out = graph_output(&s->graph, id, i)) != 0 && !status; i++) {
        place_id doc = place_at(&s->r->places, out & ~WRITER_ENVELOPE)->root;
        const place *p = place_at(&s->r->places, doc);
        if ((out & WRITER_ENVELOPE) || (p->doc.flags & DOC_VOLATILE)) continue;
        status = name_doc(s, doc, piece, id);
    }
    if (status) origin_say_later(s, id);
}

/* Without memory for the list, the metadata is written after the next start. */
void origin_say_later(scheduler *s, node_id id) {
    if (s->persistence && value_exists(piece_of_node(s, id)))
        (void)vec_push(s->env, &s->unsaid, id);
}

/* A node that fails again is appended anew by origin_say. */
void origin_pump(scheduler *s) {
    uint32_t asked = s->unsaid.count;
    for (uint32_t i = 0; i < asked; i++) {
        node_id id = s->unsaid.items[i];
        if (!(node_of(s, id)->flags & (NODE_REMOVED | NODE_NEVER_RAN))) origin_say(s, id);
    }
    if (!asked) return;
    s->unsaid.count -= asked;
    memmove(s->unsaid.items, s->unsaid.items + asked, s->unsaid.count * sizeof *s->unsaid.items);
}

/* ---- looking it up */

/* The metadata's place, if it has one. */
static place_id find_meta(const places *ps, place_id doc) {
    assert(place_at(ps, doc)->root == doc);
    const place *p = place_at(ps, doc);
    const doc_home *of = &ps->homes.items[p->doc.home];
    for (uint32_t i = 0; i < ps->homes.count; i++) {
        const doc_home *h = &ps->homes.items[i];
        if (h->meta && h->space == of->space && h->scope == of->scope &&
            h->instance == of->instance)
            return places_find_doc(ps, i, p->doc.id);
    }
    return 0;
}

/* What is known here, or else what the store says. */
static hd_status metadata_of(const scheduler *s, place_id doc, hd_value *out) {
    authority *a = s->r->authority;
    const places *ps = &s->r->places;
    place_id meta = find_meta(ps, doc);
    if (!meta || !(place_at(ps, meta)->doc.flags & DOC_KNOWN)) return a->ops->metadata(a, doc, out);
    *out = value_ref(place_at(ps, meta)->value);
    return HD_OK;
}

hd_value origin_of(const scheduler *s, place_id doc) {
    assert(place_at(&s->r->places, doc)->root == doc);
    const places *ps = &s->r->places;
    const place *p = place_at(ps, doc);
    hd_value metadata;
    if (!s->persistence || (p->doc.flags & DOC_VOLATILE) || ps->homes.items[p->doc.home].meta)
        return value_absent();
    if (metadata_of(s, doc, &metadata)) return value_absent();
    hd_value piece = value_ref(object_get_bytes(metadata, PIECE_KEY, strlen(PIECE_KEY)));
    value_unref(metadata);
    return piece;
}
