/* hash.c -- hashes of reads. */
#include "store/basis/hash.h"

#include "base/hash.h"
#include "value/diff.h"
#include "value/node.h"

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

uint64_t basis_hash_read(const places *ps, uint32_t key) {
    place_id at = key & KEY_PLACE;
    assert(at && place_at(ps, at)->root);
    hd_value v = place_at(ps, at)->value;
    if (value_is_absent(v)) return absent_hash(ps, at);
    return key & KEY_SHAPE ? value_shape_hash(ps->heap, v).lo : value_hash(ps->heap, v).lo;
}

void basis_hash_print(uint64_t hash, char out[HASH_TEXT]) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    for (int i = 0; i < HASH_TEXT; i++, hash >>= 6) out[i] = digits[hash & 63];
}
