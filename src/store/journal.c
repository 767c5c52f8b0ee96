/* journal.c -- what a transaction read. */
#include "store/tx.h"

#include "base/env.h"

#define FEW_READS 16 /* up to here a scan finds a repetition */

static bool among_expected(const hd_tx *tx, uint32_t key) {
    for (uint32_t i = tx_agreed(tx); i-- > 0;)
        if (tx->front.first[i].key == key) return true;
    return false;
}

#define NOWHERE UINT32_MAX

/* Where the key stands in the list; `index` has the keys of a list of more than FEW_READS. */
static inline uint32_t find(const table *index, const uint32_t *keys, uint32_t count,
                            uint32_t key) {
    if (count > FEW_READS) {
        for (table_probe p = table_find(index, key); table_next(index, &p);)
            if (keys[p.index] == key) return p.index;
        return NOWHERE;
    }
    while (count-- > 0)
        if (keys[count] == key) return count;
    return NOWHERE;
}

static inline uint32_t find_read(const hd_tx *tx, uint32_t key) {
    return find(&tx->seen, tx->reads.items, tx->reads.count, key);
}

static bool among_reads(const hd_tx *tx, uint32_t key) { return find_read(tx, key) != NOWHERE; }

/* Whether an earlier read includes this one: a deep read includes all places below its own. A read without a claim
 * includes reads without a claim alone. */
static bool is_covered(const hd_tx *tx, uint32_t key) {
    assert(key & KEY_PLACE);
    const places *ps = &tx->r->places;
    if (key & KEY_SHAPE) return false;
    for (place_id id = key & KEY_PLACE; !place_is_doc(ps, id);) {
        id = place_at(ps, id)->in.parent;
        bool (*among)(const hd_tx *, uint32_t) =
            tx->flags & TX_DIVERGED ? among_reads : among_expected;
        if (among(tx, id) || ((key & KEY_NO_CLAIM) && among(tx, id | KEY_NO_CLAIM))) return true;
    }
    return false;
}

/* From FEW_READS on the keys are also in a hash table: a scan for repetitions would take too long. */
static hd_status index_keys(table *index, const uint32_t *keys, uint32_t count) {
    assert(count > FEW_READS);
    uint32_t from = count == FEW_READS + 1 ? 0 : count - 1;
    for (uint32_t i = from; i < count; i++) {
        hd_status status = table_insert(index, keys[i], i);
        if (status) return status;
    }
    return HD_OK;
}

static inline hd_status add_read(hd_tx *tx, uint32_t key) {
    assert((key & KEY_PLACE) && (tx->flags & TX_DIVERGED));
    if (!vec_push(tx->r->env, &tx->reads, key)) return HD_NOMEM;
    /* The journal may have the only reference to the place: a read through a schema makes such places. */
    place_ref(&tx->r->places, key & KEY_PLACE);
    if (tx->reads.count <= FEW_READS) return HD_OK;
    hd_status status = index_keys(&tx->seen, tx->reads.items, tx->reads.count);
    if (status) tx_fail(tx, status); /* the journal is not whole: nothing may be built on it */
    return status;
}

static hd_status copy_agreed(hd_tx *tx, uint32_t agreed) {
    assert(agreed <= tx->expected_count);
    for (uint32_t i = 0; i < agreed; i++) {
        hd_status status = add_read(tx, tx->front.first[i].key);
        if (status) return tx_fail(tx, status);
    }
    return HD_OK;
}

/* From here on the run reads otherwise than its last one. The reads that were the same become the beginning of a
 * journal of its own. */
static inline hd_status diverge(hd_tx *tx) {
    assert(!(tx->flags & TX_DIVERGED) && tx->reads.count == 0);
    uint32_t agreed = tx_agreed(tx);
    tx->flags |= TX_DIVERGED;
    tx->front.end = NULL;
    return agreed ? copy_agreed(tx, agreed) : HD_OK;
}

/* A read that was not expected. Once one has met a value that is about to change, no further one gives a value; those
 * that the run still makes are noted, so that the next run finds all of it up to date. */
static hd_status add_new(hd_tx *tx, uint32_t key) {
    const replica *r = tx->r;
    hd_status status = add_read(tx, key);
    if (status) return tx_fail(tx, status);
    if (tx->flags & TX_UNSETTLED) return HD_PENDING;
    if (!(tx->flags & TX_RUN) || !place_doc(&r->places, key & KEY_PLACE)->doc.writer) return HD_OK;
    if (!r->observer.early || !r->observer.early(r->observer.ctx, tx, key)) return HD_OK;
    tx->flags |= TX_UNSETTLED;
    tx->early_at = tx->reads.count - 1;
    return tx_fail(tx, HD_PENDING);
}

/* The journal's read at this index is made again: it ends as it did before. NOWHERE, a part of what was read whole,
 * counts as new (decision 0600). */
static inline hd_status note_known(const hd_tx *tx, uint32_t at) {
    return (tx->flags & TX_UNSETTLED) && at >= tx->early_at ? HD_PENDING : HD_OK;
}

hd_status tx_note_slow(hd_tx *tx, uint32_t key) {
    assert(key & KEY_PLACE);
    assert(tx_agreed(tx) <= tx->expected_count);
    if (!(tx->flags & TX_DIVERGED)) {
        /* A repetition; in a long list it is cheaper to find out after diverging. */
        if (tx_agreed(tx) <= 2 * FEW_READS && (among_expected(tx, key) || is_covered(tx, key)))
            return HD_OK;
        hd_status status = diverge(tx);
        if (status) return status;
    }
    uint32_t at = find_read(tx, key);
    if (at != NOWHERE || is_covered(tx, key)) return note_known(tx, at);
    return add_new(tx, key);
}

/* Whether it is one of the last reads that were the same as in the run before. */
static bool expected_lately(const hd_tx *tx, uint32_t key) {
    uint32_t i = tx_agreed(tx), stop = i > 2 * FEW_READS ? i - 2 * FEW_READS : 0;
    while (i > stop)
        if (tx->front.first[--i].key == key) return true;
    return false;
}

/* The document is read repeatedly: the short way of a read looks into `again` first. */
static hd_status note_again(hd_tx *tx, place_id doc) {
    tx->front.again[doc & 3] = doc;
    return HD_OK;
}

hd_status tx_note_document(hd_tx *tx, place_id doc) {
    assert(place_is_doc(&tx->r->places, doc));
    if (!(tx->flags & TX_DIVERGED)) {
        if (expected_lately(tx, doc)) return note_again(tx, doc);
        hd_status status = diverge(tx);
        if (status) return status;
    }
    uint32_t at = find_read(tx, doc);
    if (at == NOWHERE) return add_new(tx, doc);
    hd_status status = note_known(tx, at);
    return status ? status : note_again(tx, doc);
}

static bool among_claims(const hd_tx *tx, uint32_t key) {
    return find(&tx->claimed, tx->claim_only.items, tx->claim_only.count, key) != NOWHERE;
}

hd_status tx_note_claim(hd_tx *tx, uint32_t key) {
    assert(!(key & KEY_NO_CLAIM));
    tx->flags |= TX_BUSY;
    if (among_claims(tx, key)) return HD_OK;
    if (!vec_push(tx->r->env, &tx->claim_only, key)) return tx_fail(tx, HD_NOMEM);
    place_ref(&tx->r->places, key & KEY_PLACE);
    if (tx->claim_only.count <= FEW_READS) return HD_OK;
    hd_status status = index_keys(&tx->claimed, tx->claim_only.items, tx->claim_only.count);
    return status ? tx_fail(tx, status) : HD_OK;
}

void tx_reads_taken(hd_tx *tx) {
    assert(!tx->claim_only.count);
    vec_clear(&tx->reads);
    tx->flags &= ~(uint32_t)TX_DIVERGED;
    tx->expected_count = tx_agreed(tx);
    if (table_count(&tx->seen)) table_clear(&tx->seen);
}

void tx_drop_reads(hd_tx *tx) {
    places *ps = &tx->r->places;
    for (uint32_t i = 0; i < tx->reads.count; i++) place_unref(ps, tx->reads.items[i] & KEY_PLACE);
    for (uint32_t i = 0; i < tx->claim_only.count; i++)
        place_unref(ps, tx->claim_only.items[i] & KEY_PLACE);
    vec_clear(&tx->reads);
    vec_clear(&tx->claim_only);
    if (table_count(&tx->seen)) table_clear(&tx->seen);
    if (table_count(&tx->claimed)) table_clear(&tx->claimed);
}

hd_status tx_reads_complete(hd_tx *tx) { return tx->flags & TX_DIVERGED ? HD_OK : diverge(tx); }
