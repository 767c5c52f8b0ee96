/* remove.c -- instances that are over leave the store, with their journals.
 *
 * The call is a transaction on the instance's document, in whichever engine: one that is over is in no engine's memory,
 * and a rerun that is stored meanwhile is a conflict. A long journal goes first, from its end, some segments in each
 * transaction: what a crash leaves is an instance with a shorter journal. */
#include "workflow/engine.h"

#include "workflow/open_record.h"
#include <stdio.h>

#define SLICE 256 /* segments of a journal that one transaction removes */

typedef struct removal {
    hd_engine *e;
    const char *id;
    place_id doc;
    uint64_t finished; /* when it ended; 0: whenever that was */
    uint32_t most;     /* segments of its journal that go now */
    bool over;         /* nothing of the instance is left */
} removal;

static bool is_same(hd_value open, hd_value parent, const char *key) {
    return open_record_number(open, key) == (uint64_t)hd_value_as_int(hd_value_at(parent, key), 0);
}

/* Whether an instance that is open waits at this step for its child. That is so for a moment, if the child's end was
 * stored and there was no memory to tell the parent: without its document the child would run again. */
static hd_status check_parent(hd_tx *tx, const removal *r, hd_value parent) {
    char key[24];
    if (!hd_value_exists(parent)) return HD_OK;
    place_id at =
        engine_document(r->e, INSTANCE_PREFIX, hd_value_as_text(hd_value_at(parent, "id"), ""));
    if (!at) return HD_NOMEM;
    hd_value doc = hd_tx_read(tx, (hd_cell){ at }, 0);
    place_unref(&r->e->rt->r.places, at);
    if (hd_value_status(doc)) return hd_value_status(doc);
    snprintf(key, sizeof key, "%lld", (long long)hd_value_as_int(hd_value_at(parent, "strand"), 0));
    hd_value open = hd_value_at(hd_value_at(doc, "open"), key);
    bool waits =
        hd_value_exists(open) && is_same(open, parent, "step") && is_same(open, parent, "tag");
    return waits ? runtime_fail(r->e->rt, HD_BUSY, "the parent of %s waits for it", r->id) : HD_OK;
}

static hd_status check(hd_tx *tx, const removal *r, hd_value doc) {
    hd_engine *e = r->e;
    bool in_hand = live_find(e, r->id) != NULL;
    if (hd_value_status(doc)) return hd_value_status(doc);
    bool other =
        r->finished && hd_value_as_int(hd_value_at(doc, "finished"), 0) != (int64_t)r->finished;
    if ((!hd_value_exists(doc) || other) && !in_hand)
        return runtime_fail(e->rt, HD_NOT_FOUND, "there is no instance %s", r->id);
    if (in_hand || !control_is_over(doc))
        return runtime_fail(e->rt, HD_USAGE, "%s is not over", r->id);
    return check_parent(tx, r, hd_value_at(doc, "parent"));
}

static hd_status remove_in(hd_tx *tx, void *ctx) {
    removal *r = ctx;
    hd_cell cell = { r->doc };
    hd_pool *pool = hd_tx_pool(tx);
    hd_value doc = hd_tx_read(tx, cell, 0);
    uint64_t left = (uint64_t)hd_value_as_int(hd_value_at(doc, "journal"), 0);
    hd_status status = check(tx, r, doc);
    if (!status) status = journal_cut(tx, r->e, r->id, r->most, &left);
    if (status) return status;
    r->over = !left;
    if (r->over) return hd_tx_remove(tx, cell);
    return hd_tx_set(tx, cell, hd_object_set(pool, doc, "journal", hd_int(pool, (int64_t)left)));
}

hd_status remove_some(hd_tx *tx, hd_engine *e, const char *id, uint64_t finished, uint32_t most,
                      bool *gone) {
    removal r = { .e = e, .id = id, .finished = finished, .most = most };
    r.doc = engine_document(e, INSTANCE_PREFIX, id);
    if (!r.doc) return HD_NOMEM;
    hd_status status = remove_in(tx, &r);
    place_unref(&e->rt->r.places, r.doc);
    *gone = r.over;
    return status;
}

hd_status hd_workflow_remove(hd_engine *e, const char *id) {
    removal r = { .e = e, .id = id, .doc = engine_document(e, INSTANCE_PREFIX, id), .most = SLICE };
    hd_status status = HD_OK;
    if (!r.doc) return engine_may_exist(id) ? HD_NOMEM : HD_NOT_FOUND;
    while (!r.over && !status) status = hd_transact(e->rt, remove_in, &r);
    if (!status) keep_doubt(e, id);
    place_unref(&e->rt->r.places, r.doc);
    return status;
}
