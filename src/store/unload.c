/* unload.c -- hd_runtime_unload: the replica forgets the documents of a space.
 *
 * The replica's documents are copies: everything is stored first, so that the next read finds in the store what it
 * would have found here. Documents that are here only (volatile ones, derived values that cannot be stored now) stay.
 * Places that handles refer to stay without their value. A space that a node or handler needs is not unloaded
 * (hooks.spare). All that can fail is done before the first document is forgotten. */
#include "store/runtime.h"

#include "value/key.h"
#include <string.h>

/* Whether the place is a document of the space, and can be forgotten. */
static bool can_unload(const replica *r, place_id id, const struct key *space) {
    const place *p = place_at(&r->places, id);
    return p->root == id && r->places.homes.items[p->doc.home].space == space &&
           replica_can_forget(r, id);
}

/* The authority takes over what only the replica knows of these documents. */
static hd_status keep_all(replica *r, const struct key *space) {
    authority *a = r->authority;
    hd_status status = HD_OK;
    for (place_id id = 1; a->ops->keep && id < r->places.count && !status; id++)
        if (can_unload(r, id, space)) status = a->ops->keep(a, id);
    return status;
}

/* Removes outputs from the list of those to seal that have been sealed since. */
static void tidy_unsealed(replica *r) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->unsealed.count; i++)
        if (place_at(&r->places, r->unsealed.items[i])->doc.flags & DOC_UNSEALED)
            r->unsealed.items[kept++] = r->unsealed.items[i];
    r->unsealed.count = kept;
}

static void forget_all(replica *r, const struct key *space) {
    assert(!r->pending_count && !r->in_body); /* everything is stored */
    tidy_unsealed(r);
    for (place_id id = 1; id < r->places.count; id++) {
        if (!can_unload(r, id, space)) continue;
        replica_forget(r, id);
        if (place_is_doc(&r->places, id)) places_forget(&r->places, id);
    }
    r->authority->ops->unfollow(r->authority, space);
}

static hd_status unload(hd_runtime *rt, const struct key *space) {
    hd_status status = runtime_sync(rt);
    if (!status && rt->r.pending_count)
        status = runtime_fail(rt, HD_PENDING, "commits wait for their verdict");
    if (!status && rt->hooks.spare) status = rt->hooks.spare(rt->hooks.ctx, space);
    if (!status) status = keep_all(&rt->r, space);
    if (!status) forget_all(&rt->r, space);
    return status;
}

hd_status hd_runtime_unload(hd_runtime *rt, const char *space) {
    if (rt->open || rt->in_run)
        return runtime_fail(rt, HD_USAGE, "a space is unloaded outside of transactions and runs");
    struct key *name = key_find(rt->heap, space, strlen(space));
    if (!name) return HD_OK; /* no cell was ever made in it */
    key_ref(name);
    hd_status status = unload(rt, name);
    key_unref(name);
    return status;
}
