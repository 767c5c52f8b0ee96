/* memos.c -- memos in a memory store, and which documents have changed since. */
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
    assert(value_exists(extra) && !memo_fault(extra));
    memo_point now = { &m->h, seq_of };
    if (memos_apply(&m->memos, extra, &now, 0)) memos_drop(&m->memos, extra);
}

/* ---- telling */

hd_status memory_memos(authority *a, const char *piece, memo_fn fn, void *ctx) {
    memos_tell(&self(a)->m->memos, piece, 0, fn, ctx);
    return HD_OK;
}

hd_status memory_memo_pieces(authority *a, piece_fn fn, void *ctx) {
    const memos *all = &self(a)->m->memos;
    char piece[PIECE_SIZE];
    bool more = true;
    for (uint32_t i = 0; i < all->entries.count && more; i++)
        if (memos_first_of(&all->entries.items[i], piece)) more = fn(ctx, piece);
    return HD_OK;
}

/* What has been decided and not been heard of here has not happened yet. */
hd_status memory_seq_of(authority *a, struct key *space, uint64_t *out) {
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
hd_status memory_changes(authority *a, struct key *space, uint64_t after, change_fn fn, void *ctx) {
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
