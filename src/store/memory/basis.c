/* basis.c -- rows about nodes in a memory store, and which documents have changed since. */
#include "store/memory/state.h"

#include "base/env.h"
#include "value/key.h"
#include "value/node.h"
#include "value/object.h"
#include "value/text.h"

/* ---- keeping */

static uint64_t seq_of(void *ctx, const char *space, size_t length) {
    const heads *h = ctx;
    for (uint32_t i = 0; i < h->spaces.count; i++) {
        const struct key *k = h->spaces.items[i].name;
        if (k->length == length && !memcmp(key_bytes(k), space, length))
            return h->spaces.items[i].seq;
    }
    return 0;
}

void memory_keep_extra(hd_memory *m, hd_value extra) {
    assert(value_exists(extra) && !basis_fault(extra));
    basis_point now = { &m->h, seq_of };
    if (basis_apply(&m->basis, extra, &now, 0)) basis_drop(&m->basis, extra);
}

/* ---- telling */

static hd_status memory_rows(authority *a, const char *piece, basis_row_fn fn, void *ctx) {
    basis_tell(&self(a)->m->basis, piece, 0, fn, ctx);
    return HD_OK;
}

static hd_status memory_pieces(authority *a, basis_piece_fn fn, void *ctx) {
    const basis *b = &self(a)->m->basis;
    char piece[PIECE_SIZE];
    bool more = true;
    for (uint32_t i = 0; i < b->entries.count && more; i++)
        if (basis_first_of(&b->entries.items[i], piece)) more = fn(ctx, piece);
    return HD_OK;
}

/* What has been decided and not been heard of here has not happened yet. */
static hd_status memory_seq_of(authority *a, struct key *space, uint64_t *out) {
    const memory_authority *ma = self(a);
    hd_memory *m = ma->m;
    assert(ma->position >= m->log_base);
    *out = seq_of(&m->h, key_bytes(space), space->length);
    for (uint64_t at = ma->position; at < m->log_base + m->log.count; at++) {
        const logged *entry = &m->log.items[at - m->log_base];
        for (uint32_t i = 0; i < entry->op_count; i++) {
            const logged_op *o = &m->ops.items[entry->first_op - m->ops_base + i];
            if (m->h.heads.items[o->head].space != space) continue;
            *out = o->seq - 1;
            return HD_OK;
        }
    }
    return HD_OK;
}

static uint64_t last_change(const memory_authority *ma, place_id doc) {
    const place *p = place_at(&ma->base.replica->places, doc);
    uint32_t index;
    if (p->doc.flags & DOC_VOLATILE) return 0;
    if (memory_find_head(ma, doc, &index)) return ma->m->h.heads.items[index].seq;
    return ma->sole ? p->doc.seq : 0;
}

/* By place, since the places are what is asked about, and there may be many more documents. */
static hd_status memory_changes(authority *a, struct key *space, uint64_t after, basis_change_fn fn,
                                void *ctx) {
    const memory_authority *ma = self(a);
    const places *ps = &a->replica->places;
    bool more = true;
    for (place_id id = 1; id < ps->count && more; id++) {
        if (ps->at[id].root != id || ps->homes.items[ps->at[id].doc.home].space != space) continue;
        uint64_t seq = last_change(ma, id);
        if (seq > after) more = fn(ctx, id, seq);
    }
    return HD_OK;
}

const basis_ops memory_basis_ops = {
    .rows = memory_rows,
    .pieces = memory_pieces,
    .changes = memory_changes,
    .seq_of = memory_seq_of,
};
