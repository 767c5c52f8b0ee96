/* signal_core.c -- mark, check, run.
 *
 * Nothing here calls itself along the graph: marking and checking keep their own stacks. Only a
 * body that reads a stale source runs that source's body on top of its own, because only the body
 * knows whether it will read it at all; below NESTED_BODIES_MAX such bodies the sources of the
 * last run are brought up to date before the body starts, which may run one in vain but keeps the
 * C stack bounded. */
#define _GNU_SOURCE
#include "signal_core.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    NESTED_BODIES_MAX = 64,
    WINDOW = 8, /* how far around the cursor a read is looked for before it counts as new */
    CHUNK_BYTES = 1 << 18,
    HUGE_PAGE = 1 << 21
};

/* ---- Memory ------------------------------------------------------------------------------ */

static void *must_have(void *block) {
    if (block && block != MAP_FAILED) return block;
    fprintf(stderr, "signal core: out of memory\n");
    abort();
}

/* Addresses for `size` bytes on a huge-page border. */
static void *reserve(size_t size) {
    char *base = must_have(mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    size_t skip = (HUGE_PAGE - ((uintptr_t)base & (HUGE_PAGE - 1))) & (HUGE_PAGE - 1);
    if (skip) munmap(base, skip);
    munmap(base + skip + size, HUGE_PAGE - skip);
    madvise(base + skip, size, MADV_HUGEPAGE);
    return base + skip;
}

static size_t reserved_bytes(uint32_t node_limit) {
    size_t bytes = ((size_t)node_limit + 1) * sizeof(sc_node);
    return (bytes + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1);
}

typedef struct chunk {
    struct chunk *next;
    uint64_t pad;
} chunk;

static void *chunk_take(sc_core *c, size_t size) {
    if (size > c->chunk_left) {
        size_t room = size > CHUNK_BYTES ? size : CHUNK_BYTES;
        chunk *fresh = must_have(malloc(sizeof *fresh + room));
        fresh->next = c->chunks;
        c->chunks = fresh;
        c->chunk = (char *)(fresh + 1);
        c->chunk_left = room;
    }
    void *taken = c->chunk;
    c->chunk += size;
    c->chunk_left -= size;
    return taken;
}

static sc_edge *block_take(sc_core *c, unsigned class) {
    void **block = c->free_blocks[class];
    if (!block) return chunk_take(c, sizeof(sc_edge) << class);
    c->free_blocks[class] = *block;
    return (sc_edge *)block;
}

static void block_give(sc_core *c, sc_edge *edges, unsigned class) {
    void **block = (void **)edges;
    *block = c->free_blocks[class];
    c->free_blocks[class] = block;
}

static sc_edge *edges_of(sc_edges *edges, uint8_t class) {
    return class ? edges->block : &edges->first;
}

static sc_edge *sources_of(sc_node *n) { return edges_of(&n->sources, n->source_class); }
static sc_edge *readers_of(sc_node *n) { return edges_of(&n->readers, n->reader_class); }

/* Doubles the room. The callers are rare: arrays only grow. */
static void edges_grow(sc_core *c, sc_edges *edges, uint8_t *class, uint32_t count) {
    sc_edge *old = edges_of(edges, *class);
    sc_edge *block = block_take(c, *class + 1u);
    memcpy(block, old, count * sizeof *old);
    if (*class) block_give(c, old, *class);
    edges->block = block;
    *class = (uint8_t)(*class + 1);
}

sc_core *sc_open(uint32_t node_limit) {
    sc_core *c = must_have(calloc(1, sizeof *c));
    c->nodes = reserve(reserved_bytes(node_limit));
    c->node_limit = node_limit;
    c->node_count = 1;
    c->epoch = 1;
    return c;
}

void sc_close(sc_core *c) {
    if (!c) return;
    for (chunk *at = c->chunks, *next; at; at = next) {
        next = at->next;
        free(at);
    }
    munmap(c->nodes, reserved_bytes(c->node_limit));
    free(c->queue);
    free(c->marks);
    free(c->frames);
    free(c);
}

/* ---- Edges ------------------------------------------------------------------------------- */

static void link_source(sc_core *c, uint32_t reader, uint32_t place, uint32_t source) {
    sc_node *n = &c->nodes[reader], *s = &c->nodes[source];
    if (s->reader_count >> s->reader_class) {
        edges_grow(c, &s->readers, &s->reader_class, s->reader_count);
    }
    sources_of(n)[place] = (sc_edge){ source, s->reader_count };
    readers_of(s)[s->reader_count++] = (sc_edge){ reader, place };
}

/* The last reader of the source takes the free place. */
static void unlink_source(sc_core *c, sc_edge half) {
    sc_node *s = &c->nodes[half.node];
    sc_edge *readers = readers_of(s);
    sc_edge last = readers[--s->reader_count];
    if (half.back == s->reader_count) return;
    readers[half.back] = last;
    sources_of(&c->nodes[last.node])[last.back].back = half.back;
}

static void place_source(sc_core *c, sc_edge *sources, uint32_t place, sc_edge half) {
    sources[place] = half;
    readers_of(&c->nodes[half.node])[half.back].back = place;
}

static bool was_read(const sc_core *c, uint32_t source) {
    const sc_edge *from = c->cursor - c->first > WINDOW ? c->cursor - WINDOW : c->first;
    for (const sc_edge *e = c->cursor; e-- > from;) {
        if (e->node == source) return true;
    }
    return false;
}

/* A source that was read a little later last time comes forward. */
static bool bring_forward(sc_core *c, uint32_t source) {
    sc_edge *to = c->end - c->cursor > WINDOW ? c->cursor + WINDOW : c->end;
    for (sc_edge *e = c->cursor; e < to; e++) {
        if (e->node != source) continue;
        sc_edge here = *c->cursor, there = *e;
        place_source(c, c->first, (uint32_t)(c->cursor - c->first), there);
        place_source(c, c->first, (uint32_t)(e - c->first), here);
        c->cursor++;
        return true;
    }
    return false;
}

/* The read is not the one expected: a repetition, a change of order, or a new source. A source
 * read again far from its first read gets a second edge, which is harmless. */
void sc_track_changed(sc_core *c, uint32_t source) {
    if (!c->running || was_read(c, source) || bring_forward(c, source)) return;
    sc_node *n = &c->nodes[c->running];
    uint32_t place = (uint32_t)(c->cursor - c->first);
    if (n->source_count >> n->source_class) {
        edges_grow(c, &n->sources, &n->source_class, n->source_count);
        c->first = sources_of(n);
    }
    if (place < n->source_count) place_source(c, c->first, n->source_count, c->first[place]);
    n->source_count++;
    link_source(c, c->running, place, source);
    c->cursor = c->first + place + 1;
    c->end = c->first + n->source_count;
}

/* Sources of the last run that this one did not read. */
static void drop_unread(sc_core *c, sc_node *n) {
    while (c->end > c->cursor) unlink_source(c, *--c->end);
    n->source_count = (uint32_t)(c->end - c->first);
}

/* ---- Running ----------------------------------------------------------------------------- */

/* What the body below on the C stack was about to read. */
typedef struct suspended {
    sc_edge *cursor, *first, *end;
    uint32_t running;
} suspended;

static inline suspended suspend(sc_core *c) {
    c->depth++;
    return (suspended){ c->cursor, c->first, c->end, c->running };
}

static inline void resume(sc_core *c, suspended below) {
    c->depth--;
    c->running = below.running;
    if (!below.running) return;
    c->cursor = below.cursor;
    c->first = below.first;
    c->end = below.end;
}

/* Runs the body; afterwards the value is right. True when it became another one: never for an
 * effect, whose value stays 0. */
static inline bool run(sc_core *c, uint32_t id, sc_node *n) {
    const uint32_t epoch = c->epoch; /* the body itself may write */
    c->first = c->cursor = sources_of(n);
    c->end = c->first + n->source_count;
    c->running = id;
    c->runs[n->effect]++;
    n->stale = false;
    uint64_t value = n->body(c, n->ctx);
    if (__builtin_expect(c->cursor != c->end, 0)) drop_unread(c, n);
    n->right_at = epoch;
    if (value == n->value) return false;
    n->value = value;
    n->changed_at = epoch;
    return true;
}

static inline void push_frame(sc_core *c, uint32_t id, uint32_t next) {
    if (__builtin_expect(c->frame_count == c->frame_capacity, 0)) {
        c->frame_capacity = c->frame_capacity ? 2 * c->frame_capacity : 256;
        c->frames = must_have(realloc(c->frames, c->frame_capacity * sizeof *c->frames));
    }
    c->frames[c->frame_count++] = (uint64_t)id << 32 | next;
}

/* What to do about a stale node, found by looking at its sources from `*next` on. */
typedef enum verdict { RIGHT, CHANGED, SOURCE_STALE } verdict;

static inline verdict check(const sc_core *c, sc_node *n, uint32_t *next, bool eager) {
    const sc_edge *sources = sources_of(n);
    const uint32_t right_at = n->right_at, count = n->source_count;
    verdict found = right_at == 0 ? CHANGED : RIGHT; /* never run: nothing to compare with */
    for (uint32_t i = *next; i < count; i++) {
        const sc_node *s = &c->nodes[sources[i].node];
        if (s->stale) {
            *next = i;
            return SOURCE_STALE;
        }
        if (s->changed_at <= right_at) continue;
        found = CHANGED;
        if (!eager) break;
    }
    return found;
}

/* Runs, up the stack, everybody who waits for a source that did change: no need to look at their
 * other sources. Returns the first who waits for one that did not; 0 when nobody is left. */
static inline uint32_t run_waiting(sc_core *c, uint32_t base, bool changed, uint32_t *next) {
    while (c->frame_count > base) {
        uint64_t frame = c->frames[--c->frame_count];
        uint32_t id = (uint32_t)(frame >> 32);
        *next = (uint32_t)frame;
        if (!changed) return id;
        changed = run(c, id, &c->nodes[id]);
    }
    return 0;
}

/* Brings a stale node up to date: first its stale sources in the order it read them, until one of
 * them turns out to have changed. Eagerly, all of them are brought up to date before it runs. */
void sc_refresh(sc_core *c, uint32_t id) {
    const uint32_t base = c->frame_count;
    const suspended below = suspend(c);
    const bool eager = c->depth > NESTED_BODIES_MAX;
    uint32_t next = 0;
    while (id) {
        sc_node *n = &c->nodes[id];
        verdict found = check(c, n, &next, eager);
        if (found == SOURCE_STALE) {
            push_frame(c, id, eager ? 0 : next);
            id = sources_of(n)[next].node;
            next = 0;
            continue;
        }
        bool changed = false;
        if (found == CHANGED) {
            changed = run(c, id, n);
        } else {
            n->stale = false;
            n->right_at = c->epoch;
        }
        id = run_waiting(c, base, changed && !eager, &next);
    }
    resume(c, below);
}

/* ---- Marking ----------------------------------------------------------------------------- */

static inline void queue_effect(sc_core *c, uint32_t id) {
    if (__builtin_expect(c->queue_count == c->queue_capacity, 0)) {
        c->queue_capacity = c->queue_capacity ? 2 * c->queue_capacity : 256;
        c->queue = must_have(realloc(c->queue, c->queue_capacity * sizeof *c->queue));
    }
    c->queue[c->queue_count++] = id;
}

/* Room for all nodes there are: each is pushed at most once per mark. */
static void marks_reserve(sc_core *c) {
    if (c->mark_capacity >= c->node_count) return;
    c->mark_capacity = 2 * c->node_count;
    c->marks = must_have(realloc(c->marks, c->mark_capacity * sizeof *c->marks));
}

/* Everything downstream becomes stale. A single reader is followed at once, without the stack. */
static void mark(sc_core *c, uint32_t id) {
    uint32_t *top = c->marks;
    for (;;) {
        sc_node *n = &c->nodes[id];
        const sc_edge *readers = readers_of(n);
        const uint32_t count = n->reader_count;
        uint32_t follow = 0;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t reader = readers[i].node;
            sc_node *r = &c->nodes[reader];
            if (r->stale) continue;
            r->stale = true;
            __builtin_prefetch(r->ctx);
            if (r->effect) queue_effect(c, reader);
            else if (follow) *top++ = reader;
            else follow = reader;
        }
        if (follow) id = follow;
        else if (top == c->marks) return;
        else id = *--top;
    }
}

/* ---- The interface ----------------------------------------------------------------------- */

static uint32_t add_node(sc_core *c, sc_node node) {
    uint32_t id = c->node_count++;
    assert(id <= c->node_limit);
    c->nodes[id] = node;
    return id;
}

uint32_t sc_signal(sc_core *c, uint64_t value) { return add_node(c, (sc_node){ .value = value }); }

uint32_t sc_computed(sc_core *c, sc_body *body, void *ctx) {
    return add_node(c, (sc_node){ .body = body, .ctx = ctx, .stale = true });
}

uint32_t sc_effect(sc_core *c, sc_body *body, void *ctx) {
    uint32_t id = add_node(c, (sc_node){ .body = body, .ctx = ctx, .effect = true });
    const suspended below = suspend(c);
    run(c, id, &c->nodes[id]);
    resume(c, below);
    return id;
}

/* Effects may write; what they queue is appended and looked at in the same flush. */
static void flush(sc_core *c) {
    c->flushing = true;
    for (uint32_t i = 0; i < c->queue_count; i++) {
        if (c->nodes[c->queue[i]].stale) sc_refresh(c, c->queue[i]);
    }
    c->queue_count = 0;
    c->flushing = false;
}

void sc_batch_begin(sc_core *c) { c->batch_depth++; }

void sc_batch_end(sc_core *c) {
    if (--c->batch_depth == 0 && !c->flushing) flush(c);
}

void sc_write(sc_core *c, uint32_t signal, uint64_t value) {
    sc_node *n = &c->nodes[signal];
    if (n->value == value) return;
    n->value = value;
    n->changed_at = ++c->epoch;
    marks_reserve(c);
    mark(c, signal);
    if (c->batch_depth == 0 && !c->flushing) flush(c);
}
