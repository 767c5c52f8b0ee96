/* overlay.c -- outputs of computations, in place; and sealing them. */
#include "store/overlay.h"

#include "base/env.h"
#include "store/footprint.h"
#include "value/diff.h"
#include "value/key.h"

/* Prepares a document for writing in place: after HD_OK it has DOC_OVERLAY, and what was confirmed is
 * kept. */
static hd_status overlay_open(replica *r, place_id doc) {
    assert(place_is_doc(&r->places, doc));
    place *p = place_at(&r->places, doc);
    if (p->doc.flags & (DOC_OVERLAY | DOC_VOLATILE)) return HD_OK;
    /* Where nothing is confirmed there is nothing to keep: most outputs never get a record. */
    bool keep = !value_is_absent(p->value) && !p->doc.over;
    if (keep) {
        hd_status status = replica_over(r, doc);
        if (status) return status;
    }
    if (!(p->doc.flags & DOC_UNSEALED) && !vec_push(r->env, &r->unsealed, doc)) {
        if (keep) replica_over_trim(r, doc);
        return HD_NOMEM;
    }
    p->doc.flags |= DOC_OVERLAY | DOC_UNSEALED | DOC_KNOWN;
    return HD_OK;
}

hd_status overlay_write(replica *r, place_id doc, hd_value v, uint64_t group, uint32_t origin_node,
                        bool *changed) {
    assert(place_is_doc(&r->places, doc) && !value_is_failed(v));
    *changed = false;
    hd_status status = replica_load(r, doc); /* the true basis of what is about to be covered */
    if (status) return status;
    const place *p = place_at(&r->places, doc);
    *changed = p->value.bits != v.bits && !value_equal(p->value, v);
    if (!*changed) return HD_OK;
    status = overlay_open(r, doc);
    if (!status)
        status =
            replica_notice_begin(r, HD_CHANGE_COMMIT, HD_COMMIT_DERIVED, group, origin_node, 1);
    if (status) return status;
    replica_show(r, doc, value_ref(v));
    replica_notice_end(r);
    return HD_OK;
}

/* ---- sealing */

/* A seal has its verdict. If it was refused, the outputs have been taken back, and readers have been told. The nodes
 * that made the outputs are told here: most have to run again, also if nothing that they read has changed. */
static void seal_settled(void *ctx, commit *c, hd_status status) {
    assert(c->sealed && c->class == HD_COMMIT_DERIVED);
    replica *r = ctx;
    if (!status) {
        if (r->observer.sealed) r->observer.sealed(r->observer.ctx, c);
        return;
    }
    if (value_exists(c->extra) && r->observer.refused) r->observer.refused(r->observer.ctx, c);
    if (!r->observer.unseal) return;
    for (uint32_t i = 0; i < c->writes.count; i++)
        r->observer.unseal(r->observer.ctx, c, &c->writes.items[i], status);
}

/* The operation says all there is now; the footprint only where it differs from before, so that a
 * restart does not take the readers of the rest for stale. */
static hd_status seal_add(replica *r, commit *c, place_id doc, struct key *by, uint32_t causes) {
    assert(place_at(&r->places, doc)->doc.flags & DOC_OVERLAY);
    assert(causes <= c->causes.count);
    place *p = place_at(&r->places, doc);
    bool absent = value_is_absent(p->value);
    if (!vec_room(r->env, &c->ops, 1)) return HD_NOMEM;
    hd_status status = footprint_add(r, c, doc, p->value, true);
    if (status) return status;
    doc_write *f = &vec_last(&c->writes);
    f->by = by ? key_ref(by) : NULL;
    f->first_cause = causes;
    f->cause_count = c->causes.count - causes;
    c->ops.items[c->ops.count++] = (op){ absent ? OP_DELETE : OP_SET, doc,
                                         path_ref(r->heap, HD_PATH_ROOT), value_ref(p->value), 0 };
    place_ref(&r->places, doc);
    return HD_OK;
}

/* Removes documents from `unsealed` that have no DOC_UNSEALED, and repetitions. A commit that writes over an output
 * clears the flag and leaves the entry; if the output is then written again, the document has two entries. */
static void tidy_unsealed(replica *r) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->unsealed.count; i++) {
        place *p = place_at(&r->places, r->unsealed.items[i]);
        if (!(p->doc.flags & DOC_UNSEALED)) continue;
        p->doc.flags &= (uint16_t)~DOC_UNSEALED;
        r->unsealed.items[kept++] = r->unsealed.items[i];
    }
    r->unsealed.count = kept;
    for (uint32_t i = 0; i < kept; i++)
        place_at(&r->places, r->unsealed.items[i])->doc.flags |= DOC_UNSEALED;
}

/* Outputs that can be sealed go into the commit; the others stay in the list. */
static hd_status seal_collect(replica *r, commit *c) {
    uint32_t kept = 0;
    hd_status status = HD_OK;
    tidy_unsealed(r);
    for (uint32_t i = 0; i < r->unsealed.count; i++) {
        place_id doc = r->unsealed.items[i];
        uint32_t causes = c->causes.count;
        struct key *by = NULL;
        bool vouched = !status && r->observer.vouch &&
                       r->observer.vouch(r->observer.ctx, doc, c, &by, &status);
        if (vouched && !status) status = seal_add(r, c, doc, by, causes);
        if (!vouched || status) r->unsealed.items[kept++] = doc;
    }
    r->unsealed.count = kept;
    return status;
}

/* On failure the collected outputs go back to the list they came from: there is room. */
static void seal_undo(replica *r, commit *c) {
    assert(r->unsealed.count + c->writes.count <= r->unsealed.capacity);
    for (uint32_t i = 0; i < c->writes.count; i++)
        r->unsealed.items[r->unsealed.count++] = c->writes.items[i].doc;
    replica_commit_free(r, c);
}

static hd_status seal_push(replica *r, commit *c) {
    if (!c->writes.count) return HD_OK; /* memos alone */
    hd_value *after = env_new_array(r->env, c->writes.count, sizeof *after);
    if (!after) return HD_NOMEM;
    for (uint32_t i = 0; i < c->writes.count; i++)
        after[i] = place_at(&r->places, c->writes.items[i].doc)->value;
    hd_status status = replica_push_layers(r, c, after);
    env_free(r->env, after, c->writes.count * sizeof *after);
    return status;
}

hd_status overlay_seal(replica *r, bool memos_alone) {
    if (!r->unsealed.count && !(memos_alone && r->due)) return HD_OK;
    commit *c = replica_commit_new(r, HD_COMMIT_DERIVED);
    if (!c) return HD_NOMEM;
    c->sealed = true;
    hd_status status = seal_collect(r, c);
    if (!status) status = seal_push(r, c);
    if (status) {
        seal_undo(r, c);
        return status;
    }
    /* Without memory for them memos stay where they are, for the next seal. */
    if (r->observer.keep && (c->writes.count || (memos_alone && r->due)))
        status = r->observer.keep(r->observer.ctx, c);
    if (!c->writes.count && !value_exists(c->extra)) {
        replica_commit_free(r, c);
        return status;
    }
    c->settled = seal_settled;
    c->settled_ctx = r;
    replica_enqueue(r, c);
    r->stats.seals++;
    return HD_OK;
}
