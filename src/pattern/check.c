/* check.c -- what must hold of pieces, builds and parts between runs; for debug builds.
 *
 *   pieces   one record for each id that is not free; found by name and by handle; in order of start;
 *            a piece that is due is to be stopped, or waits to be built
 *   builds   between rounds; children know their parent and belong to the same piece
 *   parts    of this build; those without a node come first; names are unique
 *
 * A check costs O(pieces + parts). After one that looked at many, the next pumps go unchecked. */
#include "pattern/pattern.h"

#ifndef NDEBUG

#include "value/key.h"

#define CHECKED_FREELY                                                                             \
    512 /* pieces, builds and parts; for each further such number a pump is left out */
#define NAMES_COMPARED 32 /* of a build's parts: comparing each with each costs the square */

static void check_name(const hd_build *b, const part *p) {
    uint32_t compared = 0;
    for (list_node *at = list_after(&b->parts, &p->link); at && compared < NAMES_COMPARED;
         at = list_after(&b->parts, at), compared++)
        assert(strcmp(LIST_ENTRY(at, part, link)->name, p->name) != 0);
}

static uint32_t check_parts(const hd_build *b) {
    uint32_t count = 0;
    bool nodes = false;
    LIST_FOR (at, &b->parts) {
        const part *p = LIST_ENTRY(at, part, link);
        assert(p->in == b && p->env == b->all->env);
        assert(!p->kind->run == !p->node.id);
        assert(p->round && p->round <= b->round);
        assert(p->node.id || !nodes);
        if (p->node.id) nodes = true;
        check_name(b, p);
        if (p->kind->check) p->kind->check(p);
        count++;
    }
    return count;
}

static uint32_t check_build(const hd_build *b, const piece *of) {
    assert(b->of == of && b->all == of->all);
    assert(!b->tx && !b->in && !b->in_count);
    assert(b->local <= strlen(b->path) + 1);
    assert(!b->cursor || b->cursor->in == b);
    list_check(&b->children);
    list_check(&b->parts);
    vec_check(&b->stops);
    vec_check(&b->memories);
    return 1 + check_parts(b);
}

/* Every build of the piece; patterns may nest as deep as their data, so without recursion. */
static uint32_t check_builds(const piece *p) {
    uint32_t count = 0;
    for (const hd_build *b = p->root; b;) {
        count += check_build(b, p);
        const list_node *next = list_first(&b->children);
        for (; !next && b->up; b = b->up) next = list_after(&b->up->children, &b->sibling);
        const hd_build *up = b;
        b = next ? LIST_ENTRY(next, hd_build, sibling) : NULL;
        assert(!b || b->up == up);
        (void)up;
    }
    return count;
}

static void check_record(const patterns *all, const piece *p) {
    assert(p->id && p->id <= all->pieces.count && all->pieces.items[p->id - 1] == p);
    assert(p->generation == all->generations.items[p->id - 1]);
    assert(hd_piece_find(all->rt, key_bytes(p->space), p->name).id == p->id);
    assert(p->document.id && !p->stop && !list_linked(&p->doomed));
    assert(!p->renounced || p->stopping);
    assert(!p->supplied || p->root);
    assert(!p->root || !p->root->up);
    assert(!hd_value_exists(p->arguments)); /* borrowed from a transaction that has ended */
    assert(!list_linked(&p->due) || p->stopping || !p->root);
    const piece *up = piece_get(all, p->parent);
    assert((up != NULL) == list_linked(&p->sibling));
    assert(up != p);
    (void)up;
}

static void check_due(const patterns *all) {
    list_check(&all->due);
    LIST_FOR (at, &all->due) assert(LIST_ENTRY(at, piece, due)->id);
    list_check(&all->launches);
    list_check(&all->replies);
}

void patterns_check(patterns *all) {
    uint32_t looked = 0, pieces = 0;
    uint64_t order = 0;
    if (all->unchecked) {
        all->unchecked--;
        return;
    }
    LIST_FOR (at, &all->running) {
        const piece *p = LIST_ENTRY(at, piece, link);
        assert(p->order > order && p->order <= all->started);
        order = p->order;
        check_record(all, p);
        looked += 1 + check_builds(p);
        pieces++;
    }
    assert(pieces == table_count(&all->names));
    assert(pieces + all->free_ids.count == all->pieces.count);
    assert(!all->building && all->free_ids.capacity >= all->pieces.count);
    table_check(&all->names);
    check_due(all);
    all->unchecked = looked / CHECKED_FREELY;
    (void)pieces, (void)order;
}

#else

void patterns_check(patterns *all) { (void)all; }

#endif
