/* demand.c -- pieces that do not run are opened when somebody wants something of them.
 *
 * A document "corner/total" that a live node reads, and that no node here writes, may be the output of
 * the piece "corner"; an event for a stream of that name may be for its handler. If there is such a
 * piece in the store, and its pattern is registered, it is opened: between runs for a read, before the
 * event is given up for an event. Each document is asked about once. */
#include "pattern/pattern.h"

#include "scheduler/scheduler.h"
#include "value/key.h"
#include <stdio.h>
#include <string.h>

#define ID_SIZE 512

/* The id of the piece that a document of this id would belong to. */
static bool piece_id(const char *id, char out[ID_SIZE]) {
    const char *slash = strchr(id, '/');
    size_t length = slash ? (size_t)(slash - id) : 0;
    if (!length || length >= ID_SIZE) return false;
    memcpy(out, id, length);
    out[length] = 0;
    return name_is_plain(out);
}

static hd_status open_for(patterns *all, place_id at) {
    const places *ps = &all->rt->r.places;
    const place *doc = place_at(ps, place_at(ps, at)->root);
    const doc_home *home = &ps->homes.items[doc->doc.home];
    char id[ID_SIZE];
    hd_tx *tx;
    hd_piece p;
    if (home->meta || !piece_id(key_bytes(doc->doc.id), id)) return HD_NOT_FOUND;
    const char *space = key_bytes(home->space);
    if (hd_piece_find(all->rt, space, id).id) return HD_NOT_FOUND; /* it has no such part */
    if (patterns_forsworn(all, space, id)) return HD_NOT_FOUND;
    hd_status status = hd_tx_begin_read(all->rt, &tx);
    if (status) return status;
    hd_value v = hd_tx_get(tx, hd_cell_of(all->rt, space, HD_SCOPE_SPACE, id, "/pattern"));
    const char *name = hd_value_as_text(v, NULL);
    bool known = name && patterns_find(all, name);
    hd_tx_abort(tx);
    return known ? hd_piece_open(all->rt, space, id, &p, NULL) : HD_NOT_FOUND;
}

static void open_posted(hd_runtime *rt, void *ctx) {
    patterns *all = patterns_get(rt);
    if (all) open_for(all, (place_id)(uintptr_t)ctx);
    hd_work_end(rt, HD_OK);
}

/* Called while reads are linked; without memory for the post nobody asks. */
static void on_wanted(struct scheduler *s, place_id doc) {
    const struct key *id = place_at(&s->r->places, doc)->doc.id;
    if (!memchr(key_bytes(id), '/', id->length)) return;
    if (!hd_runtime_post(s->rt, open_posted, (void *)(uintptr_t)doc)) hd_work_begin(s->rt);
}

static hd_status on_unhandled(struct scheduler *s, place_id stream) {
    return open_for(patterns_get(s->rt), stream);
}

void demand_attach(patterns *all) {
    scheduler *s = scheduler_of(all->rt);
    if (!s) return;
    s->wanted = on_wanted;
    s->unhandled = on_unhandled;
}
