/* link.h -- the block behind a link.
 *
 * Every part is interned, so two links of one heap are equal exactly if their fields are, and the
 * parts can be handed out as C strings. */
#ifndef HD_VALUE_LINK_H
#define HD_VALUE_LINK_H

#include "value/key.h"

typedef struct link_block {
    struct block b;
    uint32_t scope;      /* an hd_scope */
    struct key *space;   /* referenced; NULL: as here */
    struct key *id;      /* referenced; NULL: this document */
    struct key *pointer; /* referenced; the text of the JSON pointer; NULL: the whole value */
    hd_path path;        /* referenced (path_ref); the same pointer interned */
} link_block;

static inline const link_block *link_of(hd_value v) {
    assert(value_tag(v) == TAG_LINK);
    return value_block(v);
}

/* A link of its parts: owned, or failed. HD_SYNTAX: *field names the part that is malformed. */
hd_value link_make(hd_heap *heap, const hd_link *link, const char **field);

/* "space", "user", "session"; HD_SCOPE_HERE is "here", which is never written. */
const char *link_scope_name(hd_scope scope);

/* Releases the parts and the block, which has no references. */
void link_destroy(link_block *l);

/* By content; the two may come from different heaps. */
bool link_equal(const link_block *a, const link_block *b);

#endif
