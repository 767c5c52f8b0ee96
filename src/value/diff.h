/* diff.h -- the minimal places where two values differ.
 *
 * The walk behind hd_value_diff, for users inside the library: see the comment there for what is
 * reported. Equality is O(1) for identical values, else in proportion to what differs. */
#ifndef HD_VALUE_DIFF_H
#define HD_VALUE_DIFF_H

#include "value/key.h"

/* Steps from the root; a key (then `index` is 0) or an index (key NULL). */
typedef struct diff_step {
    struct key *key;
    size_t index;
} diff_step;

/* Return false to stop. */
typedef bool (*diff_fn)(void *ctx, const diff_step *path, size_t depth, hd_value before,
                        hd_value after);

/* `before` and `after` may be absent: one report at the root. HD_NOMEM is the only failure. Places
 * are reported in order: keys by bytes, indices by number, a container before what is in it. */
hd_status diff_walk(hd_heap *heap, hd_value before, hd_value after, diff_fn fn, void *ctx);

bool value_equal(hd_value a, hd_value b);
bool value_same_shape(hd_value a, hd_value b);
int value_compare(hd_value a, hd_value b);
hd_hash value_hash(const hd_heap *heap, hd_value v);
/* Equal for two values exactly if value_same_shape() says so. O(keys) for an object. */
hd_hash value_shape_hash(const hd_heap *heap, hd_value v);
/* From here on hashes are keyed by this seed, and are those of every heap that has the same. */
void heap_take_secret(hd_heap *heap, const void *seed, size_t size);

#endif
