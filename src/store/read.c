/* read.c -- reading cells: links, own writes, schemas.
 *
 * The common read (a handle, the place read last time, nothing in the way) never comes here: it is
 * the first lines of hd_tx_get. */
#include "store/runtime.h"
#include "store/tx.h"

#include "value/key.h"
#include "value/link.h"

#define LINK_HOPS_MAX 64 /* more on one way counts as a cycle */

/* ---- what is there */

tx_write *tx_write_of(const hd_tx *tx, place_id doc) {
    if (table_count(&tx->written)) {
        for (table_probe p = table_find(&tx->written, doc); table_next(&tx->written, &p);)
            if (tx->writes.items[p.index].doc == doc) return &tx->writes.items[p.index];
        return NULL;
    }
    for (uint32_t i = tx->writes.count; i-- > 0;)
        if (tx->writes.items[i].doc == doc) return &tx->writes.items[i];
    return NULL;
}

hd_value tx_peek(const hd_tx *tx, place_id id) {
    assert(id && id < tx->r->places.count);
    const place *p = tx_place(tx, id);
    if (tx_has_output(tx) && p->root == tx->front.out)
        return value_get_path(tx->r->heap, tx->front.out_value, place_path(&tx->r->places, id));
    if (!tx->writes.count) return p->value;
    const tx_write *w = tx_write_of(tx, p->root);
    return w ? value_get_path(tx->r->heap, w->now, place_path(&tx->r->places, id)) : p->value;
}

static hd_status know(hd_tx *tx, place_id id) {
    assert(id && id < tx->r->places.count);
    place_id doc = tx_place(tx, id)->root;
    if (tx_place(tx, doc)->doc.flags & (DOC_KNOWN | DOC_VOLATILE)) return HD_OK;
    hd_status status = replica_load(tx->r, doc);
    if (status == HD_PENDING && !tx->missing) {
        tx->flags |= TX_BUSY;
        tx->missing = doc;
    }
    /* Whatever its body returns, nothing of it counts. A preflight goes on, and asks for all that it will read. */
    if (status == HD_PENDING && !(tx->flags & TX_PREFLIGHT)) tx_fail(tx, status);
    return status;
}

/* A suspended run goes on in another world than it began in: what it reads now must not have changed
 * since. */
static hd_status check_epoch(hd_tx *tx, place_id id) {
    if (!(tx->flags & TX_EPOCH) || tx_place(tx, id)->rev <= tx->epoch) return HD_OK;
    return tx_fail(tx, HD_STALE);
}

/* The document of the first read that claims something; 0: none. */
static place_id first_claimed(const hd_tx *tx) {
    bool own = tx->flags & TX_DIVERGED;
    uint32_t count = own ? tx->reads.count : tx_agreed(tx);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t key = own ? tx->reads.items[i] : tx->front.first[i].key;
        if (!(key & KEY_NO_CLAIM)) return tx_place(tx, key & KEY_PLACE)->root;
    }
    return tx->claim_only.count ? tx_place(tx, tx->claim_only.items[0] & KEY_PLACE)->root : 0;
}

/* One snapshot (S10): a document that is ahead of all others is one by itself, with any of them it would
 * be a state that never was. The first read tells on which side the transaction stands. A read that
 * claims nothing takes what there is, and so does a write. */
static hd_status check_snapshot(hd_tx *tx, place_id id, unsigned flags) {
    const replica *r = tx->r;
    if (!r->ahead.count || (flags & HD_READ_NO_CLAIM) || (tx->flags & TX_PREFLIGHT)) return HD_OK;
    place_id doc = tx_place(tx, id)->root, first = first_claimed(tx);
    if (!first || first == doc) return HD_OK;
    if (!replica_is_ahead(r, doc) && !replica_is_ahead(r, first)) return HD_OK;
    char name[160];
    hd_cell_print(tx->rt, (hd_cell){ doc }, name, sizeof name);
    return tx_fail(tx, runtime_fail(tx->rt, HD_STALE,
                                    "%s was not read in the state that this transaction has seen, "
                                    "which is gone: begin another one after a pump",
                                    name));
}

static void note_read_after_write(hd_tx *tx, place_id id) {
    tx_write *w = tx_write_of(tx, tx_place(tx, id)->root);
    if (w && w->first) w->read_after = true;
}

hd_status tx_note_place(hd_tx *tx, place_id id, unsigned flags) {
    assert(id && id < tx->r->places.count);
    uint32_t key = id | (flags & HD_READ_SHAPE ? KEY_SHAPE : 0);
    hd_status status = check_epoch(tx, id);
    if (!status) status = check_snapshot(tx, id, flags);
    if (status) return status;
    if (tx->writes.count) note_read_after_write(tx, id);
    if (flags & HD_READ_NO_DEPENDENCY)
        return flags & HD_READ_NO_CLAIM ? HD_OK : tx_note_claim(tx, key);
    return tx_note(tx, key | (flags & HD_READ_NO_CLAIM ? KEY_NO_CLAIM : 0));
}

/* ---- links */

place_id tx_link_target(hd_tx *tx, place_id from, hd_value link, hd_status *status) {
    assert(from && value_tag(link) == TAG_LINK);
    const link_block *l = link_of(link);
    places *ps = &tx->r->places;
    const place *here = place_doc(ps, from);
    doc_home at = ps->homes.items[here->doc.home];
    struct key *space = l->space ? l->space : at.space;
    hd_scope scope = l->scope ? (hd_scope)l->scope : at.scope;
    uint32_t home = here->doc.home;
    place_id doc = 0, target = 0;
    *status = HD_OK;
    if (l->space || l->scope || at.meta) *status = runtime_home(tx->rt, space, scope, false, &home);
    if (!*status) *status = places_doc(ps, home, l->id ? l->id : here->doc.id, &doc);
    if (!*status) *status = places_inner(ps, doc, l->path, &target);
    return *status ? 0 : target;
}

/* The nearest ancestor of `id` (not itself) that holds a link; 0: none. A value that is there is
 * reached without one. */
static place_id link_above(const hd_tx *tx, place_id id) {
    const places *ps = &tx->r->places;
    place_id found = 0;
    while (!place_is_doc(ps, id)) {
        id = place_at(ps, id)->in.parent;
        if (value_tag(tx_peek(tx, id)) == TAG_LINK) found = id; /* the topmost is met first */
    }
    return found;
}

/* The place that `rest` of the way leads to, from a link's target on. */
static hd_status continue_from(hd_tx *tx, place_id link_at, place_id id, place_id *target) {
    places *ps = &tx->r->places;
    hd_path whole = place_path(ps, id);
    uint32_t depth = path_depth(tx->r->heap, whole);
    for (uint32_t d = path_depth(tx->r->heap, place_path(ps, link_at)) + 1; d <= depth; d++) {
        hd_path step = path_ancestor(tx->r->heap, whole, d);
        hd_status status = places_child(ps, *target, path_key(tx->r->heap, step), target);
        if (status) return status;
    }
    return HD_OK;
}

hd_status tx_resolve(hd_tx *tx, place_id *id, bool last_too, unsigned flags) {
    assert(*id);
    for (int hops = 0; hops <= LINK_HOPS_MAX; hops++) {
        hd_status status = know(tx, *id);
        if (status) return status;
        hd_value v = tx_peek(tx, *id);
        bool is_link = value_tag(v) == TAG_LINK;
        place_id link_at = 0;
        if (is_link && last_too) link_at = *id;
        else if (value_is_absent(v)) link_at = link_above(tx, *id);
        if (!link_at) return HD_OK;

        /* The pointer's own place is a dependency: retargeting it changes what is read. */
        status = tx_note_place(tx, link_at, flags | HD_READ_SHAPE);
        place_id target = 0;
        if (!status) target = tx_link_target(tx, link_at, tx_peek(tx, link_at), &status);
        if (!status) status = continue_from(tx, link_at, *id, &target);
        if (status) return status;
        *id = target;
    }
    return runtime_fail(tx->rt, HD_CYCLE, "links form a cycle, or a chain of more than %d",
                        LINK_HOPS_MAX);
}

/* ---- reads without a schema */

hd_value tx_read_place(hd_tx *tx, place_id id, unsigned flags) {
    hd_status status = flags & HD_READ_RAW ? know(tx, id) : tx_resolve(tx, &id, true, flags);
    if (!status) status = tx_note_place(tx, id, flags);
    if (status) {
        if (status != HD_PENDING) tx_fail_told(tx, status);
        return value_failed(status);
    }
    return tx_peek(tx, id);
}

static hd_value read_cell(hd_tx *tx, hd_cell cell, unsigned flags) {
    const hd_schema *schema;
    place_id id = runtime_place(tx->rt, cell, &schema);
    if (!id) return value_absent();
    if (schema && !(flags & (HD_READ_RAW | HD_READ_SHAPE)))
        return tx_read_schema(tx, id, schema, flags);
    return tx_read_place(tx, id, flags);
}

/* Whether the cell is among the last few reads: then it is in the journal already. */
static bool read_lately(const hd_tx *tx, uint32_t key) {
    enum { LATELY = 8 };
    if (tx->flags & TX_DIVERGED) {
        uint32_t n = tx->reads.count, stop = n > LATELY ? n - LATELY : 0;
        while (n > stop)
            if (tx->reads.items[--n] == key) return true;
        return false;
    }
    uint32_t n = tx_agreed(tx), stop = n > LATELY ? n - LATELY : 0;
    while (n > stop)
        if (tx->front.first[--n].key == key) return true;
    return false;
}

/* Reads need not look at the transaction's own writes, nor at a clock, nor at documents that are ahead. */
static inline bool reads_plainly(const hd_tx *tx) {
    return !(tx->flags & TX_EPOCH) && !tx_has_output(tx) && !tx->writes.count &&
           !tx->r->ahead.count;
}

/* A whole document, here, and no link: nothing can stand on its way, and nothing above it. */
static inline bool is_plain_document(const hd_tx *tx, hd_cell cell) {
    if (cell.id >= tx->r->places.count) return false; /* with a schema, or none of ours */
    const place *p = tx_place(tx, cell.id);
    return p->root == cell.id && p->value.bits != 0 && value_tag(p->value) != TAG_LINK;
}

/* The read is not the one expected. What is read again and again comes here the second time only. */
hd_value hd_tx_get_otherwise_(hd_tx *tx, hd_cell cell) {
    if ((tx->flags & TX_UNSETTLED) && tx->reads.items[tx->early_at] == cell.id)
        return value_failed(HD_PENDING);
    if (!reads_plainly(tx)) return read_cell(tx, cell, 0);
    if (is_plain_document(tx, cell)) {
        hd_status status = tx_note_document(tx, cell.id);
        return status ? value_failed(status) : tx_place(tx, cell.id)->value;
    }
    if (!(tx->flags & TX_UNSETTLED) && read_lately(tx, cell.id)) {
        hd_value v = tx_place(tx, cell.id)->value;
        if (v.bits != 0 && value_tag(v) != TAG_LINK) {
            tx->front.again[cell.id & 3] = cell.id;
            return v;
        }
    }
    return read_cell(tx, cell, 0);
}

extern inline hd_value hd_tx_get(hd_tx *tx, hd_cell cell); /* inline in the header */

hd_value hd_tx_get_shape(hd_tx *tx, hd_cell cell) { return read_cell(tx, cell, HD_READ_SHAPE); }

hd_value hd_tx_read(hd_tx *tx, hd_cell cell, unsigned flags) { return read_cell(tx, cell, flags); }

hd_value hd_tx_follow(hd_tx *tx, hd_cell from, hd_value link) {
    const hd_schema *schema;
    place_id here = runtime_place(tx->rt, from, &schema);
    if (!here) return value_absent();
    if (value_tag(link) != TAG_LINK) return link;
    hd_status status;
    place_id target = tx_link_target(tx, here, link, &status);
    return status ? value_failed(status) : tx_read_place(tx, target, 0);
}
