/* heap.c -- pages of equal-sized blocks.
 *
 *     environment --> chunk --> pages --> blocks
 *
 * Taking a block pops the free list of the first page of its class that has room, or takes the next
 * fresh one; giving it back pushes it onto the list of its own page. A page that becomes empty goes
 * to the heap's free pages, where any class can take it; a chunk whose pages are all free goes back
 * to the environment once more than PAGES_KEPT are free: emptying and filling in turns, as one
 * document after the other does, then costs nothing. Free blocks are poisoned under ASan. */
#include "value/heap.h"
#include "base/poison.h"

/* A chunk is a sixteenth of what the heap has already, within limits. */
enum { CHUNK_PAGES_MIN = 15, CHUNK_PAGES_MAX = 127, CHUNK_SHARE = 16, PAGE_HEADER = 64 };
enum { PAGES_KEPT = 256 }; /* 4 MiB */

_Static_assert(sizeof(heap_page) <= PAGE_HEADER, "the header must leave the blocks aligned");

/* A run of pages. The header stands in memory of its own: pages fill their alignment exactly. */
struct heap_chunk {
    list_node by_heap;
    char *memory; /* as given by the environment */
    size_t size;
    char *pages; /* the first address in it that is a multiple of the page size */
    uint32_t pages_count;
    uint32_t pages_free;
};

static const uint16_t class_sizes[HEAP_CLASSES] = { 16,  24,  32,  40,  48,  64,  80,
                                                    96,  128, 160, 192, 224, 256, 320,
                                                    384, 448, 512, 640, 768, 1024 };

/* The class of a size: classes are few and small sizes are common, so a table by size / 8. */
static const uint8_t class_by_words[HEAP_BLOCK_MAX / 8 + 1] = {
#define X4(c) c, c, c, c
#define X8(c) X4(c), X4(c)
    0,      0,      0,      1,      2,      3,      4,      5,      5,      6,
    6,      7,      7,      X4(8),  X4(9),  X4(10), X4(11), X4(12), X8(13), X8(14),
    X8(15), X8(16), X8(17), X8(17), X8(18), X8(18), X8(19), X8(19), X8(19), X8(19)
#undef X8
#undef X4
};

static unsigned class_of(size_t size) {
    assert(size <= HEAP_BLOCK_MAX);
    unsigned c = class_by_words[(size + 7) / 8];
    assert(class_sizes[c] >= size && (c == 0 || class_sizes[c - 1] < size));
    return c;
}

/* ---- Large memory ---- */

/* Stands before the memory handed out. */
typedef struct large {
    list_node by_heap;
    size_t size; /* this header included */
    _Alignas(max_align_t) char memory[];
} large;

static large *large_of(void *memory) { return LIST_ENTRY(memory, large, memory); }

void *heap_large_resize(hd_heap *heap, void *memory, size_t size) {
    large *old = memory ? large_of(memory) : NULL;
    size_t old_size = old ? old->size : 0;
    if (size > SIZE_MAX - sizeof(large)) return NULL;
    if (old) list_remove(&old->by_heap);
    large *l = env_resize(&heap->env, old, old_size, size + sizeof *l);
    if (!l) {
        if (old) list_push_back(&heap->large, &old->by_heap);
        return NULL;
    }
    l->by_heap = (list_node){ 0 };
    l->size = size + sizeof *l;
    list_push_back(&heap->large, &l->by_heap);
    heap->bytes += l->size - old_size;
    return l->memory;
}

void *heap_large_new(hd_heap *heap, size_t size) { return heap_large_resize(heap, NULL, size); }

void heap_large_free(hd_heap *heap, void *memory) {
    if (!memory) return;
    large *l = large_of(memory);
    heap->bytes -= l->size;
    list_remove(&l->by_heap);
    env_free(&heap->env, l, l->size);
}

/* ---- Pages ---- */

static size_t chunk_size(const hd_heap *heap) {
    size_t pages = heap->pages_count / CHUNK_SHARE;
    if (pages < CHUNK_PAGES_MIN) pages = CHUNK_PAGES_MIN;
    if (pages > CHUNK_PAGES_MAX) pages = CHUNK_PAGES_MAX;
    return (pages + 1) * HEAP_PAGE_SIZE; /* one more, for the alignment */
}

/* NULL without memory, or when it lies where the 48 bits of a value do not reach. */
static char *chunk_memory(hd_heap *heap, size_t size) {
    char *memory = env_new(&heap->env, size);
    if (memory && (uintptr_t)memory + size > VALUE_PAYLOAD) {
        env_free(&heap->env, memory, size);
        return NULL;
    }
    if (memory) heap->bytes += size;
    return memory;
}

static void chunk_cut(hd_heap *heap, heap_chunk *c) {
    size_t skip = -(uintptr_t)c->memory & (HEAP_PAGE_SIZE - 1);
    c->pages = c->memory + skip;
    c->pages_count = c->pages_free = (uint32_t)((c->size - skip) / HEAP_PAGE_SIZE);
    for (uint32_t i = 0; i < c->pages_count; i++) {
        heap_page *p = (heap_page *)(void *)(c->pages + i * HEAP_PAGE_SIZE);
        *p = (heap_page){ .heap = heap, .chunk = c };
        list_push_back(&heap->free_pages, &p->by_class);
    }
    heap->pages_free += c->pages_count;
    heap->pages_count += c->pages_count;
}

static bool chunk_new(hd_heap *heap) {
    heap_chunk *c = heap_large_new(heap, sizeof *c);
    if (!c) return false;
    size_t size = chunk_size(heap);
    *c = (heap_chunk){ .memory = chunk_memory(heap, size), .size = size };
    if (!c->memory) {
        heap_large_free(heap, c);
        return false;
    }
    list_push_back(&heap->chunks, &c->by_heap);
    chunk_cut(heap, c);
    return true;
}

static void chunk_free(hd_heap *heap, heap_chunk *c) {
    UNPOISON(c->memory, c->size);
    list_remove(&c->by_heap);
    heap->bytes -= c->size;
    env_free(&heap->env, c->memory, c->size);
    heap_large_free(heap, c);
}

static heap_page *page_take(hd_heap *heap, unsigned class_) {
    if (list_empty(&heap->free_pages) && !chunk_new(heap)) return NULL;
    heap_page *p = LIST_ENTRY(list_pop_front(&heap->free_pages), heap_page, by_class);
    p->chunk->pages_free--;
    heap->pages_free--;
    p->class_ = class_;
    p->block_size = class_sizes[class_];
    p->free = NULL;
    p->used = 0;
    p->fresh = PAGE_HEADER;
    POISON((char *)p + PAGE_HEADER, HEAP_PAGE_SIZE - PAGE_HEADER);
    list_push_front(&heap->roomy[class_], &p->by_class);
    return p;
}

/* An empty page; and its chunk, if that is empty as well and others have pages to spare. */
static void page_give(heap_page *p) {
    hd_heap *heap = p->heap;
    heap_chunk *c = p->chunk;
    list_remove(&p->by_class);
    list_push_front(&heap->free_pages, &p->by_class);
    c->pages_free++;
    heap->pages_free++;
    if (c->pages_free < c->pages_count || heap->pages_free < PAGES_KEPT) return;
    for (uint32_t i = 0; i < c->pages_count; i++)
        list_remove(&((heap_page *)(void *)(c->pages + i * HEAP_PAGE_SIZE))->by_class);
    heap->pages_free -= c->pages_count;
    heap->pages_count -= c->pages_count;
    chunk_free(heap, c);
}

static bool page_has_room(const heap_page *p) {
    return p->free != NULL || p->fresh + p->block_size <= HEAP_PAGE_SIZE;
}

/* ---- Blocks ---- */

static void *page_block(heap_page *p) {
    void *b = p->free;
    if (b) {
        UNPOISON(b, p->block_size);
        memcpy(&p->free, b, sizeof p->free);
    } else {
        b = (char *)p + p->fresh;
        UNPOISON(b, p->block_size);
        p->fresh += p->block_size;
    }
    p->used++;
    if (!page_has_room(p)) list_remove(&p->by_class);
    return b;
}

static bool fails_now(hd_heap *heap) {
    return heap->fail_block_in > 0 && --heap->fail_block_in == 0;
}

void *heap_alloc(hd_heap *heap, size_t size) {
    if (fails_now(heap)) return NULL;
    unsigned c = class_of(size);
    list_node *first = heap->roomy[c].head.next;
    if (first != &heap->roomy[c].head) return page_block(LIST_ENTRY(first, heap_page, by_class));
    heap_page *p = page_take(heap, c);
    return p ? page_block(p) : NULL;
}

void heap_free(void *b) {
    heap_page *p = heap_page_of(b);
    assert(p->used > 0);
    if (!list_linked(&p->by_class)) list_push_front(&p->heap->roomy[p->class_], &p->by_class);
    memcpy(b, &p->free, sizeof p->free);
    p->free = b;
    POISON(b, p->block_size);
    if (--p->used == 0) page_give(p);
}

void *heap_block_new(hd_heap *heap, size_t size) {
    void *b = heap_alloc(heap, size);
    if (!b) return NULL;
    heap->made_blocks++;
    heap->live_blocks++;
    return b;
}

void heap_block_free(void *b) {
    heap_of(b)->live_blocks--;
    heap_free(b);
}

/* ---- Making and deleting ---- */

static hd_limits limits_filled(const hd_limits *given) {
    hd_limits l = given ? *given : (hd_limits){ 0 };
    if (l.depth == 0) l.depth = 512;
    if (l.depth > HEAP_DEPTH_MAX) l.depth = HEAP_DEPTH_MAX;
    if (l.size == 0) l.size = (size_t)256 << 20;
    if (l.size > UINT32_MAX - 1) l.size = UINT32_MAX - 1;
    return l;
}

hd_heap *heap_new(const hd_env *given, const hd_limits *limits) {
    hd_env env = env_copy(given);
    hd_heap *heap = env_new0(&env, sizeof *heap);
    if (!heap) return NULL;
    heap->env = env;
    heap->limits = limits_filled(limits);
    heap->bytes = sizeof *heap;
    for (int i = 0; i < HEAP_CLASSES; i++) list_init(&heap->roomy[i]);
    list_init(&heap->free_pages);
    list_init(&heap->chunks);
    list_init(&heap->large);
    list_init(&heap->pools);
    env_random(&env, &heap->seed, sizeof heap->seed);
    env_random(&env, heap->secret, sizeof heap->secret);
    return heap;
}

void heap_delete(hd_heap *heap) {
    for (list_node *l; (l = list_first(&heap->chunks)) != NULL;)
        chunk_free(heap, LIST_ENTRY(l, heap_chunk, by_heap));
    for (list_node *l; (l = list_first(&heap->large)) != NULL;)
        heap_large_free(heap, LIST_ENTRY(l, large, by_heap)->memory);
    assert(heap->bytes == sizeof *heap);
    hd_env env = heap->env;
    env_free(&env, heap, sizeof *heap);
}

/* ---- Checking ---- */

#ifndef NDEBUG
static uint32_t page_check(const heap_page *p) {
    uint32_t handed_out = (p->fresh - PAGE_HEADER) / p->block_size, given_back = 0;
    for (const char *b = p->free; b; given_back++) {
        assert(heap_page_of(b) == p);
        assert((size_t)(b - (const char *)p - PAGE_HEADER) % p->block_size == 0);
        UNPOISON(b, sizeof(void *));
        const char *next;
        memcpy(&next, b, sizeof next);
        POISON(b, sizeof(void *));
        b = next;
    }
    assert(p->used + given_back == handed_out);
    assert(list_linked(&p->by_class) == page_has_room(p));
    return p->used;
}

static void class_check(const hd_heap *heap, uint32_t class_) {
    const list *roomy = &heap->roomy[class_];
    list_check(roomy);
    for (list_node *l = roomy->head.next; l != &roomy->head; l = l->next) {
        const heap_page *p = LIST_ENTRY(l, heap_page, by_class);
        assert(p->class_ == class_ && page_check(p) > 0);
    }
}

void heap_check(const hd_heap *heap) {
    list_check(&heap->free_pages);
    assert(list_count(&heap->free_pages) == heap->pages_free);
    assert(heap->pages_free <= heap->pages_count);
    for (uint32_t i = 0; i < HEAP_CLASSES; i++) class_check(heap, i);
}
#else
void heap_check(const hd_heap *heap) { (void)heap; }
#endif
