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

bool match_key(const scheduler *s, uint32_t key, const char *hashes, uint32_t i) {
    char text[HASH_TEXT];
    assert(doc_of(s, key & KEY_PLACE)->doc.flags & DOC_KNOWN);
    basis_hash_print(basis_hash_read(&s->r->places, key), text);
    return !memcmp(text, hashes + (size_t)i * HASH_TEXT, HASH_TEXT);
}

bool match_if_known(const scheduler *s, uint32_t key, const char *hashes, uint32_t i) {
    return !(doc_of(s, key & KEY_PLACE)->doc.flags & DOC_KNOWN) || match_key(s, key, hashes, i);
}
