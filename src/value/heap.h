/* heap.h -- where blocks live: pages of equal-sized blocks, found again from a block's address.
 *
 * Memory comes from the environment in chunks, which are cut into pages of 16 KiB at addresses that
 * are multiples of 16 KiB. A page holds blocks of one size class and begins with a header, so that
 *
 *     block address & ~(16 KiB - 1)  -->  page  -->  heap, size class
 *
 * and no block pays for a pointer to its heap: value_unref() needs the value alone. What is larger
 * than HEAP_BLOCK_MAX (long texts, tables) comes from the environment directly and is pointed to
 * from a small block.
 *
 * Everything belongs to one thread, so counts are plain integers. */
#ifndef HD_VALUE_HEAP_H
#define HD_VALUE_HEAP_H

#include "base/env.h"
#include "base/list.h"
#include "base/table.h"
#include "base/vec.h"
#include "value/value.h"

#define HEAP_PAGE_SIZE ((size_t)16384)
#define HEAP_BLOCK_MAX ((size_t)1024)
#define HEAP_CLASSES   20
#define HEAP_DEPTH_MAX 2048 /* hd_limits.depth is capped here: code may recurse over nesting */
#define HEAP_ORDERS    256
#define HEAP_COUNT_MAX UINT32_C(0xFFFFFFF0) /* elements of one container */
#define HEAP_SECRET    192

typedef struct heap_page heap_page;
typedef struct heap_chunk heap_chunk;
struct key;
struct order;
struct path_entry;

/* The header of a page. */
struct heap_page {
    hd_heap *heap;
    heap_chunk *chunk;
    void *free;      /* blocks given back, linked through their first word */
    uint32_t fresh;  /* offset of the first byte never handed out */
    uint32_t used;   /* blocks in use; 0: the page goes back to the heap */
    uint32_t class_; /* index into the size classes */
    uint32_t block_size;
    list_node by_class; /* linked while the page has room; or in the heap's list of free pages */
};

struct hd_heap {
    hd_env env;       /* our copy */
    hd_limits limits; /* with the defaults filled in; depth at most HEAP_DEPTH_MAX */

    /* Pages. Written by heap.c only. */
    list roomy[HEAP_CLASSES]; /* pages of a class with room; the first is the one in use */
    list free_pages;
    uint32_t pages_free; /* their number */
    list chunks;
    list large;           /* memory from heap_large_new */
    uint32_t pages_count; /* of all chunks */

    /* Counters; see hd_heap_stats. */
    uint64_t bytes, live_blocks, made_blocks, visited;

    /* Interned keys; written by key.c only. */
    uint64_t *keys;     /* open addressing; pointer and 16 bits of hash; 0: empty */
    uint32_t keys_mask; /* capacity - 1 */
    uint32_t keys_count;
    uint32_t keys_held;     /* > 0: unreferenced keys are not swept; see keys_hold */
    struct key *length_key; /* "length" */

    /* Empties the caches that hold keys, before keys are swept; written by heap_open.c only. */
    void (*forget)(hd_heap *heap);

    struct order *orders[HEAP_ORDERS]; /* key lists seen before; written by shape.c only */

    /* Paths; written by path.c and path.h only. */
    struct path_entry *paths; /* by hd_path; 0 is the root */
    uint32_t paths_count, paths_capacity, paths_free;
    uint32_t paths_live;
    table paths_by_step; /* hash of (parent, key) */
    table paths_by_text; /* hash of the pointer text; pinned paths only */

    uint64_t *build_spare; /* the stack of the last build, for the next; written by build.c only */
    size_t build_spare_capacity;

    list pools; /* open pools; pool.c adds and removes them */

    uint64_t seed;                     /* of the tables of keys and paths */
    unsigned char secret[HEAP_SECRET]; /* of hd_value_hash */

    /* For tests: this many block allocations from now, one fails; 0: never. Fault loops need it: the
     * environment sees whole chunks only. */
    uint64_t fail_block_in;
};

static inline heap_page *heap_page_of(const void *b) {
    return (heap_page *)((uintptr_t)b & ~(uintptr_t)(HEAP_PAGE_SIZE - 1));
}
/* The heap that a block came from. O(1). */
static inline hd_heap *heap_of(const void *b) { return heap_page_of(b)->heap; }

/* A heap that has pages and no tables yet, and the end of one: all its memory goes back. See
 * heap_open.c for the rest. */
hd_heap *heap_new(const hd_env *env, const hd_limits *limits);
void heap_delete(hd_heap *heap);

/* A block of at most HEAP_BLOCK_MAX bytes, uninitialised, aligned to 8; NULL: no memory. O(1). */
void *heap_alloc(hd_heap *heap, size_t size);
void heap_free(void *b);

/* The same, counted as a value or tree node (live_blocks, made_blocks). */
void *heap_block_new(hd_heap *heap, size_t size);
void heap_block_free(void *b);

/* Memory of any size, aligned for any type, counted in `bytes`; returned at the latest when the heap
 * is closed. */
void *heap_large_new(hd_heap *heap, size_t size);
void heap_large_free(hd_heap *heap, void *memory); /* accepts NULL */
/* On failure NULL, and the memory is as it was. `memory` NULL allocates. */
void *heap_large_resize(hd_heap *heap, void *memory, size_t size);

/* Asserts that the pages and lists are whole; O(pages + free blocks). */
void heap_check(const hd_heap *heap);

#endif
