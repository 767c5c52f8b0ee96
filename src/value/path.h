/* path.h -- interned paths: places inside values as small integers.
 *
 * A path is an index into the heap's table of paths: its parent, and the key of its last segment.
 * Two paths are the same place exactly if the integers are equal. Paths are counted, like values:
 * functions here return them with a reference (+1), and a path without references is reused when
 * the table would grow. The public functions *pin* what they intern: it stays for the life of the
 * heap, and its text is kept, so that finding it again is one hash and one comparison. */
#ifndef HD_VALUE_PATH_H
#define HD_VALUE_PATH_H

#include "value/key.h"

typedef struct path_entry {
    struct key *segment; /* referenced; NULL for the root and for a free entry */
    const char *text;    /* of a pinned path: its pointer text, NUL-terminated; else NULL */
    hd_path parent;      /* referenced; of a free entry: the next free one */
    uint32_t refs;       /* children and holders */
    uint32_t length;     /* of the pointer text, kept or not */
    uint16_t depth;      /* segments */
    bool pinned;
} path_entry;

#define PATH_DEPTH_MAX 65535

static inline const path_entry *path_entry_of(const hd_heap *heap, hd_path path) {
    assert(path < heap->paths_count);
    return &heap->paths[path];
}
static inline hd_path path_parent(const hd_heap *heap, hd_path path) {
    return path_entry_of(heap, path)->parent;
}
/* The last segment; borrowed; NULL for the root. key->index is its array index, if it is one. */
static inline struct key *path_key(const hd_heap *heap, hd_path path) {
    return path_entry_of(heap, path)->segment;
}
static inline uint32_t path_depth(const hd_heap *heap, hd_path path) {
    return path_entry_of(heap, path)->depth;
}
static inline hd_path path_ref(hd_heap *heap, hd_path path) {
    heap->paths[path].refs++;
    return path;
}
static inline void path_unref(hd_heap *heap, hd_path path) {
    assert(heap->paths[path].refs > 0);
    heap->paths[path].refs--;
}

/* The path one segment longer: +1. HD_NOMEM; HD_LIMIT beyond PATH_DEPTH_MAX. One hash lookup. */
hd_status path_child(hd_heap *heap, hd_path parent, struct key *segment, hd_path *out);
/* The path of a pointer text: +1, not pinned. HD_SYNTAX with offset and column in `error` (which may
 * be NULL), HD_LIMIT, HD_NOMEM. */
hd_status path_parse(hd_heap *heap, const char *text, size_t length, hd_path *out, hd_error *error);

/* True if `a` is `b` or an ancestor of it. O(difference in depth). */
bool path_is_prefix(const hd_heap *heap, hd_path a, hd_path b);
/* The ancestor of `path` (or itself) that has `depth` segments. */
hd_path path_ancestor(const hd_heap *heap, hd_path path, uint32_t depth);

/* What is at a path; borrowed; absent if the way is not there. O(depth * log n). */
hd_value value_get_path(const hd_heap *heap, hd_value v, hd_path path);
/* One step: a key of an object, an index of an array; `last` allows "length". Borrowed. */
hd_value value_step(const hd_heap *heap, hd_value v, const struct key *segment, bool last);

/* Changed copies, owned or failed, as hd_value_set, _remove, _append say. v may be absent (set and
 * append then make the containers). */
hd_value value_set_path(hd_heap *heap, hd_value v, hd_path path, hd_value to);
hd_value value_remove_path(hd_heap *heap, hd_value v, hd_path path);
hd_value value_append_path(hd_heap *heap, hd_value v, hd_path path, hd_value item);

hd_status paths_init(hd_heap *heap);
void paths_fini(hd_heap *heap);
/* Asserts the invariants of the table; O(paths). */
void paths_check(const hd_heap *heap);

#endif
