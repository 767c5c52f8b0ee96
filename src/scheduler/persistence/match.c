/* match.c -- what a node reads, in hashes: as it is now, and whether that is what a row says. */
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
    bool mends = kept_of(s, id)->flags & KEPT_MENDS;
    for (uint32_t i = 0, out; mends && (out = graph_output(&s->graph, id, i)) != 0; i++) {
        if (out & WRITER_ENVELOPE) continue; /* other nodes may write it as well */
        if (!vec_push(s->env, &p->keys, out)) return NULL;
    }
    *count = p->keys.count;
    return p->keys.items;
}

uint32_t match_hash(const scheduler *s, const uint32_t *keys, uint32_t count, uint32_t mask,
                    uint64_t out[SLOTS]) {
    const places *ps = &s->r->places;
    slots of = { 0 };
    memset(out, 0, SLOTS * sizeof *out);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = slots_take(&of, place_at(ps, keys[i] & KEY_PLACE)->root);
        if (!(mask >> slot & 1)) continue;
        out[slot] = basis_hash_add(out[slot], basis_hash_read(ps, keys[i]), i);
    }
    return of.count;
}

/* Those that arrive later are asked for. */
static match load(scheduler *s, const uint32_t *keys, uint32_t count, uint32_t mask) {
    slots of = { 0 };
    match all = MATCH_YES;
    for (uint32_t i = 0; i < count; i++) {
        place_id doc = place_at(&s->r->places, keys[i] & KEY_PLACE)->root;
        bool wanted = mask >> slots_take(&of, doc) & 1;
        hd_status status = wanted ? replica_load(s->r, doc) : HD_OK;
        if (status == HD_PENDING) all = MATCH_LATER;
        else if (status) return MATCH_NO;
    }
    return all;
}

match match_reads(scheduler *s, const uint32_t *keys, uint32_t count, uint32_t mask,
                  const char *hashes) {
    uint64_t now[SLOTS];
    char text[HASH_TEXT];
    match here = load(s, keys, count, mask);
    if (here != MATCH_YES) return here;
    uint32_t n = match_hash(s, keys, count, mask, now);
    if (strlen(hashes) != (size_t)n * HASH_TEXT) return MATCH_NO;
    for (uint32_t i = 0; i < n; i++) {
        basis_hash_print(now[i], text);
        if ((mask >> i & 1) && memcmp(text, hashes + (size_t)i * HASH_TEXT, HASH_TEXT) != 0)
            return MATCH_NO;
    }
    return MATCH_YES;
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

uint32_t match_differing(const scheduler *s, const uint32_t *keys, uint32_t count,
                         const char *hashes) {
    uint64_t now[SLOTS];
    char text[HASH_TEXT];
    uint32_t known = match_known(s, keys, count), mask = 0;
    uint32_t n = match_hash(s, keys, count, known, now);
    if (strlen(hashes) != (size_t)n * HASH_TEXT) return UINT32_MAX;
    for (uint32_t i = 0; i < n; i++) {
        basis_hash_print(now[i], text);
        bool differs = memcmp(text, hashes + (size_t)i * HASH_TEXT, HASH_TEXT) != 0;
        if ((known >> i & 1) && differs) mask |= UINT32_C(1) << i;
    }
    return mask;
}
