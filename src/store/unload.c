/* unload.c -- letting go of a space.
 *
 * What the replica holds of a space is a copy: everything is stored before, so that the next read
 * finds in the store what it would have found here. Three things do not go: what lives here only
 * (volatile documents, derived values that cannot be stored now), places that handles stand for
 * (without their value), and a space that is needed. Nothing is decided half way: first what can
 * fail, then the rest. */
#include "store/runtime.h"

#include "value/key.h"
#include <string.h>

/* A document of the space that can be forgotten. */
static bool is_meant(const replica *r, place_id id, const struct key *space) {
    const place *p = place_at(&r->places, id);
    return p->root == id && r->places.homes.items[p->doc.home].space == space &&
           replica_can_forget(r, id);
}

static hd_status keep_all(replica *r, const struct key *space) {
    authority *a = r->authority;
    hd_status status = HD_OK;
    for (place_id id = 1; a->ops->keep && id < r->places.count && !status; id++)
        if (is_meant(r, id, space)) status = a->ops->keep(a, id);
    return status;
}

/* Outputs that were sealed may still be named in the list of those to seal. */
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
        if (!is_meant(r, id, space)) continue;
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
