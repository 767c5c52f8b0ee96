/* demand.c -- the runtime opens a stored piece when a node demands its output or an event its handler.
 *
 * A derived document names in its metadata the piece that writes it. If a live node reads such a document,
 * no node in this runtime writes it, and the pattern of that piece is registered, the runtime opens the
 * piece, between runs. The document's own name plays no part. The scheduler asks once per document.
 *
 * A stream has no document, so there the name decides: the handler of "corner/add" belongs to the piece
 * "corner", and the runtime opens that piece before it gives up an event for the stream. */
#include "pattern/pattern.h"

#include "base/env.h"
#include "scheduler/origin.h"
#include "scheduler/scheduler.h"
#include "store/memo.h"
#include "value/key.h"
#include "value/text.h"
#include <stdio.h>
#include <string.h>

#define ID_SIZE 512

/* A piece by name. */
typedef struct piece_name {
    char space[ID_SIZE], id[ID_SIZE];
} piece_name;

static bool take_name(piece_name *n, const char *space, size_t space_length, const char *id,
                      size_t id_length) {
    if (space_length >= ID_SIZE || id_length >= ID_SIZE) return false;
    memcpy(n->space, space, space_length);
    memcpy(n->id, id, id_length);
    n->space[space_length] = n->id[id_length] = 0;
    return name_is_plain(n->id);
}

/* A failure is logged: the node that demands the piece did not call anything that could return it. */
static hd_status open_known(patterns *all, const piece_name *n) {
    hd_piece p;
    hd_error error;
    hd_status status = hd_piece_open(all->rt, n->space, n->id, &p, &error);
    if (status)
        env_log(all->env, HD_LOG_ERROR, "the piece \"%s\" could not be opened: %s", n->id,
                error.message);
    return status;
}

/* Opens the piece if it does not run, its document exists and its pattern is registered; else
 * HD_NOT_FOUND. */
static hd_status open_piece(patterns *all, const piece_name *n) {
    hd_tx *tx;
    /* A piece that runs and does not write the document has no part for it. */
    if (hd_piece_find(all->rt, n->space, n->id).id) return HD_NOT_FOUND;
    hd_cell document = hd_cell_of(all->rt, n->space, HD_SCOPE_SPACE, n->id, "");
    if (!document.id || is_forsworn(all, document)) return HD_NOT_FOUND;
    hd_status status = hd_tx_begin_read(all->rt, &tx);
    if (status) return status;
    const char *name = hd_value_as_text(hd_value_at(hd_tx_get(tx, document), "pattern"), NULL);
    bool known = name && patterns_find(all, name);
    if (name && !known) /* not an error: a program that only inspects registers no patterns */
        env_log(all->env, HD_LOG_INFO, "the piece \"%s\" is not opened: no pattern \"%s\" here",
                n->id, name);
    hd_tx_abort(tx);
    return known ? open_known(all, n) : HD_NOT_FOUND;
}

/* ---- documents */

/* The origin of a document is the text "space:piece". */
static bool name_of_writer(const scheduler *s, place_id doc, piece_name *out) {
    size_t length = 0;
    hd_value name = origin_of(s, doc);
    const char *text = hd_value_text(name, &length);
    const char *colon = text ? memchr(text, ':', length) : NULL;
    char space[ID_SIZE];
    bool named =
        colon && memo_parse_space(text, (size_t)(colon - text), space, sizeof space) &&
        take_name(out, space, strlen(space), colon + 1, length - (size_t)(colon + 1 - text));
    value_unref(name);
    return named;
}

static void open_posted(hd_runtime *rt, void *ctx) {
    patterns *all = patterns_get(rt);
    piece_name n;
    assert(ctx && !rt->in_run); /* a posted call: no node runs, so pieces can be opened */
    if (all && name_of_writer(scheduler_get(rt), (place_id)(uintptr_t)ctx, &n)) open_piece(all, &n);
    hd_work_end(rt, HD_OK);
}

/* The scheduler calls it while it links reads, so the piece is opened later, by a post. Without memory for
 * the post the piece is not opened. */
static void on_wanted(struct scheduler *s, place_id doc) {
    piece_name n;
    assert(doc && place_at(&s->r->places, doc)->root == doc);
    if (!name_of_writer(s, doc, &n)) return;
    place_at(&s->r->places, doc)->doc.flags |= DOC_OF_PIECE;
    if (!hd_runtime_post(s->rt, open_posted, (void *)(uintptr_t)doc))
        s->work++; /* as hd_work_begin */
}

/* ---- streams */

static hd_status on_unhandled(struct scheduler *s, place_id stream) {
    const places *ps = &s->r->places;
    const place *doc = place_doc(ps, stream);
    const struct key *space = ps->homes.items[doc->doc.home].space;
    const char *id = key_bytes(doc->doc.id), *slash = strchr(id, '/');
    piece_name n;
    if (!slash || !take_name(&n, key_bytes(space), space->length, id, (size_t)(slash - id)))
        return HD_NOT_FOUND;
    return open_piece(patterns_get(s->rt), &n);
}

void demand_attach(scheduler *s) {
    assert(!s->wanted && !s->unhandled);
    s->wanted = on_wanted;
    s->unhandled = on_unhandled;
}
