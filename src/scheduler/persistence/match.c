/* match.c -- what a node reads and writes, in hashes: as it is now, and whether that is what a row says. */
#include "scheduler/persistence/persistence.h"

#include "base/env.h"
#include "store/replica.h"
#include <string.h>

const uint32_t *match_keys(scheduler *s, node_id id, uint32_t *count) {
    persistence *p = s->persistence;
    const node *n = node_of(s, id);
    const edge *reads = node_reads_const(n);
    vec_clear(&p->keys);
    if (!vec_room(s->env, &p->keys, n->read_count + 1)) return NULL;
    for (uint32_t i = 0; i < n->read_count; i++) p->keys.items[p->keys.count++] = reads[i].key;
    for (uint32_t i = 0, out; (out = graph_output(&s->graph, id, i)) != 0; i++)
        if (!(out & WRITER_ENVELOPE) && !vec_push(s->env, &p->keys, out)) return NULL;
    assert(p->keys.count >= n->read_count);
    *count = p->keys.count;
    return p->keys.items;
}

uint32_t match_changed(const scheduler *s, const uint32_t *keys, uint32_t count, uint64_t rev) {
    slots of = { 0 };
    uint32_t mask = 0;
    assert(rev <= s->r->rev);
    for (uint32_t i = 0; i < count; i++) {
        const place *at = place_at(&s->r->places, keys[i] & KEY_PLACE);
        uint32_t slot = slots_take(&of, at->root);
        if (at->rev > rev) mask |= UINT32_C(1) << slot;
    }
    return mask;
}

uint32_t match_known(const scheduler *s, const uint32_t *keys, uint32_t count) {
    slots of = { 0 };
    uint32_t mask = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = slots_take(&of, place_at(&s->r->places, keys[i] & KEY_PLACE)->root);
        if (!(doc_of(s, keys[i] & KEY_PLACE)->doc.flags & DOC_KNOWN))
            mask &= ~(UINT32_C(1) << slot);
    }
    return mask;
}

uint32_t match_hash(const scheduler *s, const uint32_t *keys, uint32_t count, uint32_t mask,
                    uint64_t out[SLOTS]) {
    const places *ps = &s->r->places;
    slots of = { 0 };
    memset(out, 0, SLOTS * sizeof *out);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = slots_take(&of, place_at(ps, keys[i] & KEY_PLACE)->root);
        if (!(mask >> slot & 1)) continue;
        assert(doc_of(s, keys[i] & KEY_PLACE)->doc.flags & DOC_KNOWN);
        out[slot] = basis_hash_add(out[slot], basis_hash_read(ps, keys[i]), i);
    }
    assert(of.count <= SLOTS && (count || !of.count));
    return of.count;
}

uint32_t match_differing(const scheduler *s, const uint32_t *keys, uint32_t count, uint32_t mask,
                         const char *hashes) {
    uint64_t now[SLOTS];
    char text[HASH_TEXT];
    uint32_t differing = 0, n = match_hash(s, keys, count, mask, now);
    if (strlen(hashes) != (size_t)n * HASH_TEXT) return UINT32_MAX;
    for (uint32_t i = 0; i < n; i++) {
        basis_hash_print(now[i], text);
        bool same = !memcmp(text, hashes + (size_t)i * HASH_TEXT, HASH_TEXT);
        if ((mask >> i & 1) && !same) differing |= UINT32_C(1) << i;
    }
    return differing;
}

static bool load(scheduler *s, const uint32_t *keys, uint32_t count, uint32_t mask) {
    slots of = { 0 };
    for (uint32_t i = 0; i < count; i++) {
        place_id doc = place_at(&s->r->places, keys[i] & KEY_PLACE)->root;
        bool wanted = mask >> slots_take(&of, doc) & 1;
        if (wanted && replica_load(s->r, doc)) return false;
    }
    return true;
}

bool match_row(scheduler *s, const uint32_t *keys, uint32_t count, uint32_t mask,
               const char *hashes) {
    return load(s, keys, count, mask) && !match_differing(s, keys, count, mask, hashes);
}
