/* check.c -- what must hold of rows between pumps; for debug builds. O(nodes), sampled above CHECKED. */
#include "scheduler/persistence/persistence.h"

#ifndef NDEBUG

#include "value/text.h"

enum { CHECKED = 1000 }; /* nodes up to which each pump is checked */

static void check_node(const scheduler *s, node_id id, uint32_t *named, uint32_t *due) {
    const kept_node *k = kept_of(s, id);
    size_t length = 0;
    *named += kept_has_name(k);
    *due += (k->flags & KEPT_DUE) != 0;
    assert(kept_has_name(k) || !(k->flags & ~(KEPT_CREATES | KEPT_DERIVED)));
    assert(!(k->flags & KEPT_TAKEN));                             /* of seals under way */
    assert(!(k->flags & KEPT_CREATES) || !(k->flags & KEPT_ROW)); /* it has none */
    assert(k->narrow <= HD_SCOPE_SESSION && k->rev <= s->r->rev);
    if (!kept_has_name(k)) return;
    assert(!(node_of(s, id)->flags & NODE_REMOVED) && k->piece < s->persistence->pieces.count);
    assert(value_exists(k->print) && k->wrote_in < s->r->next_local);
    if (value_exists(k->hashes)) text_of(k->hashes, &length);
    assert(length % HASH_TEXT == 0);
    const char *name = kept_name(k, &length);
    /* Children of a removed node keep their names, which children of its successor may have too. */
    assert(persistence_find(s, name, length));
    (void)name;
}

static void check_pieces(const scheduler *s, uint32_t named) {
    const persistence *p = s->persistence;
    uint32_t nodes = 0;
    for (uint32_t i = 0; i < p->pieces.count; i++) {
        const kept_piece *of = &p->pieces.items[i];
        nodes += of->nodes;
        assert(!of->set || (of->asked && of->set->unclaimed <= of->set->rows.count));
        assert(of->nodes || (!of->asked && !of->set));
    }
    assert(nodes == named && table_count(&p->piece_names) == p->pieces.count);
    (void)nodes, (void)named;
}

void persistence_check(const scheduler *s) {
    const persistence *p = s->persistence;
    uint32_t named = 0, due = 0;
    assert(s->r->due == p->due.count + p->gated.count + p->gone.count);
    assert(p->wanted || !p->due_at);
    if (p->nodes.count > CHECKED && s->pass % (p->nodes.count / CHECKED * 32)) return;
    for (node_id id = 1; id < p->nodes.count; id++) check_node(s, id, &named, &due);
    assert(due <= p->due.count); /* entries of nodes that have left are skipped by the next seal */
    assert(table_count(&p->names) == named);
    check_pieces(s, named);
}

#endif
