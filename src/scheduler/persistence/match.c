/* match.c -- what a node reads and writes, in hashes: as it is now, and whether that is what a row says.
 *
 * One read, deep or by shape, gives 64 bits: of the value, or of its keys, or, where the way to it ends
 * early, of how far it goes (MATCHING 2.4), so that two hashes are equal just where a change between the
 * two moments would not have been a reason to run. Hashes are keyed by the heap's secret, which for a
 * store in a file is the file's own: input cannot be prepared to collide, and all processes get the same hashes. */
#include "scheduler/persistence/persistence.h"

#include "base/env.h"
#include "store/replica.h"
#include "value/diff.h"
#include <string.h>

/* ---- hashes */

/* The way to a place, as in a walk (place.c). */
typedef struct way {
    bool reached; /* every step was possible */
    bool linked;  /* one was not, because of a link */
    uint32_t containers;
} way;

static way way_to(const places *ps, place_id at) {
    const place *p = place_at(ps, at);
    if (p->root == at) return (way){ true, false, 0 };
    way to = way_to(ps, p->in.parent);
    hd_value above = place_at(ps, p->in.parent)->value;
    if (to.reached && value_is_container(above)) {
        to.containers++;
        return to;
    }
    to.linked = to.linked || (to.reached && value_tag(above) == TAG_LINK);
    to.reached = false;
    return to;
}

/* As of a value that no document has. */
static uint64_t absent_hash(const places *ps, place_id at) {
    way to = way_to(ps, at);
    uint64_t bits = (uint64_t)to.containers << 2 | (uint64_t)to.linked << 1 | to.reached;
    return value_hash(ps->heap, value_absent()).hi + hash_u64(bits + 1);
}

uint64_t match_hash(const places *ps, uint32_t key) {
    place_id at = key & KEY_PLACE;
    assert(at && place_at(ps, at)->root);
    hd_value v = place_at(ps, at)->value;
    if (value_is_absent(v)) return absent_hash(ps, at);
    return key & KEY_SHAPE ? value_shape_hash(ps->heap, v).lo : value_hash(ps->heap, v).lo;
}

void match_print(uint64_t hash, char out[HASH_TEXT]) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    for (int i = 0; i < HASH_TEXT; i++, hash >>= 6) out[i] = digits[hash & 63];
}

/* ---- keys */

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
    match_print(match_hash(&s->r->places, key), text);
    return !memcmp(text, hashes + (size_t)i * HASH_TEXT, HASH_TEXT);
}

bool match_if_known(const scheduler *s, uint32_t key, const char *hashes, uint32_t i) {
    return !(doc_of(s, key & KEY_PLACE)->doc.flags & DOC_KNOWN) || match_key(s, key, hashes, i);
}
